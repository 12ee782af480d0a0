import type { Database } from "bun:sqlite";
import type { Clock } from "../clock.ts";
import type { Environment } from "../home-directory.ts";
import type { SingleFlight } from "../once.ts";
import type { BlobSource } from "../registry/blob-store.ts";
import type { ImportLimits } from "./import-limits.ts";
import type { InstanceProcesses } from "./processes/instance-processes.ts";
import type { EventFiles } from "./records/event-files.ts";
import type { LayerSync } from "./records/layer-sync.ts";
import type { FailedOutcome } from "./records/operations.ts";
import type { UnreachableSources } from "./records/records.ts";
import type { LayerTree } from "./sandbox/root/layer-tree.ts";
import type { RuntimeChoice } from "./sandbox/runtime/choice.ts";
import type { SandboxHost } from "./sandbox/sandbox-request.ts";

/** The state that the parts of an open engine share. */
export interface EngineState extends SandboxHost {
  runtime: RuntimeChoice;
  database: Database;
  events: EventFiles;
  /** True once a request has changed something; see `recover`. */
  hasChanged: boolean;
  /** The kernel's boot ID. */
  boot: string;
  layerSync: LayerSync;
  unreachable: UnreachableSources;
  /** Trees of images, by their uppermost layers, the least recently used first. */
  trees: Map<number, LayerTree>;
  /** The fetch of each layer that is being fetched. */
  fetches: Map<number, LayerFetch>;
  /** Listings that are being made, by layer. */
  listings: SingleFlight<boolean>;
  openBlobSource: OpenBlobSource;
  /** True if clients may be on other machines; see `EngineOptions`. */
  isServer: boolean;
  /** True if clients may make the engine fetch from loopback and link-local addresses. */
  allowsLocalFetch: boolean;
  importLimits: ImportLimits;
  /** The operations that this process runs. */
  running: Map<string, RunningOperation>;
  /** The processes of the instances among them. */
  instances: Map<string, InstanceProcesses>;
  /** Outcomes of operations that could not be recorded, for example on a full disk. */
  unrecorded: Map<string, FailedOutcome>;
  /** Aborted when the engine is closed. */
  closing: AbortSignal;
}

/** An operation or request that waits for absent layers. */
export interface FetchWaiter {
  signal: AbortSignal;
  report: (message: string) => void;
}

/** A fetch of absent layers, which continues as long as something waits for it. */
export interface LayerFetch {
  /**
   * Resolves to "not fetched" if some of the layers are unreachable, which is then recorded, or if the fetch was about to end.
   * Rejects for other failures.
   */
  join(waiter: FetchWaiter): Promise<"fetched" | "not fetched">;
}

/** Opens a store of blobs by its address; see `src/registry/open-blob-store.ts`. */
export type OpenBlobSource = (
  address: string,
  dependencies: {
    fetch: (input: string | Request, init?: RequestInit) => Promise<Response>;
    clock: Clock;
    environment: Environment;
  },
) => Promise<BlobSource> | BlobSource;

interface RunningOperation {
  cancel: () => void;
  ended: Promise<void>;
}
