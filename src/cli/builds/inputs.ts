import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { NetworkPolicy } from "../../builder/commands/network.ts";
import type { NamedContexts } from "../../builder/contexts/named-context.ts";
import type { Dialect } from "../../builder/dialect.ts";
import type { ReferenceLock } from "../../builder/reference-lock.ts";
import { openBuildContext } from "../../context/build-context.ts";
import { localFileSystem } from "../../context/file-system/file-system.ts";
import { readIgnoreRules } from "../../context/patterns/ignore.ts";
import { usageError } from "../../errors.ts";
import type { Platform } from "../../image/platform.ts";
import { wording } from "../../messages/wording.ts";
import type { Log } from "../../terminal/log.ts";
import {
  type ContextSource,
  type DirectorySource,
  type FetchedSource,
  readContextSource,
} from "../contexts/context-source.ts";
import { type DockerfilePlace, dockerfileName, readDockerfile } from "../contexts/dockerfile-file.ts";
import type { OpenedContext } from "../contexts/fetched-context.ts";
import { prepareFetches } from "../contexts/prepare-fetches.ts";
import { sourceDateEpoch } from "../export/times.ts";
import type { Runtime } from "../process/runtime.ts";
import { openNamedContexts } from "./options/build-contexts.ts";
import { chooseDialect } from "./options/dialect.ts";
import { readSecretOptions, type SecretOptions } from "./options/secret-options.ts";
import type { BakedTarget, BuildInvocation, BuildRequest } from "./request.ts";

/** The inputs of a build, as given on the command line. */
export interface BuildInputs extends OpenedContext {
  /** `--build-context`. */
  contexts: NamedContexts;
  buildArgs: ReadonlyMap<string, string>;
  /** `--label`. */
  labels: ReadonlyMap<string, string>;
  /** True if FROM may name an image on this machine. */
  allowsLocalFrom: boolean;
  network: NetworkPolicy;
  dialect: Dialect;
  /** `--platform`. Empty: the service's own. */
  platforms: readonly Platform[];
  /** `--target`. */
  target: string | undefined;
  /** `--no-cache-filter`. */
  uncachedStages: readonly string[];
  /** `--secret` and `--ssh`. */
  secrets: SecretOptions;
  /** `--max-add-size`. */
  maxAddBytes: number;
}

type GivenInputs = Pick<BuildInvocation, "context" | "options" | "runtime" | "globals"> & BakedTarget;

type InputPlaces =
  | {
      isFetched: false;
      source: DirectorySource;
      dockerfile: DockerfilePlace;
      ignore: { contextPath: string; dockerfilePath: string };
    }
  /** `dockerfile` is `undefined` if it comes with the context, as the ignore file always does. */
  | { isFetched: true; source: FetchedSource; dockerfile: DockerfilePlace | undefined };

/**
 * @param options.keepsContext true to keep a fetched context for the next build
 * @param options.lock has what the addresses of `--build-context` mean
 * @throws BoughError of kind `usage` if an input is missing or invalid
 */
export async function readBuildInputs(
  given: GivenInputs,
  { lock, ...options }: { log: Log; keepsContext: boolean; lock?: ReferenceLock | undefined },
): Promise<BuildInputs> {
  const { options: asked, runtime } = given;
  const { platform: platforms = [], target, "max-add-size": maxAddBytes = defaultMaxAddBytes } = asked;
  const dialect = chooseDialect(given);
  const buildArgs = new Map(asked["build-arg"]);
  const epoch = sourceDateEpoch(given);
  // As for docker buildx, the variable is the value of `ARG SOURCE_DATE_EPOCH`, too.
  if (dialect.hasSourceDate && epoch !== undefined) buildArgs.set("SOURCE_DATE_EPOCH", epoch);
  const labels = labelsOf(asked, dialect);
  const uncachedStages = uncachedStagesOf(asked);
  const holder = new DisposableStack();
  const secrets = holder.use(readSecretOptions(asked, runtime));
  const places = locateInputs(given);
  const defaultExcludes = dialect.filtersContexts && asked["no-default-excludes"] !== true;
  const settings = { buildArgs, secrets, maxAddBytes, ...options };
  const contexts = await openNamedContexts(
    given,
    prepareFetches({ settings, runtime, holder, lock, mainLocation: () => opened.location }),
    options.log.warn,
  );
  const opened = holder.use(await open(places));
  return {
    ...{ ...opened, contexts },
    ...{ buildArgs, labels, dialect, platforms, target, uncachedStages, secrets, maxAddBytes },
    allowsLocalFrom: asked["allow-local-from"] === true,
    network: networkPolicyOf(asked),
    [Symbol.dispose]: () => holder.dispose(),
  };

  async function open(places: InputPlaces) {
    if (!places.isFetched) {
      const { source, dockerfile, ignore } = places;
      const context = await openBuildContext(source.path, runtime.workingDirectory);
      const text = await readDockerfile(dockerfile, runtime);
      return {
        context,
        files: localFileSystem,
        location: context.absolutePath,
        fetched: undefined,
        dockerfile: { ...dockerfile, text },
        ignore: readIgnoreRules({
          ...ignore,
          defaultExcludes,
          inheritance: dialect.ignoreInheritance,
          warn: options.log.warn,
        }),
        [Symbol.dispose]() {},
      };
    }
    const { openFetchedContext } = await import("../contexts/open-fetched-context.ts");
    return openFetchedContext(
      places.source,
      places.dockerfile,
      { ...settings, dialect, defaultExcludes },
      given,
    );
  }
}

/** What says where the inputs of a build are. */
export interface LocatedBuild extends Pick<BuildRequest, "context" | "inline" | "fetched"> {
  options: Pick<BuildRequest["options"], "dockerfile">;
  runtime: Pick<Runtime, "workingDirectory">;
}

/** Returns the paths of a build's inputs, whether or not they exist. */
export function locateInputs({
  context,
  options: { dockerfile: given },
  runtime: { workingDirectory },
  inline,
  fetched,
}: LocatedBuild): InputPlaces {
  // As in docker build. A file named - is given as ./-.
  const named = given === "-" ? "/dev/stdin" : given;
  const source: ContextSource =
    fetched === undefined
      ? readContextSource(context, workingDirectory)
      : { kind: "fetched", context: fetched };
  if (inline !== undefined) return locateInline(inline, source, resolve(workingDirectory, context));
  // With a fetched context, only an absolute path names a Dockerfile of this machine, as in Docker.
  if (source.kind !== "directory" && !(named !== undefined && isAbsolute(named)))
    return { isFetched: true, source, dockerfile: undefined };
  const contextPath = resolve(workingDirectory, context);
  const path =
    named ??
    join(
      context,
      dockerfileName((name) => existsSync(join(contextPath, name))),
    );
  const absolutePath = resolve(workingDirectory, path);
  const dockerfile = { path, absolutePath, isNamed: named !== undefined };
  if (source.kind !== "directory") return { isFetched: true, source, dockerfile };
  const ignore = { contextPath, dockerfilePath: absolutePath };
  return { isFetched: false, source, dockerfile, ignore };
}

/** Locates a Dockerfile that is given as text: at a path that does not exist, so that steps are remembered for each name. */
function locateInline(
  { text, name }: { text: string; name: string },
  source: ContextSource,
  contextPath: string,
): InputPlaces {
  const absolutePath = join(contextPath, `.inline-dockerfile-of-${name}`);
  const dockerfile = { path: `${name} (dockerfile-inline)`, absolutePath, isNamed: true, text };
  if (source.kind !== "directory") return { isFetched: true, source, dockerfile };
  return { isFetched: false, source, dockerfile, ignore: { contextPath, dockerfilePath: absolutePath } };
}

/** Ends an endless response before the service's disk is full. */
export const defaultMaxAddBytes = 16 * 1024 ** 3;

/** `--network=host` gives every RUN the host's network, and so allows it, too. */
function networkPolicyOf({
  network: mode = "default",
  allow = [],
  "add-host": hosts = [],
}: BuildRequest["options"]): NetworkPolicy {
  return { mode, allowsHost: mode === "host" || allow.includes("network.host"), hosts };
}

function labelsOf(
  { label: labels = new Map() }: BuildRequest["options"],
  dialect: Dialect,
): ReadonlyMap<string, string> {
  if (labels.size === 0 || dialect.keepsConfiguration) return labels;
  throw usageError(
    wording`--label needs ${{ option: "docker" }}`,
    wording`Without ${{ option: "docker" }} an image has no labels, not even those of the Dockerfile.`,
  );
}

/** As in buildx, `--no-cache-filter` can't be used with `--no-cache`. */
function uncachedStagesOf({
  "no-cache": rebuildsAll,
  "no-cache-filter": stages = [],
}: BuildRequest["options"]): readonly string[] {
  if (stages.length === 0 || rebuildsAll !== true) return stages;
  throw usageError(
    wording`${{ option: "no-cache" }} and ${{ option: "no-cache-filter" }} cannot be used together`,
    wording`${{ option: "no-cache" }} builds all stages again.`,
  );
}

/** Returns what the hashes of a context's files are stored under. The directory of a fetched context differs with each commit. */
export function fileTableOf({ fetched, context, location }: BuildInputs): string {
  return fetched === undefined ? context.realPath : location;
}
