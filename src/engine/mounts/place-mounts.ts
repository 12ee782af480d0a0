import { chmodSync, chownSync, lstatSync, type Stats, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { directoryMode } from "../../image/file-mode.ts";
import {
  coveredDirectories,
  type MountPlace,
  makeMountPoint,
  provideMountPoint,
} from "../sandbox/root/mount-points.ts";
import { resolveInRoot } from "../sandbox/root/root-path.ts";
import type { SandboxMount } from "../sandbox/sandbox-mounts.ts";
import type { PlacedMounts } from "../sandbox/sandbox-request.ts";
import type { RequestedMount, SecretMount } from "./requested-mount.ts";

/** A mount whose contents exist as soon as the sandbox's mount namespace does. */
export interface PreparedMount {
  spec: RequestedMount;
  /** The path of its contents in the mount namespace; `undefined` if it has none. */
  contents: string | undefined;
  /** The part of the contents to mount: a path in an image, whose links are followed below `contents`. */
  source?: string;
  /** True if only this operation has the contents, and they are removed with it. */
  isOwn: boolean;
}

interface Sandbox {
  root: string;
  points: Pick<MountPlace, "upper" | "made">;
  /** The root directory of the mount namespace. */
  machine: string;
  /** A directory of the mount namespace in memory. */
  memory: string | undefined;
  inUserNamespace: boolean;
}

/**
 * Finds the targets of mounts, with all links of the image and of other mounts followed below the root, and makes missing mount
 * points. None of them ends up in the layer: mount points are recorded, or made in a tree that is discarded.
 */
export function placeMounts(prepared: readonly PreparedMount[], sandbox: Sandbox): PlacedMounts {
  const tree = new MountedTree(sandbox.root);
  const mounts: SandboxMount[] = [];
  for (const mount of prepared) {
    if (mount.spec.type === "secret" && !mount.spec.isFile) continue;
    const source = findContents(mount, sandbox);
    const { inside: destination, mode } = findTarget(mount.spec, source?.stats, tree, sandbox);
    mounts.push(describeMount(mount.spec, source?.path, { destination, mode }, sandbox));
    const contents = source === undefined ? undefined : join(sandbox.machine, source.path);
    const isShared = mount.spec.type === "cache" && mount.spec.sharing === "shared";
    tree.add({ at: destination, contents, isOwn: mount.isOwn, isShared });
  }
  return { mounts, locate: tree.locate, requireStable: tree.requireStable };
}

/** Returns the path of a mount's contents in the mount namespace. */
function findContents(
  { spec, contents, source }: PreparedMount,
  sandbox: Sandbox,
): { path: string; stats: Stats } | undefined {
  if (contents === undefined) return undefined;
  const place = join(sandbox.machine, contents);
  if (spec.type === "secret") writeSecret(spec, place, sandbox);
  if (source === undefined) return { path: contents, stats: lstatSync(place) };
  const { inside, stats } = resolveInRoot(place, source, { followLast: true });
  if (stats === undefined)
    throw new BoughError(`cannot mount at ${spec.target}: ${source} is not in the source image`);
  if (!stats.isFile() && !stats.isDirectory())
    throw new BoughError(`cannot mount at ${spec.target}: ${source} is neither a file nor a directory`);
  return { path: join(contents, inside), stats };
}

/** The type of a tmpfs in Linux's statfs(2). */
const tmpfsMagic = 0x01021994;

function writeSecret(
  { value, mode, uid, gid }: SecretMount,
  path: string,
  { machine, memory }: Sandbox,
): void {
  if (memory === undefined || statfsSync(join(machine, memory)).type !== tmpfsMagic)
    throw new Error("there is no tmpfs to keep a secret in");
  writeFileSync(path, value.reveal(), { mode: 0o600, flag: "wx" });
  chownSync(path, uid, gid);
  chmodSync(path, mode);
}

/**
 * Returns a mount's target as the image sees it, and its mode. Makes a missing mount point, unless it is in another mount that is
 * not the operation's own: the runtime makes it there.
 */
function findTarget(
  { target, type }: RequestedMount,
  source: Stats | undefined,
  tree: MountedTree,
  { root, points }: Sandbox,
): { inside: string; mode: number } {
  const { inside, stats } = resolveInRoot(root, target, { followLast: true, locate: tree.locate });
  const fail = (reason: string) => {
    const way = inside === target ? "" : `, which leads to ${inside}`;
    return new BoughError(`cannot mount at ${target}${way}: ${reason}`);
  };
  if (/^\/$|^\/dev$|^\/(proc|sys)(\/|$)/.test(inside)) throw fail("the sandbox has its own files there");
  const wanted = source === undefined || source.isDirectory() ? "directory" : "file";
  if (stats !== undefined) {
    if (stats.isDirectory() === (wanted === "directory")) return { inside, mode: stats.mode & 0o7777 };
    throw fail(`a ${wanted} cannot be mounted on a ${stats.isDirectory() ? "directory" : "file"}`);
  }
  // 1777 is the kernel's default for a tmpfs.
  const mode = wanted === "file" ? 0o644 : type === "tmpfs" ? 0o1777 : directoryMode;
  const covering = tree.covering(inside);
  if (covering === undefined) provideMountPoint({ root, ...points }, inside, wanted, mode);
  else if (covering.isOwn && covering.contents !== undefined) {
    if (!lstatSync(covering.contents).isDirectory()) throw fail(`${covering.at} is not a directory`);
    makeMountPoint(covering.contents, inside.slice(covering.at.length), wanted, mode);
  }
  return { inside, mode };
}

function describeMount(
  spec: RequestedMount,
  source: string | undefined,
  { destination, mode }: { destination: string; mode: number },
  { inUserNamespace }: Sandbox,
): SandboxMount {
  // In a user namespace, mounts must keep these options of the file system that they are from.
  const readonly = ["ro", ...(inUserNamespace ? ["nosuid", "nodev"] : [])];
  switch (spec.type) {
    case "tmpfs": {
      const size = spec.size === undefined ? [] : [`size=${spec.size}`];
      // Without a mode, runc would use that of the mount point, and crun the kernel's default.
      const options = ["nosuid", `mode=${mode.toString(8)}`, ...size];
      return { type: "tmpfs", source: "tmpfs", destination, options };
    }
    case "secret":
      return bind(source, destination, ["ro", "nosuid", "nodev", ...executionOf(spec)]);
    case "ssh":
      return bind(source, destination, ["nosuid", "nodev", ...executionOf(spec)]);
    // A writable mount includes the file systems mounted below it. `ro` would not apply to them.
    case "host":
      return spec.readonly
        ? bind(source, destination, readonly)
        : { type: "bind", source: source ?? "", destination, options: ["rbind", "rw"] };
    case "image":
      return bind(source, destination, spec.readonly ? ["ro"] : ["rw"]);
    case "files":
    case "cache":
      return bind(source, destination, spec.readonly ? readonly : ["rw"]);
  }
}

/** As in Docker, a secret can be executed if its mode allows it. */
function executionOf({ mode }: { mode: number }): string[] {
  return (mode & 0o111) === 0 ? ["noexec"] : [];
}

function bind(source = "", destination: string, options: readonly string[]): SandboxMount {
  return { type: "bind", source, destination, options: ["bind", ...options] };
}

/** A mount in a sandbox. */
interface Mounted {
  /** The mount's path as the image sees it, without links. */
  at: string;
  /** The path of its contents on this machine; `undefined` if they don't exist before the sandbox runs. */
  contents: string | undefined;
  /** True if only this operation has the contents, and discards them: mount points may be made there. */
  isOwn: boolean;
  /** True if other sandboxes may change the contents at any time. */
  isShared: boolean;
}

/** Directories that the sandbox mounts its own file systems on. */
const covered: readonly Mounted[] = coveredDirectories.map((at) => ({
  at,
  contents: undefined,
  isOwn: false,
  isShared: false,
}));

/** A sandbox's root with its mounts, as the command will see it. */
class MountedTree {
  readonly #root: string;
  readonly #mounted = [...covered];

  constructor(root: string) {
    this.#root = root;
  }

  add(mounted: Mounted): void {
    this.#mounted.push(mounted);
  }

  /**
   * Throws for a directory that other sandboxes may replace. If one replaced it by a link at the wrong moment, runc up to 1.1.11
   * would follow the link to a directory of this machine that it has open (CVE-2024-21626).
   */
  readonly requireStable = (directory: string): void => {
    const mounted = this.covering(directory);
    if (mounted === undefined || !mounted.isShared || mounted.at === directory) return;
    throw new BoughError(
      `the working directory cannot be ${directory}: other commands may change the cache there`,
      {
        hint: "Change to it in the command itself, or mount the cache with sharing=locked.",
      },
    );
  };

  /** Returns the latest mount that covers `path`; `undefined` if the root file system is visible there. */
  covering(path: string): Mounted | undefined {
    return this.#mounted.findLast(({ at }) => path === at || path.startsWith(`${at}/`));
  }

  readonly locate = (names: readonly string[]): string | undefined => {
    const path = `/${names.join("/")}`;
    const mounted = this.covering(path);
    if (mounted === undefined) return join(this.#root, path);
    return mounted.contents === undefined ? undefined : join(mounted.contents, path.slice(mounted.at.length));
  };
}
