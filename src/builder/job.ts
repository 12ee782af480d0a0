import type { Clock } from "../clock.ts";
import type { FileSystem } from "../context/file-system/file-system.ts";
import type {
  CopyInstruction,
  Dockerfile,
  FromInstruction,
  Instruction,
  RunInstruction,
} from "../dockerfile/instruction.ts";
import type { Platform } from "../image/platform.ts";
import type { SingleFlight } from "../once.ts";
import type { BlobSource } from "../registry/blob-store.ts";
import type { Semaphore } from "../semaphore.ts";
import type { Fetch, FoundImage, ImageService, OperationOutcome } from "../service/service.ts";
import type { ExtraHost, NetworkMode, ResourcesLimits } from "../service/wire/instance.ts";
import type { CacheContents } from "../service/wire/mount.ts";
import type { FileStates } from "../store/file-states.ts";
import type { ContextHashes } from "../store/hashes.ts";
import type { Store } from "../store/store.ts";
import type { GitProgram } from "./addresses/git-program.ts";
import type { FoundCommit } from "./addresses/repository-address.ts";
import type { CacheIdentity } from "./cache/cache-origin.ts";
import type { ImageInspection } from "./cache/image-inspection.ts";
import type { LayerCache } from "./cache/layer-cache.ts";
import type { StepMemory } from "./cache/step-memory.ts";
import type {
  ContextFiles,
  DirectoryContext,
  InputObserver,
  NamedContexts,
} from "./contexts/named-context.ts";
import type { Dialect } from "./dialect.ts";
import type { Emit, EmitInStep } from "./events.ts";
import type { EagerUploads, SourcePrefetch } from "./prefetch.ts";
import type { KeyPins, ReferenceLock } from "./reference-lock.ts";
import type { PlatformImage } from "./result.ts";
import type { ServiceSupport } from "./service-support.ts";
import type { EvictableImage, Layer } from "./state/layer.ts";
import type { BuildPlatforms } from "./state/platform.ts";
import type { GivenSecrets } from "./state/secrets.ts";
import type { StageState } from "./state/state.ts";

/** The process that runs the build. Its `id` differs from that of every other process. */
export interface BuildProcess {
  id: string;
  isAlive(id: string): boolean;
}

/** The other stages of a build, for the steps of one stage. Each stage runs once, however many steps ask for it. */
export interface StageResults {
  /** The final state of the stage that a FROM names; `undefined` if it names an image. */
  baseOf(from: FromInstruction): Promise<StageState> | undefined;
  /** The ONBUILD instructions of that stage. */
  triggersOf(from: FromInstruction): readonly Instruction[];
  /** Finds the stages that a trigger names, whether the FROM's stage or its image has it. Throws for one that can't be used. */
  linkTrigger(trigger: Instruction, from: FromInstruction): void;
  /** The layer with all files of the stage that a `COPY --from` names; `undefined` if it names no stage. */
  sourceOf(copy: CopyInstruction): Promise<Layer> | undefined;
  /** The same layer for a `RUN --mount` with that `from`. */
  mountedStage(run: RunInstruction, from: string): Promise<Layer> | undefined;
}

/** Work that two stages may need at the same time and that is done once for both. */
export interface SharedWork {
  /** Images by reference. With `--docker` each is looked up once a build. */
  images: SingleFlight<BaseImage>;
  layers: SingleFlight<Layer>;
  probes: SingleFlight<OperationOutcome>;
  /** Commits by address, each resolved once a build. */
  repositories: SingleFlight<FoundCommit>;
  /** Names of warnings that have been given, for those that are given once a build. */
  warned: Set<"directories">;
  /** `--jobs`. */
  slots: Semaphore;
}

/** The request for a build: the command line and the Dockerfile. Nothing in it changes during a build. */
export interface AskedBuild {
  readonly dialect: Dialect;
  readonly dockerfile: Dockerfile;
  /** The name or number of the stage to build. `undefined`: the last. */
  readonly target: string | undefined;
  /** `--build-context`. */
  readonly contexts: NamedContexts;
  /** Images that other builds have made for several platforms, by the one of them that `contexts` names. An empty list: the image is the only one. */
  readonly linked?: ReadonlyMap<string, readonly PlatformImage[]> | undefined;
  /** Spec 1: `build:<sha16(abspath(context))>`. */
  readonly session: string;
  readonly buildArgs: ReadonlyMap<string, string>;
  /** `--platform`; `undefined`: the service's own. */
  readonly platform: Platform | undefined;
  /** Secrets for `RUN --mount`. */
  readonly secrets: GivenSecrets;
  /** Labels for the image; they override those of the Dockerfile. */
  readonly labels: ReadonlyMap<string, string>;
  /** Complete: `name:tag`. */
  readonly tags: readonly string[];
  /** False with `--no-cache`. */
  readonly useCache: boolean;
  /** With `--no-cache` or `--no-cache-filter`: the name of this build, whose cache mounts begin empty, as in Docker. */
  readonly cacheGeneration?: string | undefined;
  /** Builds in other realms have other cache mounts. Set with `--cache-verify`: for builds that trust the same keys. */
  readonly cacheRealm?: string | undefined;
  /** `--no-cache-filter`: names or numbers of the stages that are built without existing layers. */
  readonly uncachedStages: readonly string[];
  /** `--pull`: images of registries are imported even if the service has an image of that name. */
  readonly pullsImages: boolean;
  /** Set if the build has a content key. */
  readonly pins?: KeyPins | undefined;
  /** `--allow-local-from`: FROM may name an image on this machine, below the context. */
  readonly allowsLocalFrom: boolean;
  /** The size limit of one `ADD <url>` or `ADD <git repository>`. */
  readonly maxAddBytes: number;
  /** The number of steps that may run at once. */
  readonly jobs: number;
  /** True if the result reports what each layer adds to the image. */
  readonly measuresLayers: boolean;
  readonly commands: CommandOptions;
}

/** Options that apply to each RUN. */
interface CommandOptions {
  readonly timeoutSeconds: number;
  /** The network of each RUN without a `--network`. */
  readonly network: NetworkMode;
  /** `--add-host`: in `/etc/hosts` of each RUN. */
  readonly hosts: readonly ExtraHost[];
  /** The limits of each operation, all supported by the service. They change no result, so they are in no chain hash. */
  readonly limits: ResourcesLimits | undefined;
}

/** Decompresses with a program of this machine. Throws a BoughError of kind `usage` if there is none. */
export type Decompress = (
  compression: "bzip2" | "xz",
  content: AsyncIterable<Uint8Array>,
  name: string,
) => AsyncGenerator<Uint8Array>;

/** The service, and the parts of this machine that a build uses. */
export interface BuildServices {
  service: ImageService;
  supports: ServiceSupport;
  inspection: ImageInspection;
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  /** Set if images of FROM are declared to the service, which fetches them when they are needed. */
  remoteBases?: RemoteBases | undefined;
  /** Set if the images of docker's daemon are bases. */
  daemonImages?: DaemonImages | undefined;
  /** Set if the contents of cache mounts come from, or go to, a cache outside the service. */
  carriedCaches?: CarriedCaches | undefined;
  owner: BuildProcess;
  decompress: Decompress;
  /** Fetches for `ADD <url>`; requests to the service never use it. */
  fetchUrl: Fetch;
  git: GitProgram;
  /** Opens `docker://HOST/NAME`, to resolve a tag to its current digest. */
  openRegistry(address: string): Promise<Pick<BlobSource, "getManifest" | "findDigest" | "openBlob">>;
  clock: Clock;
  signal: AbortSignal;
}

/** The directory that a step's files come from: the build context, or another one that `--build-context` names. */
export interface SourceFiles extends ContextFiles {
  /** The file system through which the files are read. */
  files: FileSystem;
  /** Hashes of the files, keyed by the result of `stat`. */
  hashes: ContextHashes;
  /** Results of earlier steps, keyed by the state of their files. */
  fileStates: FileStates;
}

/** A build on one service, as the caller asks for it. */
export interface ServiceBuild {
  asked: AskedBuild;
  services: BuildServices;
  source: SourceFiles;
  /** An observer of the build's external inputs, if the caller wants to know them. */
  inputs?: InputObserver | undefined;
  /** `--lock`. */
  lock?: ReferenceLock | undefined;
  /** Rejects before the result gets its tags if the content key of the build is no longer true. */
  confirmKey?: (() => Promise<void>) | undefined;
  /** Set if a scanner is to run over the result. `targets`: what it sees beside the image `image`. */
  noteScanTargets?:
    | ((image: string, targets: readonly { name: string; image: string }[]) => void)
    | undefined;
  emit: Emit;
  /** Aborts the signal: after a step has failed, the work of other stages is useless. */
  stop(reason: unknown): void;
  /** Set if other builds of this process run at the same time, on the same service. */
  sharedState?: SharedBuildState | undefined;
}

/** The state that concurrent builds of one process share. */
export interface SharedBuildState {
  /** The work under way. */
  work: SharedWork;
  /** Replaces `work`: the service has evicted an image, which no build may take from the old one. */
  renew(stale: SharedWork): void;
}

/** A running build, independent of the current step. */
export interface RunningBuild extends ServiceBuild {
  shared: SharedWork;
}

/** The step under way, with the build that it belongs to. */
export interface BuildJob {
  asked: AskedBuild;
  services: BuildServices;
  source: SourceFiles;
  inputs?: InputObserver | undefined;
  lock?: ReferenceLock | undefined;
  shared: SharedWork;
  stages: StageResults;
  /** False with `--no-cache`, and for steps that `--no-cache-filter` concerns: existing layers are not looked up. */
  useCache: boolean;
  prefetch: SourcePrefetch;
  eagerUploads: EagerUploads;
  /** The titles of all instructions of the Dockerfile that make a layer. */
  layerTitles: () => readonly string[];
  /** `undefined` if no instruction depends on the platform. */
  platforms: BuildPlatforms | undefined;
  /** Bound to the step. */
  emit: EmitInStep;
}

/**
 * Returns the job of a step that uses these layers. `--no-cache-filter` replaces layers that are cached. A step that uses one of
 * them is run again, too, since its own cached layer was made from the replaced one.
 */
export function jobUsing(layers: readonly (EvictableImage | undefined)[], build: BuildJob): BuildJob {
  return build.useCache && layers.some((layer) => layer?.isRebuilt === true)
    ? { ...build, useCache: false }
    : build;
}

/** Returns the job of a step whose files come from a named context instead of the build context. */
export async function withSourceDirectory(build: BuildJob, directory: DirectoryContext): Promise<BuildJob> {
  const { inputs } = build;
  const { name } = directory;
  const { signal } = build.services;
  return {
    ...build,
    source: { ...build.source, ...(await directory.open({ signal, inputs })) },
    inputs: inputs?.file ? { ...inputs, file: (path, sha256) => inputs.file?.(path, sha256, name) } : inputs,
  };
}

/** An image to start or copy from. */
export interface BaseImage extends FoundImage {
  /** An earlier build has imported or tagged it; the service may have lost it since. */
  isRemembered?: true;
}

/** Declares images of registries to the service, without fetching their layers. */
export interface RemoteBases {
  /** True if the result goes to registries only: a push finds out whether its layers are there. */
  isOnlyPushed?: boolean;
  /**
   * @param url `docker://HOST/NAME:TAG` or `docker://HOST/NAME@DIGEST`
   * @param platform set for another one than the service's own
   * @returns the image's UUID; `undefined` if it can't be declared: an import then reports why
   */
  declare(url: string, tag: string | undefined, platform: string | undefined): Promise<string | undefined>;
}

/** The images of docker's daemon. */
export interface DaemonImages {
  /**
   * True where bough replaces docker's builder: a name means the daemon's image, else the registry's. Otherwise bough's own store comes
   * first.
   */
  decides: boolean;
  find(reference: string, platform: Platform): Promise<DaemonImage | undefined>;
}

export interface DaemonImage {
  /** The digest that identifies it there. */
  id: string;
  /** `NAME@DIGEST` in the registries that have it. */
  repoDigests: readonly string[];
  /** Writes the image as an archive, which exists until it is disposed of. */
  save(): Promise<{ url: string } & Disposable>;
}

/** The contents of cache mounts that are kept outside the service. */
export interface CarriedCaches {
  /** Records that a command uses a cache mount. Returns where its contents are kept, for a service that has no such cache. */
  use(cache: CacheIdentity): CacheContents | undefined;
}
