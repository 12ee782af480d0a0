import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

/**
 * Puts this machine's perl with its modules Socket and threads below `root`: busybox has no program that binds a socket to
 * an interface, opens raw and abstract ones, starts threads, or makes a system call of one's choice.
 */
export function addPerl(root: string): void {
  const perl = Bun.which("perl");
  if (perl === null) throw new Error("perl is missing: apt-get install perl");
  const modules = run([
    perl,
    "-MSocket=:all",
    "-Mthreads",
    "-MDynaLoader",
    "-e",
    'print "$_\\n" for values %INC, @DynaLoader::dl_shared_objects',
  ]);
  const libraries = run(["ldd", perl]).match(/\/\S+/g) ?? [];
  for (const path of [perl, ...modules.split("\n"), ...libraries]) {
    if (path === "") continue;
    const place = join(root, path);
    mkdirSync(dirname(place), { recursive: true });
    cpSync(path, place, { dereference: true });
  }
}

function run(command: string[]): string {
  const { stdout, stderr, success } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(" ")}: ${stderr.toString()}`);
  return stdout.toString();
}
