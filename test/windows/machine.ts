/** A Windows machine (Wine), which has this machine's network. */
import { join } from "node:path";
import { type Ended, temporaryDirectory } from "../support/bough.ts";
import { findWineRoot, prefix, wineVariables } from "./wine-root.ts";

export interface WindowsMachine {
  /** A directory of this machine, which is the drive D: there. */
  drive: string;
  /** Returns the command of this machine that runs a program there, in a directory of the drive D:. */
  command(program: readonly string[], options?: ProgramOptions): string[];
  /** Runs a program there to its end. */
  run(program: readonly string[], options?: ProgramOptions): Promise<Ended>;
  /** Ends all programs there. */
  stop(): Promise<void>;
}

interface ProgramOptions {
  /** Below the drive, or absolute. */
  directory?: string;
  /** Variables besides those that Windows sets. */
  environment?: Readonly<Record<string, string>>;
}

/**
 * Enters the root `$1`, with a layer in `$2` above it that takes all changes. Both machines see `$3` at the same path. Ends with
 * standard input, and then ends all programs.
 */
const enter = `
  mkdir "$2/upper" "$2/work" "$2/root"
  mount -t overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" overlay "$2/root"
  cd "$2/root"
  mkdir -p dev proc ".$3"
  for name in dev proc; do mount --rbind "/$name" "$name"; done
  mount --bind "$3" ".$3"
  ln -s "$3" ".${prefix}/dosdevices/d:"
  pivot_root . mnt
  umount -l /mnt
  echo entered
  cat
  exec env -i ${wineVariables.join(" ")} /usr/lib/wine/wineserver64 -k`;

const isRoot = process.getuid?.() === 0;

export async function startWindows(): Promise<WindowsMachine> {
  const root = await findWineRoot();
  const layer = temporaryDirectory("windows-");
  const drive = temporaryDirectory("drive-");
  const asRoot = isRoot ? [] : ["--user", "--map-root-user"];
  const holder = Bun.spawn(
    [
      "unshare",
      "--mount",
      "--propagation",
      "private",
      ...asRoot,
      "sh",
      "-euc",
      enter,
      "sh",
      root,
      layer,
      drive,
    ],
    { stdin: "pipe", stdout: "pipe", stderr: "inherit" },
  );
  const { value } = await holder.stdout.getReader().read();
  if (value === undefined) throw new Error("the Windows machine does not start");
  const asUser = isRoot ? [] : ["--user", "--preserve-credentials"];
  const into = ["nsenter", "--target", String(holder.pid), "--mount", ...asUser];
  const inDirectory = ["sh", "-euc", 'cd "$1"; shift; exec /usr/lib/wine/wine64 "$@"', "sh"];
  const command: WindowsMachine["command"] = (program, { directory = "", environment = {} } = {}) => {
    const variables = Object.entries(environment).map(([name, text]) => `${name}=${text}`);
    const place = directory.startsWith("/") ? directory : join(drive, directory);
    return [...into, "env", "-i", ...wineVariables, ...variables, ...inDirectory, place, ...program];
  };
  return {
    drive,
    command,
    async run(program, options) {
      const child = Bun.spawn(command(program, options), { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
      const [stdout, stderr] = await Promise.all([
        new Response(child.stdout).text(),
        new Response(child.stderr).text(),
      ]);
      return { exitCode: await child.exited, stdout, stderr };
    },
    async stop() {
      holder.stdin.end();
      await holder.exited;
    },
  };
}
