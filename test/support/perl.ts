/** Debian's own perl in a test's image: it makes the system calls that busybox has no applet for. */
import { cpSync, mkdirSync } from "node:fs";
import { dirname, join } from "node:path";

/** Copies perl, its libraries and the module `threads` below `root`. */
export function addPerl(root: string): void {
  const perl = Bun.which("perl");
  if (perl === null) throw new Error("perl is not installed");
  const libraries = output(["ldd", perl]).match(/\/\S+/g) ?? [];
  const modules = output([
    perl,
    "-Mthreads",
    "-e",
    'require DynaLoader; print join "\\n", values %INC, @DynaLoader::dl_shared_objects',
  ]).split("\n");
  for (const path of [perl, ...libraries, ...modules]) {
    mkdirSync(dirname(join(root, path)), { recursive: true });
    cpSync(path, join(root, path), { dereference: true });
  }
}

function output(command: string[]): string {
  const { success, stdout, stderr } = Bun.spawnSync(command);
  if (!success) throw new Error(`${command.join(" ")}: ${stderr}`);
  return stdout.toString().trim();
}
