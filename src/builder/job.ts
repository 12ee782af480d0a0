import type { Clock } from "../clock.ts";
import type { BuildContext } from "../context/build-context.ts";
import type { FileSystem } from "../context/file-system/file-system.ts";
import type { IgnoreRules } from "../context/patterns/ignore.ts";
import type {
  CopyInstruction,
  Dockerfile,
  FromInstruction,
  Instruction,
  RunInstruction,
} from "../dockerfile/instruction.ts";
import type { Fetch, FoundImage, ImageService, OperationOutcome } from "../service/service.ts";
import type { NetworkMode, ResourcesLimits } from "../service/wire/instance.ts";
import type { FileStates } from "../store/file-states.ts";
import type { ContextHashes } from "../store/hashes.ts";
import type { Store } from "../store/store.ts";
import type { Platform } from "./bases/platform.ts";
import type { ImageFacts } from "./cache/image-facts.ts";
import type { Layer, LayerCache } from "./cache/layer-cache.ts";
import type { StepMemory } from "./cache/step-memory.ts";
import type { Emit, EmitInStep } from "./events.ts";
import type { InputObserver } from "./input-observer.ts";
import type { StageState } from "./interpreter/state.ts";
import type { explainReasonsOnce } from "./interpreter/warnings.ts";
import type { GivenSecrets } from "./mounts/secrets.ts";
import type { GitProgram } from "./repositories/git-program.ts";
import type { FoundCommit } from "./repositories/repository-address.ts";
import type { SingleFlight } from "./stages/single-flight.ts";
import type { EarlyUploads } from "./staging/early-uploads.ts";
import type { LookAhead } from "./staging/look-ahead.ts";

/** The process that builds, in a word that tells it from all others. */
export interface BuildProcess {
  id: string;
  isAlive(id: string): boolean;
}

/** `default`: as the specification has it. `docker`: as `docker build` does it. */
export type BuildMode = "default" | "docker";

/** The other stages of a build, for the steps of one. Each is performed once, whoever asks for it. */
export interface StageResults {
  /** The stage that a FROM names, at its end; `undefined` where it names none. */
  baseOf(from: FromInstruction): Promise<StageState> | undefined;
  /** The ONBUILD instructions of that stage. */
  triggersOf(from: FromInstruction): readonly Instruction[];
  /** The layer with all of the stage that a `COPY --from` names; `undefined` where it names none. */
  sourceOf(copy: CopyInstruction): Promise<Layer> | undefined;
  /** The same of a `RUN --mount` with that `from`. */
  mountedStage(run: RunInstruction, from: string): Promise<Layer> | undefined;
}

/** What two stages may need at once is done for both together. */
export interface SharedWork {
  /** Images by reference. With `--docker` each is looked up once, whenever a stage asks for it. */
  images: SingleFlight<FoundImage>;
  layers: SingleFlight<Layer>;
  questions: SingleFlight<OperationOutcome>;
  /** Commits by address: a build takes one of each. */
  repositories: SingleFlight<FoundCommit>;
}

/** What is to be built, and what a step of it is performed with. */
export interface BuildJob {
  mode: BuildMode;
  /** The stage to build: its name or number. `undefined`: the last. */
  target: string | undefined;
  /** Steps at work at once. */
  jobs: number;
  dockerfile: Dockerfile;
  context: BuildContext;
  /** What the context's files are looked at through. */
  files: FileSystem;
  ignore: IgnoreRules;
  /** `--allow-local-from`: FROM may name an image on this machine, below the context. */
  allowsLocalFrom: boolean;
  /** Spec 1: `build:<sha16(abspath(context))>`. */
  session: string;
  buildArgs: ReadonlyMap<string, string>;
  /** Labels of the image, which win over those of the Dockerfile. */
  labels: ReadonlyMap<string, string>;
  /** False: existing layers are not looked for (`--no-cache`). */
  useCache: boolean;
  /** The timeout of each RUN. */
  timeoutSeconds: number;
  /** The network of each RUN that names none itself. */
  network: NetworkMode;
  /** The limits of each operation; the service has been asked whether it takes them. They change no result, so no chain hash. */
  limits: ResourcesLimits | undefined;
  /** Secrets for `RUN --mount`. */
  secrets: GivenSecrets;
  /** The size limit of one `ADD <url>`, or of one repository. */
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
  /** What steps came to whose files were in the same state. */
  fileStates: FileStates;
  /** Gives a reason with the first warning that has it. */
  explain: ReturnType<typeof explainReasonsOnce>;
  /** An observer of what the build takes, where somebody wants to know. */
  inputs?: InputObserver | undefined;
  ahead: LookAhead;
  early: EarlyUploads;
  stages: StageResults;
  shared: SharedWork;
  /** The service's, where some instruction asks for it. */
  platform: Platform | undefined;
  /** Decompresses with a program of this machine. Throws a BoughError of kind `usage` where it has none. */
  decompress(
    compression: "bzip2" | "xz",
    content: AsyncIterable<Uint8Array>,
    name: string,
  ): AsyncGenerator<Uint8Array>;
  /** Fetches for `ADD <url>`; the service is never reached through this one. */
  fetchUrl: Fetch;
  git: GitProgram;
  clock: Clock;
  signal: AbortSignal;
  /** Bound to the step. */
  emit: EmitInStep;
}

/** What lasts as long as the build, or as one of its stages. */
type UnderWay = "ahead" | "early" | "stages" | "shared" | "platform" | "explain" | "emit";

/** A build as it is asked for. */
export interface BuildRequest extends Omit<BuildJob, UnderWay> {
  emit: Emit;
  /** True if the result is to say what each layer adds to the image. */
  measuresLayers: boolean;
  /** Aborts `signal`: what runs beside a step that has failed is of no use. */
  stop(reason: unknown): void;
}

/** A build under way, whatever its step. */
export interface RunningBuild extends BuildRequest {
  explain: BuildJob["explain"];
  shared: SharedWork;
}
