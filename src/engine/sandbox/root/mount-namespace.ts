import { readFileSync, writeFileSync } from "node:fs";
import { release } from "node:os";
import { relative } from "node:path";
import type { Clock } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import type { Environment } from "../../../home-directory.ts";
import { wording } from "../../../messages/wording.ts";
import { beforeDeadline, type Helper, sendLine, startHelper } from "../../../programs/helper.ts";
import { quote } from "../../../programs/quote.ts";
import { readAtMost } from "../../../streams.ts";
import type { Layout } from "../../layout.ts";
import { overlayOptions } from "../../records/layers.ts";
import { findWrongProgram } from "../../system/program-trials.ts";
import { findProgram, helperEnvironment, killedWithParent } from "../../system/programs.ts";
import { mountableViews } from "../../system/user-namespace.ts";
import { enterGroups } from "../limits/own-groups.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { isInChroot, replaceNamespaceRoot } from "./chroot.ts";
import { canForbidSwap, forbidSwap, type NamespaceMount, noSwap } from "./namespace-mount.ts";

/**
 * A process that has mounted an image's root file system in a mount namespace of its own. When the last process in the namespace
 * ends, for whatever reason, the kernel removes the mount, so none is ever left behind.
 */
export interface MountNamespace {
  process: Helper;
  /** This machine's root directory, with the mounts of the process. */
  machine: string;
  /** The mounted root, reachable from outside of the namespace while the process runs. */
  root: string;
  /** Output of the process after its message that the mount exists. */
  stdout: AsyncIterable<Uint8Array>;
  /** Lets the process start its command. */
  proceed(): Promise<void>;
}

/**
 * The shell script of the process. It sets the umask, since the runtime makes missing directories of the image, such as a working
 * directory, which must not depend on bough's umask.
 *
 * The process first enters its control groups, if it has any (the first process to do so after a while waits for some
 * milliseconds). Then it reads lists of mounts, makes them and prints an empty line for each list, until it reads its command, which
 * it becomes. All further output is the command's. The lists are in files, since a shell reads a pipe byte by byte. Other sandboxes may
 * change the source of a bind mount, so the process enters that directory and checks where it is. Descriptor 4 is the command's
 * terminal, if it has one.
 */
const script = `umask 022
if [ $# -gt 0 ]; then
  ${enterGroups}
fi
while read -r words && . "$words" || exit 125; [ "$1" != -- ]; do
  while [ $# -gt 0 ]; do
    case "$1" in
      bind) (cd -P "$2" && [ "$(pwd -P)" = "$2" ] && mount --no-canonicalize --bind . "$3") || {
        echo "a directory of a cache is being changed by another command" >&2
        false
      } ;;
      tmpfs) mount -t tmpfs -o "$2" tmpfs "$3" 2>/dev/null || mount -t tmpfs -o "\${2%${noSwap}}" tmpfs "$3" ;;
      *) mount -t "$1" -o "$2" "$1" "$3" ;;
    esac || exit 125
    shift 3
  done
  echo
done
shift
[ -t 4 ] && exec 2>&4 4>&-
exec "$@"`;

/** The maximum length of an error message that is read. */
const maxErrorBytes = 64 * 1024;
/** Normally mounting takes some milliseconds. */
const maxMountSeconds = 60;

/** Returns options of unshare(1): a PID namespace that the kernel ends together with bough, with a `/proc` that shows it, if there may be one. */
export function processNamespace(hasOwnProc: boolean): string[] {
  return ["--pid", "--fork", "--kill-child", ...(hasOwnProc ? ["--mount-proc"] : [])];
}

/** The instructions for a process in its namespaces. */
interface MountInstructions {
  layers: readonly number[];
  /** The directory with `upper` and `work`. If it is missing, the mount is read-only. */
  operation?: string;
  inUserNamespace: boolean;
  mounts?: readonly NamespaceMount[];
  /** The command to become. If it is missing, the process only holds the mount, until its standard input is closed. */
  command?: readonly string[];
}

/**
 * Starts a process in its own mount namespace, which waits for its mounts. With `forCommand`, it is also the first process of a PID
 * namespace: it and all processes that it starts end as soon as bough does.
 */
export function startNamespace(
  layout: Layout,
  environment: Environment,
  options: {
    forCommand: boolean;
    /** An open file that the command inherits as descriptor 3. */
    descriptor?: number | undefined;
    /** A terminal that becomes the command's standard error. */
    terminal?: number | undefined;
    /** Set if the process becomes this runtime. */
    runtime?: ContainerRuntime;
    /** Files of control groups that it enters. */
    entries?: readonly string[] | undefined;
  },
): Helper {
  findProgram("mount", environment);
  const { runtime, entries, descriptor, terminal } = options;
  const toEnter = entries === undefined ? [] : [...entries, "--"];
  const command = killedWithParent([...enterCommand(environment, options), "sh", ...toEnter], environment);
  const place = {
    workingDirectory: layout.layers,
    environment: helperEnvironment(environment),
    descriptors: [descriptor, terminal],
  };
  return runtime === undefined ? startHelper(command, place) : runtime.launch(command, place);
}

/**
 * Mounts the overlay of `layers` (uppermost first) at the layout's `root`, and then `mounts`, for the process that
 * `startNamespace` started. Instructions for the process are written to `file`.
 */
export async function enterMountNamespace(
  layout: Layout,
  environment: Environment,
  helper: Helper,
  instructions: MountInstructions & { clock: Clock; file: string },
): Promise<MountNamespace> {
  const { clock, file, layers, operation, inUserNamespace, mounts = [], command = [] } = instructions;
  const stdout = helper.stdout[Symbol.asyncIterator]();
  const enter = enterCommand(environment, { forCommand: command.length > 0 });
  const untilReady = async () => {
    const output = await beforeDeadline(helper, enter, stdout.next(), {
      clock,
      seconds: maxMountSeconds,
      failure: "did not mount the image's layers",
      hint: wording`${{ command: "doctor" }} tries such a mount.`,
    });
    if (output.done === true)
      throw (
        (await findWrongProgram(["setpriv", "unshare"], { environment, clock })) ?? (await mountError(helper))
      );
  };
  const instruct = (words: readonly string[]) => {
    writeFileSync(file, `set -- ${words.map(quote).join(" ")}\n`, { mode: 0o600 });
    return sendLine(helper, relative(layout.layers, file));
  };
  const options = overlayOptions(layout, layers, { operation, inUserNamespace });
  const overlay = { type: "overlay", options, place: relative(layout.layers, layout.root) } as const;
  const forbidsSwap = canForbidSwap(release(), inUserNamespace);
  const all = [overlay, ...(forbidsSwap ? mounts.map(forbidSwap) : mounts)];
  const surroundings = { environment, clock };
  if (await isInChroot(surroundings)) {
    await instruct([]);
    await untilReady();
    await replaceNamespaceRoot(helper.pid, surroundings);
  }
  await instruct(all.flatMap(mountWords));
  await untilReady();
  return {
    process: helper,
    machine: `/proc/${helper.pid}/root`,
    root: `/proc/${helper.pid}/root${layout.root}`,
    stdout: { [Symbol.asyncIterator]: () => stdout },
    proceed: () => instruct(["--", ...command]),
  };
}

function mountWords(mount: NamespaceMount): string[] {
  return [mount.type, mount.type === "bind" ? mount.source : mount.options, mount.place];
}

async function mountError({ stderr }: Helper): Promise<BoughError> {
  const errorOutput = (await readAtMost(maxErrorBytes, stderr)).bytes.toString().trim();
  return new BoughError(
    `the image's layers could not be mounted: ${firstLine(errorOutput) || "the helper was stopped"}`,
    {
      hint: isRootMounted()
        ? "overlayfs needs Linux 5.11 or later, and the engine's directory on ext4, xfs, btrfs or tmpfs."
        : "The root directory of bough's chroot must be a mount point: outside of it, `mount --bind DIRECTORY DIRECTORY`.",
    },
  );
}

/** Returns false in a chroot whose root is not a mount point. The kernel lists the mounts that this process can reach. */
function isRootMounted(): boolean {
  const points = readFileSync("/proc/self/mountinfo", "utf8").matchAll(/^(?:\S+ ){4}(\S+)/gm);
  return Array.from(points, ([, point]) => point).includes("/");
}

function enterCommand(environment: Environment, { forCommand }: { forCommand: boolean }): string[] {
  const unshare = [
    findProgram("unshare", environment),
    "--mount",
    ...(forCommand ? processNamespace(mountableViews().proc) : []),
  ];
  return [...unshare, findProgram("sh", environment), "-c", script];
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.trim() ?? "";
}
