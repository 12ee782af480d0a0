import type { Subprocess } from "bun";
import type { Clock } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import type { Layout } from "../../layout.ts";
import { overlayOptions } from "../../records/layers.ts";
import { beforeDeadline, dyingWithParent, startHelper } from "../../system/helper.ts";
import { type Environment, findProgram, helperEnvironment } from "../../system/programs.ts";

/**
 * A process that alone sees an image's root file system: it has mounted the overlay in a mount namespace of its own. The
 * kernel takes the mount away with the last process in there, however that one ends, so that none is ever left behind.
 */
export interface MountNamespace {
  process: Subprocess<"pipe", "pipe", "pipe">;
  /** The root directory of this machine with the mounts that only the process has. */
  machine: string;
  /** The mounted root, reachable from outside of the namespace for as long as the process runs. */
  root: string;
  /** What the process writes after it said that the mount is there. */
  stdout: AsyncIterable<Uint8Array>;
  /** Lets the process go on to its command. */
  proceed(): void;
}

/**
 * Mounts, says so with an empty line, waits for one, and becomes the command. What follows that line is the command's own. The
 * source of a bind may be changed by other sandboxes: it is where the process is, and has made sure to be. What is in memory is
 * not swapped to a disk where Linux offers that: from 6.4 on, and not to a user namespace.
 */
const script = `mount -t overlay -o "$1" overlay ../root || exit 125
shift
while [ "$1" != -- ]; do
  case "$1" in
    bind) (cd -P "$2" && [ "$(pwd -P)" = "$2" ] && mount --no-canonicalize --bind . "$3") || {
      echo "a directory of a cache is being changed by another command" >&2
      false
    } ;;
    tmpfs) mount -t tmpfs -o "$2,noswap" tmpfs "$3" 2>/dev/null || mount -t tmpfs -o "$2" tmpfs "$3" ;;
    *) mount -t "$1" -o "$2" "$1" "$3" ;;
  esac || exit 125
  shift 3
done
shift
echo && read -r go || exit 125
exec "$@"`;

/** A mount that only the processes of the namespace have, at the absolute path `place`. */
export type NamespaceMount = { place: string } & (
  | { type: "overlay" | "tmpfs"; options: string }
  /** `source`: a directory, without links on its way. */
  | { type: "bind"; source: string }
);

/** The mount takes some milliseconds. */
const maxMountSeconds = 60;

/** What the kernel ends together with bough: a process namespace of its own, with a `/proc` that shows it. */
const withProcesses = ["--pid", "--fork", "--kill-child", "--mount-proc"];

/**
 * Mounts the overlay of `layers` (the uppermost layer first) at the layout's `root`. `command` runs there once it may proceed,
 * as the first process of a namespace: it and all that it starts are gone the moment bough is. Without a command the process
 * only holds the mount, for as long as its standard input is open.
 */
export async function enterMountNamespace(
  layout: Layout,
  environment: Environment,
  options: {
    layers: readonly number[];
    /** The directory with `upper` and `work`; without one the mount is read-only. */
    operation?: string;
    inUserNamespace: boolean;
    mounts?: readonly NamespaceMount[];
    clock: Clock;
    command?: readonly string[];
    /** An open file that the command gets as its descriptor 3. */
    descriptor?: number | undefined;
    started?: (process: Subprocess) => void;
  },
): Promise<MountNamespace> {
  findProgram("mount", environment);
  const overlay = overlayOptions(layout, options.layers, {
    operation: options.operation,
    inUserNamespace: options.inUserNamespace,
  });
  const { command } = options;
  const unshare = [
    findProgram("unshare", environment),
    "--mount",
    ...(command === undefined ? [] : withProcesses),
  ];
  const enter = [...unshare, findProgram("sh", environment), "-c", script, "sh"];
  const mounts = (options.mounts ?? []).flatMap((mount) => [
    mount.type,
    mount.type === "bind" ? mount.source : mount.options,
    mount.place,
  ]);
  const words = [...enter, overlay, ...mounts, "--", ...(command ?? [])];
  const helper = startHelper(dyingWithParent(words, environment), {
    workingDirectory: layout.layers,
    environment: helperEnvironment(environment),
    descriptor: options.descriptor,
  });
  options.started?.(helper);
  const stdout = helper.stdout[Symbol.asyncIterator]();
  const first = await beforeDeadline(helper, enter, stdout.next(), {
    clock: options.clock,
    seconds: maxMountSeconds,
    failure: "did not mount the image's layers",
    hint: "`bough doctor` tries such a mount.",
  });
  if (first.done === true) {
    const said = (await new Response(helper.stderr).text()).trim();
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
    proceed() {
      helper.stdin.write("\n");
    },
  };
}

function firstLine(text: string): string {
  return text.split("\n")[0]?.trim() ?? "";
}
