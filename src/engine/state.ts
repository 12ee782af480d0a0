import type { Database } from "bun:sqlite";
import type { LentFile } from "../service/wire/file.ts";
import type { ImportLimits } from "./import-limits.ts";
import type { InstanceProcesses } from "./processes/instance-processes.ts";
import type { EventFiles } from "./records/event-files.ts";
import type { LayerSync } from "./records/layer-sync.ts";
import type { Failure } from "./records/operations.ts";
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
  /** See `Records`. */
  unrecordedLosses: ReadonlySet<number>;
  /** Files that the client in this process has lent, by the loan's ID. */
  loans: Map<string, Iterable<LentFile>>;
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
  unrecorded: Map<string, Failure>;
  /** Aborted when the engine is closed. */
  closing: AbortSignal;
}

interface RunningOperation {
  cancel: () => void;
  ended: Promise<void>;
}
