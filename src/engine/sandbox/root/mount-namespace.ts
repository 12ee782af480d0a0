import { writeFileSync } from "node:fs";
import { relative } from "node:path";
import type { Clock } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import { readAtMost } from "../../../streams.ts";
import type { Layout } from "../../layout.ts";
import { overlayOptions } from "../../records/layers.ts";
import {
  beforeDeadline,
  dyingWithParent,
  type Helper,
  sendLine,
  startHelper,
  startPipedHelper,
} from "../../system/helper.ts";
import { type Environment, findProgram, helperEnvironment } from "../../system/programs.ts";
import { enterGroups, type OwnGroups } from "../limits/own-groups.ts";
import { type Crun, crunDescriptors, crunVariables } from "../runtime/crun.ts";

/**
 * A process that alone sees an image's root file system: it has mounted the overlay in a mount namespace of its own. The
 * kernel takes the mount away with the last process in there, however that one ends, so that none is ever left behind.
 */
export interface MountNamespace {
  process: Helper;
  /** The root directory of this machine with the mounts that only the process has. */
  machine: string;
  /** The mounted root, reachable from outside of the namespace for as long as the process runs. */
  root: string;
  /** What the process writes after it said that the mount is there. */
  stdout: AsyncIterable<Uint8Array>;
  /** Lets the process go on to its command. */
  proceed(): Promise<void>;
}

/**
 * Becoming crun, it has memory for its configuration and its state first, and enters its control groups: the first to do so after a
 * while waits for some milliseconds. Is told what to mount, mounts it, says so with an empty line, waits for one, and becomes the
 * command. What follows that line is the command's own. The words come in a file, since a shell reads a pipe byte by byte. The source
 * of a bind may be changed by other sandboxes: it is where the process is, and has made sure to be. What is in memory is not swapped
 * to a disk where Linux offers that: from 6.4 on, and not to a user namespace. Descriptor 4 is a terminal where the command is to
 * have one.
 */
const script = `memory() {
  mount -t tmpfs -o "$1,noswap" tmpfs "$2" 2>/dev/null || mount -t tmpfs -o "$1" tmpfs "$2"
}
if [ -n "$1" ]; then
  memory mode=0700,size=64m "$1" && shift || exit 125
  ${enterGroups}
fi
read -r words && . "$words" || exit 125
mount -t overlay -o "$1" overlay ../root || exit 125
shift
while [ "$1" != -- ]; do
  case "$1" in
    bind) (cd -P "$2" && [ "$(pwd -P)" = "$2" ] && mount --no-canonicalize --bind . "$3") || {
      echo "a directory of a cache is being changed by another command" >&2
      false
    } ;;
    tmpfs) memory "$2" "$3" ;;
    *) mount -t "$1" -o "$2" "$1" "$3" ;;
  esac || exit 125
  shift 3
done
shift
echo && read -r go || exit 125
[ -t 4 ] && exec 2>&4 4>&-
exec "$@"`;

/** A mount that only the processes of the namespace have, at the absolute path `place`. */
export type NamespaceMount = { place: string } & (
  | { type: "overlay" | "tmpfs"; options: string }
  /** `source`: a directory, without links on its way. */
  | { type: "bind"; source: string }
);

/** Bytes. */
const maxComplaint = 64 * 1024;
/** The mount takes some milliseconds. */
const maxMountSeconds = 60;

/** What the kernel ends together with bough: a process namespace of its own, with a `/proc` that shows it. */
const withProcesses = ["--pid", "--fork", "--kill-child", "--mount-proc"];

/** What a process is told once it is in its namespaces. */
interface Words {
  layers: readonly number[];
  /** The directory with `upper` and `work`; without one the mount is read-only. */
  operation?: string;
  inUserNamespace: boolean;
  mounts?: readonly NamespaceMount[];
  /** Runs once it may proceed; without one the process only holds the mount, for as long as its standard input is open. */
  command?: readonly string[];
}

/**
 * Starts a process in a mount namespace of its own, which waits to be told what to mount. `forCommand`: it is the first of a
 * process namespace, too; it and all that it starts are gone the moment bough is.
 */
export function startNamespace(
  layout: Layout,
  environment: Environment,
  options: {
    forCommand: boolean;
    /** An open file that the command gets as its descriptor 3. */
    descriptor?: number | undefined;
    /** A terminal that becomes the command's standard error. */
    terminal?: number | undefined;
    /** It becomes crun. The command has its standard streams then: they are pipes, which it can open by their names. */
    crun?: (Pick<Crun, "state" | "copy"> & Pick<OwnGroups, "entries">) | undefined;
  },
): Helper {
  findProgram("mount", environment);
  const forCrun = options.crun === undefined ? [] : [options.crun.state, ...options.crun.entries, "--"];
  const others = [options.descriptor, options.terminal];
  const start = options.crun !== undefined ? startPipedHelper : startHelper;
  return start(
    dyingWithParent([...enterCommand(environment, options.forCommand), "sh", ...forCrun], environment),
    {
      workingDirectory: layout.layers,
      environment: {
        ...helperEnvironment(environment),
        ...(options.crun === undefined ? {} : crunVariables(options.crun)),
      },
      descriptors: options.crun === undefined ? others : crunDescriptors(options.crun, others),
    },
  );
}

/**
 * Mounts the overlay of `layers` (the uppermost layer first) at the layout's `root`, in what `startNamespace` has started.
 * `file`: made for what the process is told; nobody needs it afterwards.
 */
export async function enterMountNamespace(
  layout: Layout,
  environment: Environment,
  helper: Helper,
  { clock, file, ...words }: Words & { clock: Clock; file: string },
): Promise<MountNamespace> {
  writeFileSync(file, `set -- ${quoteWords(layout, words)}\n`, { mode: 0o600 });
  await sendLine(helper, relative(layout.layers, file));
  const stdout = helper.stdout[Symbol.asyncIterator]();
  const enter = enterCommand(environment, words.command !== undefined);
  const first = await beforeDeadline(helper, enter, stdout.next(), {
    clock,
    seconds: maxMountSeconds,
    failure: "did not mount the image's layers",
    hint: "`bough doctor` tries such a mount.",
  });
  if (first.done === true) {
    const said = (await readAtMost(maxComplaint, helper.stderr)).bytes.toString().trim();
    throw new BoughError(
      `the image's layers could not be mounted: ${firstLine(said) || "the helper was stopped"}`,
      {
        hint: "overlayfs needs Linux 5.11 or later, and the engine's directory on ext4, xfs, btrfs or tmpfs.",
      },
    );
  }
  return {
    process: helper,
    machine: `/proc/${helper.pid}/root`,
    root: `/proc/${helper.pid}/root${layout.root}`,
    stdout: { [Symbol.asyncIterator]: () => stdout },
    proceed: () => sendLine(helper),
  };
}

function enterCommand(environment: Environment, forCommand: boolean): string[] {
  const unshare = [findProgram("unshare", environment), "--mount", ...(forCommand ? withProcesses : [])];
  return [...unshare, findProgram("sh", environment), "-c", script];
}

function quoteWords(
  layout: Layout,
  { layers, operation, inUserNamespace, mounts = [], command = [] }: Words,
): string {
  const overlay = overlayOptions(layout, layers, { operation, inUserNamespace });
  const placed = mounts.flatMap((mount) => [
    mount.type,
    mount.type === "bind" ? mount.source : mount.options,
    mount.place,
  ]);
  return [overlay, ...placed, "--", ...command].map(quote).join(" ");
}

function quote(word: string): string {
  return `'${word.replaceAll("'", "'\\''")}'`;
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.trim() ?? "";
}
