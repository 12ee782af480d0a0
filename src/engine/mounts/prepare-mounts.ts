import { chmodSync, chownSync, closeSync, constants, mkdirSync, openSync, realpathSync } from "node:fs";
import { connect, createServer, type Socket } from "node:net";
import { join, normalize } from "node:path";
import { BoughError } from "../../errors.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { errorCode } from "../../system-error.ts";
import { releaseCaches } from "../records/caches.ts";
import { layerChain, layerDirectory, overlayOptions } from "../records/layers.ts";
import type { OperationRun } from "../run-operation.ts";
import { ownHierarchies, ownMemoryLimit } from "../sandbox/limits/controllers.ts";
import type { NamespaceMount } from "../sandbox/root/namespace-mount.ts";
import type { RequestMounts } from "../sandbox/sandbox-request.ts";
import type { EngineState } from "../state.ts";
import { measureMachine } from "../system/machine.ts";
import { makeUpper } from "../system/owner-and-mode.ts";
import { cacheKey, prepareCache, type UnpackContents } from "./cache-mount.ts";
import { MountFiles } from "./files-mount.ts";
import { type PreparedMount, placeMounts } from "./place-mounts.ts";
import type { FilesMount, MountRequest, RequestedMount, SshMount } from "./requested-mount.ts";

/** The mounts of one sandbox, with their contents. */
export interface PreparedMounts extends RequestMounts {
  /** Variables whose values are secrets. */
  secretEnv: Readonly<Record<string, string>>;
  /** Call it when the sandbox is gone. */
  close: () => void;
}

/** Makes the contents of a request's mounts, or takes caches for them. Contents that must be in memory are made later. */
export async function prepareRequestedMounts(
  state: EngineState,
  mounts: readonly MountRequest[],
  run: OperationRun,
  unpack: UnpackContents,
): Promise<PreparedMounts> {
  const preparation = new MountPreparation(state, run, unpack);
  try {
    const caches = await preparation.takeCaches(mounts);
    const prepared: PreparedMount[] = [];
    for (const [index, mount] of mounts.entries())
      prepared.push(await preparation.prepare(mount, String(index), caches));
    const { memory, inNamespace } = preparation;
    return {
      inNamespace,
      memory,
      fillMemory: (machine) => preparation.fillMemory(machine),
      place: (root, points, machine) =>
        placeMounts(prepared, { root, points, machine, memory, inUserNamespace: state.inUserNamespace }),
      secretEnv: Object.fromEntries(mounts.flatMap(({ spec }) => variableOf(spec))),
      close: () => preparation.close(),
    };
  } catch (error) {
    preparation.close();
    throw error;
  }
}

function variableOf(spec: RequestedMount): [string, string][] {
  return spec.type === "secret" && spec.env !== undefined
    ? [[spec.env, Buffer.from(spec.value.reveal()).toString()]]
    : [];
}

/** The share of this machine's memory that the files of a command's mounts may take. */
const maxMemoryShare = 1 / 16;

/** Makes the contents of one request's mounts. */
class MountPreparation {
  readonly inNamespace: NamespaceMount[] = [];
  memory: string | undefined;
  readonly #fills: ((machine: string) => Promise<void>)[] = [];
  /** Bytes that further mounts may take in memory. */
  #memoryLeft: number | undefined;
  readonly #state: EngineState;
  readonly #run: OperationRun;
  readonly #unpack: UnpackContents;
  readonly #closers: (() => void)[] = [];
  /** Trees by layer: read-only mounts of one image share its tree. */
  readonly #trees = new Map<number, string>();

  constructor(state: EngineState, run: OperationRun, unpack: UnpackContents) {
    this.#state = state;
    this.#run = run;
    this.#unpack = unpack;
  }

  /** Takes caches in the order of their keys, so that no two operations wait for each other's cache forever. */
  async takeCaches(mounts: readonly MountRequest[]): Promise<ReadonlyMap<RequestedMount, string>> {
    const { uuid: operation, signal } = this.#run;
    const { database, clock, events } = this.#state;
    const unpack = this.#unpack;
    const append = (data: object) => events.append(operation, sandboxSpid, "progress", { ...data });
    const report = (message: string) => append({ message });
    const warn = (message: string) => append({ message, is_warning: true });
    const wanted = mounts.flatMap(({ spec, image }) =>
      spec.type === "cache" ? [{ spec, image, key: cacheKey(spec, image) }] : [],
    );
    if (wanted.length > 0) this.#closers.push(() => releaseCaches(database, operation, clock.now()));
    // All of a command's mounts of one key share a cache.
    const byKey = new Map<string, string>();
    for (const { spec, image, key } of wanted.sort((one, other) => (one.key < other.key ? -1 : 1)))
      if (!byKey.has(key))
        byKey.set(
          key,
          await prepareCache(this.#state, spec, { key, image, operation, signal, report, warn, unpack }),
        );
    return new Map(wanted.map(({ spec, key }) => [spec, byKey.get(key) ?? ""]));
  }

  async prepare(
    { spec, image }: MountRequest,
    name: string,
    caches: ReadonlyMap<RequestedMount, string>,
  ): Promise<PreparedMount> {
    switch (spec.type) {
      case "image": {
        const tree = this.#treeOf(image?.layer ?? 0, name, spec.readonly);
        return { spec, contents: tree, source: spec.source, isOwn: true };
      }
      case "files":
        return { spec, contents: await this.#makeFiles(spec, name), isOwn: true };
      case "cache": {
        const directory = caches.get(spec) ?? "";
        const isWhole = image !== undefined || normalize(spec.source) === "/";
        return { spec, contents: isWhole ? directory : this.#bindBelow(directory, spec, name), isOwn: false };
      }
      case "host":
        return { spec, contents: hostPath(spec), isOwn: false };
      case "tmpfs":
        return { spec, contents: undefined, isOwn: false };
      case "secret":
        this.memory ??= this.#makeMemory();
        return {
          spec,
          contents: spec.isFile ? join(this.memory, `secret-${name}`) : undefined,
          isOwn: false,
        };
      case "ssh": {
        const { path, close } = await openAgentSocket(spec, this.#makeDirectory(name));
        this.#closers.push(close);
        return { spec, contents: path, isOwn: false };
      }
    }
  }

  /** Makes the contents that are in memory, once the mount namespace `machine` has that memory. */
  async fillMemory(machine: string): Promise<void> {
    for (const fill of this.#fills) await fill(machine);
  }

  close(): void {
    for (const close of this.#closers.splice(0)) close();
  }

  /** Mounts an overlay of an image's layers without copying them; changes are removed with the operation. */
  #treeOf(layer: number, name: string, readonly: boolean): string {
    const known = readonly ? this.#trees.get(layer) : undefined;
    if (known !== undefined) return known;
    const { database, layout, inUserNamespace } = this.#state;
    const operation = this.#makeDirectory(name);
    makeUpper(join(operation, "upper"), layerDirectory(layout, layer));
    for (const part of ["work", "tree"]) mkdirSync(join(operation, part));
    const layers = layerChain(database, layer);
    const options = overlayOptions(layout, layers, { operation, inUserNamespace, isRoot: false });
    const place = join(operation, "tree");
    this.inNamespace.push({ type: "overlay", options, place });
    if (readonly) this.#trees.set(layer, place);
    return place;
  }

  /** Binds a directory of a cache, which other commands may change at any time. */
  #bindBelow(cache: string, { source, target }: { source: string; target: string }, name: string): string {
    const found = realPath(join(cache, normalize(source)));
    if (found !== undefined && found !== cache && !found.startsWith(`${cache}/`))
      throw new BoughError(
        `cannot mount ${source} of the cache at ${target}: a symbolic link there leads out of the cache`,
      );
    if (found === undefined)
      throw new BoughError(`cannot mount ${source} of the cache at ${target}: there is no such directory`);
    const place = this.#makeDirectory(name);
    this.inNamespace.push({ type: "bind", source: found, place });
    return place;
  }

  /**
   * Makes files in memory if they are few bytes: a file system on a disk takes much longer for them, and longer still if it has just
   * removed as many. A writable mount is on the disk, since a command could fill the memory.
   */
  async #makeFiles(spec: FilesMount & { target: string }, name: string): Promise<string> {
    const files = new MountFiles(this.#state, spec);
    const directory = this.#makeDirectory(name);
    const { signal } = this.#run;
    this.#memoryLeft ??= measureMachine(ownMemoryLimit(ownHierarchies())).memory * maxMemoryShare;
    const size = spec.readonly ? files.size() : Number.POSITIVE_INFINITY;
    if (size <= this.#memoryLeft) {
      this.#memoryLeft -= size;
      this.inNamespace.push({ type: "tmpfs", options: "mode=0700,nr_inodes=0", place: directory });
      this.#fills.push((machine) => files.make(join(machine, directory), signal));
    } else await files.make(directory, signal);
    return files.pathIn(directory);
  }

  #makeMemory(): string {
    const place = this.#makeDirectory("memory");
    this.inNamespace.push({ type: "tmpfs", options: "mode=0700,nosuid,nodev", place });
    return place;
  }

  #makeDirectory(name: string): string {
    const directory = join(this.#run.directory, "mounts", name);
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    return directory;
  }
}

function hostPath({ source, target }: { source: string; target: string }): string {
  const path = realPath(source);
  if (path !== undefined) return path;
  throw new BoughError(`cannot mount ${source} at ${target}: there is no such file or directory`);
}

function realPath(path: string): string | undefined {
  try {
    return realpathSync(path);
  } catch (error) {
    if (["ENOENT", "ENOTDIR", "ELOOP", "ENAMETOOLONG"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
}

/**
 * Opens a socket in `directory` that forwards to an agent's. It has the owner that the mount asks for, and makes an agent usable
 * that only accepts this process's user.
 */
export async function openAgentSocket(
  { agent, mode, uid, gid }: SshMount,
  directory: string,
): Promise<{ path: string; close: () => void }> {
  const connections = new Set<Socket>();
  const keep = (socket: Socket) => {
    connections.add(socket);
    socket.once("close", () => connections.delete(socket));
  };
  const server = createServer((client) => {
    const toAgent = connect(agent);
    for (const [socket, other] of [
      [client, toAgent],
      [toAgent, client],
    ] as const) {
      keep(socket);
      socket.on("error", () => other.destroy());
      socket.pipe(other);
    }
  });
  const path = join(directory, "agent");
  // A socket's path is limited to 107 bytes: the directory's may be longer, but not its path through a descriptor.
  const descriptor = openSync(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await new Promise<void>((resolve, reject) => {
      server.once("error", reject);
      server.listen(`/proc/self/fd/${descriptor}/agent`, resolve);
    });
    chownSync(path, uid, gid);
    chmodSync(path, mode);
  } catch (error) {
    server.close();
    throw new BoughError("cannot create a socket for the SSH agent", { cause: error });
  } finally {
    closeSync(descriptor);
  }
  return {
    path,
    close() {
      server.close();
      for (const socket of connections) socket.destroy();
    },
  };
}
