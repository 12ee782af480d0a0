/** A Windows machine (Wine), which has this machine's network. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Ended, temporaryDirectory } from "../support/bough.ts";
import { findWineRoot, prefix, wineVariables } from "./wine-root.ts";

export interface WindowsMachine {
  /** A directory of this machine, which is the drive D: there. */
  drive: string;
  /** Runs a program there in a directory of the drive D:, with variables besides those that Windows sets. */
  run(
    command: readonly string[],
    options?: { directory?: string; environment?: Readonly<Record<string, string>> },
  ): Promise<Ended>;
  /** Ends all programs there. */
  stop(): Promise<void>;
}

/**
 * Enters the root `$1`, with a layer in `$2` above it that takes all changes. Both machines see `$3` at the same path. Ends with
 * standard input.
 */
const enter = `
  mkdir "$2/upper" "$2/work" "$2/root"
  mount -t overlay -o lowerdir="$1",upperdir="$2/upper",workdir="$2/work" overlay "$2/root"
  cd "$2/root"
  mkdir -p dev ".$3"
  mount -t proc proc proc
  mount --rbind /dev dev
  mount --bind "$3" ".$3"
  ln -s "$3" ".${prefix}/dosdevices/d:"
  pivot_root . mnt
  umount -l /mnt
  echo entered
  exec cat`;

const isRoot = process.getuid?.() === 0;

export async function startWindows(): Promise<WindowsMachine> {
  const root = await findWineRoot();
  const layer = temporaryDirectory("windows-");
  const drive = temporaryDirectory("drive-");
  const unshare = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"];
  const asRoot = isRoot ? [] : ["--user", "--map-root-user"];
  const holder = Bun.spawn([...unshare, ...asRoot, "sh", "-euc", enter, "sh", root, layer, drive], {
    stdin: "pipe",
    stdout: "pipe",
    stderr: "inherit",
  });
  const { value } = await holder.stdout.getReader().read();
  if (value === undefined) throw new Error("the Windows machine does not start");
  const pid = readFileSync(`/proc/${holder.pid}/task/${holder.pid}/children`, "utf8").trim();
  const asUser = isRoot ? [] : ["--user", "--preserve-credentials"];
  const into = ["nsenter", "--target", pid, "--mount", "--pid", ...asUser, "env", "-i", ...wineVariables];
  const inDirectory = ["sh", "-euc", 'cd "$1"; shift; exec /usr/lib/wine/wine64 "$@"', "sh"];
  return {
    drive,
    async run(command, { directory = "", environment = {} } = {}) {
      const variables = Object.entries(environment).map(([name, value]) => `${name}=${value}`);
      const words = [...into, ...variables, ...inDirectory, join(drive, directory), ...command];
      const child = Bun.spawn(words, { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
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
