import type { Clock } from "../clock.ts";
import type { BuildContext } from "../context/build-context.ts";
import type { IgnoreRules } from "../context/patterns/ignore.ts";
import type { Dockerfile } from "../dockerfile/instruction.ts";
import type { Fetch, ImageService } from "../service/service.ts";
import type { NetworkMode, ResourcesLimits } from "../service/types.ts";
import type { ContextHashes } from "../store/hashes.ts";
import type { Store } from "../store/store.ts";
import type { ImageFacts } from "./cache/image-facts.ts";
import type { LayerCache } from "./cache/layer-cache.ts";
import type { StepMemory } from "./cache/step-memory.ts";
import type { Emit, EmitInStep } from "./events.ts";
import type { explainReasonsOnce } from "./interpreter/warnings.ts";
import type { EarlyUploads } from "./staging/early-uploads.ts";
import type { LookAhead } from "./staging/look-ahead.ts";

/** The process that builds, in a word that tells it from all others. */
export interface BuildProcess {
  id: string;
  isAlive(id: string): boolean;
}

/** What is to be built, and what a step of it is performed with. */
export interface BuildJob {
  dockerfile: Dockerfile;
  context: BuildContext;
  ignore: IgnoreRules;
  /** `--allow-local-from`: FROM may name an image on this machine, below the context. */
  allowsLocalFrom: boolean;
  /** `build:<sha16>`, see `buildSession` in build.ts. */
  session: string;
  buildArgs: ReadonlyMap<string, string>;
  /** False: existing layers are not looked for (`--no-cache`). */
  useCache: boolean;
  /** For each RUN. */
  timeoutSeconds: number;
  /** The network of each RUN that names none itself. */
  network: NetworkMode;
  /** The limits of each operation; the service has been asked whether it takes them. They change no result, so no chain hash. */
  limits: ResourcesLimits | undefined;
  /** The size limit of one `ADD <url>`. */
  maxAddBytes: number;
  /** Complete: `name:tag`. */
  tags: readonly string[];

  service: ImageService;
  facts: ImageFacts;
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  owner: BuildProcess;
  /** Hashes of the context's files, found by what `stat` says of them. */
  hashes: ContextHashes;
  /** Gives a reason with the first warning that has it. */
  explain: ReturnType<typeof explainReasonsOnce>;
  ahead: LookAhead;
  early: EarlyUploads;
  /** For `ADD <url>`; the service is never reached through this one. */
  fetchUrl: Fetch;
  clock: Clock;
  signal: AbortSignal;
  /** Bound to the step. */
  emit: EmitInStep;
}

/** A build as it is asked for. */
export interface BuildRequest extends Omit<BuildJob, "ahead" | "early" | "explain" | "emit"> {
  emit: Emit;
}

/** A build under way, whatever its step. */
export interface RunningBuild extends Omit<BuildJob, "emit"> {
  emit: Emit;
}
