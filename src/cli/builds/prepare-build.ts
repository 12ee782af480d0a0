/** Prepares a build for each of its services. */
import type { FoundCommit } from "../../builder/addresses/repository-address.ts";
import { createSharedBuildState } from "../../builder/build.ts";
import { createImageInspection } from "../../builder/cache/image-inspection.ts";
import type { BuildEvent, Emit } from "../../builder/events.ts";
import type {
  AskedBuild,
  BuildServices,
  ServiceBuild,
  SharedBuildState,
  SourceFiles,
} from "../../builder/job.ts";
import { supportOf } from "../../builder/service-support.ts";
import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { createSingleFlight } from "../../once.ts";
import type { Semaphore } from "../../semaphore.ts";
import type { Store } from "../../store/store.ts";
import { type Log, prefixLog } from "../../terminal/log.ts";
import type { BuildOutput } from "../export/build-outputs.ts";
import { isEmbedded } from "../service/choice.ts";
import type { ChosenService, Connections } from "../service/connections.ts";
import { buildTimeout } from "../service/timeout.ts";
import type { Signers } from "../signing/open-signer.ts";
import { type CommandCaches, openBuildCache } from "./build-cache.ts";
import type { BuildService } from "./build-services.ts";
import { type BuildInputs, fileTableOf } from "./inputs.ts";
import type { BuildOptions } from "./options/build-options.ts";
import type { ScopeOptions } from "./options/scope-options.ts";
import { machineOf, type PreparedBuild } from "./prepared-build.ts";
import type { BuildInvocation } from "./request.ts";
import { openThinBases } from "./thin-bases.ts";

/** What several builds of one command share. */
export interface BuildsTogether {
  connections: Omit<Connections, keyof AsyncDisposable>;
  /** Returns what builds on a service share. */
  sharedStateOn(service: ChosenService): SharedBuildState;
  /** The shared caches, which are written when all builds have ended. */
  caches: CommandCaches;
  /** The sessions of the builds. */
  sessions: Set<string>;
  /** The directories that are written to, each by one build at a time. */
  directories: Map<string, Semaphore>;
  /** What is known of the files of each context. */
  tables: Map<string, FileTables>;
  writesMetadata: boolean;
  signers: Signers;
}

/** What is known of the files of a context. */
export type FileTables = Pick<SourceFiles, "hashes" | "fileStates">;

interface PlannedWith {
  invocation: BuildInvocation;
  log: Log;
  together: BuildsTogether | undefined;
  connections: Pick<Connections, "connectTo">;
}

/** Connects to each of the services. */
export async function openServices(
  chosen: readonly [ChosenService, ...ChosenService[]],
  { dialect, platforms }: Pick<BuildInputs, "dialect" | "platforms">,
  jobsIn: BuildOptions["jobsIn"],
  { log, together, connections }: PlannedWith,
): Promise<[BuildService, ...BuildService[]]> {
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const open = async (each: ChosenService): Promise<BuildService> => {
    const connection = await connections.connectTo(each);
    const own =
      platforms.length > 1
        ? createSharedBuildState(jobsIn(dialect, each.globals), { keepsLayers: true, repositories })
        : undefined;
    return {
      ...{ ...each, connection, sharedState: together?.sharedStateOn(each) ?? own },
      supports: supportOf(connection.service, dialect),
      log: each.label === undefined ? log : prefixLog(log, each.label),
    };
  };
  const [first, ...others] = chosen;
  const services: [BuildService, ...BuildService[]] = [await open(first)];
  for (const each of others) services.push(await open(each));
  return services;
}

/** What a build asks of each of its services. */
export interface PlannedBuild {
  inputs: BuildInputs;
  /** The part of the Dockerfile that the target needs. */
  needed: Dockerfile;
  outputs: readonly BuildOutput[];
  options: BuildOptions;
  sharing: ScopeOptions | undefined;
  shared: CommandCaches;
  asked: Pick<AskedBuild, "dockerfile" | "linked" | "session" | "secrets" | "cacheRealm" | "pins">;
  /** What all services use. */
  common: Pick<BuildServices, "owner" | "signal" | "daemonImages">;
  lock: ServiceBuild["lock"];
  confirmKey: ServiceBuild["confirmKey"];
  noteScanTargets: ServiceBuild["noteScanTargets"];
  observerOf(platform: ChosenService["platforms"][number] | undefined): ServiceBuild["inputs"];
  /** Ends the build on all services. */
  stop(service: BuildService, reason: unknown): void;
  emit(service: BuildService, event: BuildEvent): void;
}

/** Returns the build on each service. Its shared caches are opened. */
export async function prepareBuild(
  services: readonly [BuildService, ...BuildService[]],
  build: PlannedBuild,
  { invocation, together }: Pick<PlannedWith, "invocation" | "together">,
): Promise<PreparedBuild[]> {
  const { inputs, options, sharing, shared, asked, common } = build;
  const { tags, useCache, pullsImages, measuresLayers, jobsIn, limits, timeout } = options;
  const { dialect, target, contexts, buildArgs, labels, allowsLocalFrom, maxAddBytes, uncachedStages } =
    inputs;
  const { runtime } = invocation;
  const startsAfresh = !useCache || uncachedStages.length > 0;
  const cacheGeneration = startsAfresh ? crypto.randomUUID() : undefined;
  const source = {
    ...{ context: inputs.context, ignore: inputs.ignore, files: inputs.files },
    ...openFileTables(services[0].connection.store, inputs, together?.tables),
  };
  const prepareOn = async (each: BuildService): Promise<PreparedBuild> => {
    const { connection, supports, sharedState, globals, log } = each;
    const { service } = connection;
    const sessions = together?.sessions;
    const { session, cacheRealm } = asked;
    const choice = { sharing, shared, session, cacheRealm, otherSessions: sessions, log };
    const cache = await openBuildCache(connection, choice, inputs, invocation);
    const { store, layers, memory, carriedCaches } = cache;
    const remoteBases = cache.remoteBases ?? (await openThinBases(build, each, invocation));
    const emit: Emit = (event) => build.emit(each, event);
    const own: ServiceBuild = {
      asked: {
        ...{ ...asked, tags, useCache, pullsImages, measuresLayers, cacheGeneration },
        ...{ dialect, target, contexts, buildArgs, labels, allowsLocalFrom, maxAddBytes, uncachedStages },
        platform: each.platforms[0],
        jobs: jobsIn(dialect, globals),
        commands: {
          timeoutSeconds: await buildTimeout(timeout, service),
          network: inputs.network.mode,
          hosts: inputs.network.hosts,
          limits,
        },
      },
      services: {
        ...{ ...common, service, supports, store, layers, memory, remoteBases, carriedCaches },
        daemonImages: isEmbedded(runtime, globals) ? common.daemonImages : undefined,
        inspection: createImageInspection(service, supports, store.imageMetadata),
        ...machineOf(runtime),
      },
      source,
      inputs: build.observerOf(each.platforms[0]),
      lock: build.lock,
      confirmKey: build.confirmKey,
      noteScanTargets: build.noteScanTargets,
      stop: (reason) => build.stop(each, reason),
      sharedState,
      emit,
    };
    return { service: each, build: own, cache };
  };
  const prepared: PreparedBuild[] = [];
  for (const each of services) prepared.push(await prepareOn(each));
  return prepared;
}

/** Opens what is known of the context's files, once for all builds with that context. */
export function openFileTables(
  { hashes, fileStates }: Store,
  inputs: BuildInputs,
  opened: Map<string, FileTables> = new Map(),
): FileTables {
  const known = fileTableOf(inputs);
  return opened.getOrInsertComputed(known, () => ({
    hashes: hashes.open(known),
    fileStates: fileStates.open(known),
  }));
}
