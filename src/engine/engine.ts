import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import type { Environment } from "../home-directory.ts";
import { bootId } from "../lock-file.ts";
import { createSingleFlight } from "../once.ts";
import { isInUserNamespace } from "../own-path.ts";
import type { EngineCore } from "./core.ts";
import { openEngineDirectory } from "./engine-directory.ts";
import type { Packer } from "./export/pack-layer.ts";
import { defaultImportLimits, type ImportLimits } from "./import-limits.ts";
import { closeLayout } from "./layout.ts";
import { Networks } from "./network/networks.ts";
import { keepReserve } from "./prune/room.ts";
import { EventFiles } from "./records/event-files.ts";
import { findImage } from "./records/images.ts";
import { LayerSync } from "./records/layer-sync.ts";
import { UnreachableSources } from "./records/records.ts";
import { recover } from "./recovery.ts";
import { RuntimeChoice } from "./sandbox/runtime/choice.ts";
import type { EngineState, OpenBlobSource } from "./state.ts";

export interface EngineOptions {
  /** The directory for images and all other data; made if it is missing. */
  directory: string;
  clock: Clock;
  /** `PATH` and `HOME` above all. Helpers get only the variables that they need. */
  environment: Environment;
  /**
   * True if clients may be on other machines: they must not name paths of this one, nor use its network. Default: false, for a
   * client in the same process.
   */
  isServer?: boolean;
  /** True if clients on other machines may make it fetch from its own loopback and link-local addresses. Default: false. */
  allowsLocalFetch?: boolean;
  /** Opens the sources that absent layers are fetched from. Default: `openBlobSource`. */
  openBlobSource?: OpenBlobSource;
  /** Limits for the size of an image. */
  importLimits?: ImportLimits;
  /** Reports a problem that does not stop the engine. */
  warn?: (message: string) => void;
}

export interface Engine {
  readonly directory: string;
  /** True once a request has changed something. */
  readonly hasChanged: boolean;
  /** The number of operations that this process runs. */
  readonly running: number;
  /** The part that serves requests (`routes/handler.ts`) and calls of this process (`service/engine-service.ts`). */
  readonly core: EngineCore;
  /** Waits until an image is on the disk. Returns false if it is lost. */
  settle(image: string): Promise<boolean>;
  /** Cancels running operations and closes the directory. */
  close(): Promise<void>;
}

/**
 * Opens the image service inside this process; it uses crun or runc, overlayfs and skopeo. Several processes can have one
 * directory open at once. Cleans up after killed processes before it changes anything.
 */
export async function openEngine(options: EngineOptions): Promise<Engine> {
  const warn = options.warn ?? (() => undefined);
  requireRoot();
  const closing = new AbortController();
  const state = openState(options, warn, closing.signal);
  const { layout, database } = state;
  let recovery: Promise<void> | undefined;
  let packer: Packer | undefined;
  return {
    directory: layout.directory,
    get hasChanged() {
      return state.hasChanged;
    },
    get running() {
      return state.running.size;
    },
    core: { state, prepare, openPacker },
    async settle(image) {
      return (await state.layerSync.settle()) && findImage(state, image) !== undefined;
    },
    async close() {
      const running = [...state.running.values()];
      for (const operation of running) operation.cancel();
      if (running.length > 0) await Promise.all(running.map(({ ended }) => ended));
      // Removing a network takes the kernel longer than everything else here.
      await Promise.all([state.networks.close(), closeState()]);
    },
  };

  function prepare(): Promise<void> {
    recovery ??= recover(state, warn).then(
      () => {
        state.hasChanged = true;
      },
      (error: unknown) => {
        recovery = undefined;
        throw error;
      },
    );
    return recovery;
  }

  async function openPacker(): Promise<Packer> {
    const packing = await import("./export/pack-layer.ts");
    packer ??= packing.openPacker(closing.signal);
    return packer;
  }

  async function closeState(): Promise<void> {
    await Promise.all([state.runtime.close(), state.layerSync.close()]);
    closing.abort();
    database.close();
    await closeLayout(layout);
  }
}

/** Opens the engine's directory. Nothing has been recovered yet. */
function openState(
  { directory, clock, environment, importLimits = defaultImportLimits, ...options }: EngineOptions,
  warn: (message: string) => void,
  closing: AbortSignal,
): EngineState {
  const { isServer = false, allowsLocalFetch = !isServer } = options;
  const { layout, database } = openEngineDirectory(directory);
  keepReserve(layout.directory);
  const boot = bootId() ?? "";
  const inUserNamespace = isInUserNamespace();
  return {
    ...{ layout, database, clock, environment, isServer, allowsLocalFetch, importLimits },
    ...{ inUserNamespace, boot, closing },
    runtime: new RuntimeChoice(),
    networks: new Networks({ environment, clock, warn }),
    events: new EventFiles(layout, clock),
    layerSync: new LayerSync({ database, layout, clock, environment, boot, warn }),
    unreachable: new UnreachableSources(clock),
    fetches: new Map(),
    trees: new Map(),
    listings: createSingleFlight(),
    openBlobSource: options.openBlobSource ?? openStore,
    hasChanged: false,
    running: new Map(),
    instances: new Map(),
    unrecorded: new Map(),
  };
}

/** Opens a store of blobs. Loads the client of registries only when something is fetched. */
const openStore: OpenBlobSource = async (address, dependencies) => {
  const { openBlobSource } = await import("../registry/open-blob-store.ts");
  return openBlobSource(address, dependencies);
};

/** Throws unless this process is root, which chown and mounts need; root of a user namespace is enough. */
function requireRoot(): void {
  if (process.getuid?.() === 0) return;
  throw new BoughError("the embedded engine needs root, or a user namespace in which it is root", {
    hint: "Run it under: unshare --user --map-root-user --map-auto --mount",
  });
}
