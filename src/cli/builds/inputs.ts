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
import type { Values } from "../command-line/arguments.ts";
import { readPlatforms, splitPair } from "../command-line/option-values.ts";
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
import { readNetworkPolicy } from "../run/network-option.ts";
import { openNamedContexts } from "./options/build-contexts.ts";
import { chooseDialect } from "./options/dialect.ts";
import { readSecretOptions, type SecretOptions } from "./options/secret-options.ts";
import type { BakedTarget, BuildInvocation } from "./request.ts";

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

type GivenInputs = Pick<BuildInvocation, "values" | "runtime" | "globals" | "entries"> & BakedTarget;

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
  const { values, runtime } = given;
  const network = readNetworkPolicy(values);
  const dialect = chooseDialect(given);
  const buildArgs = readBuildArgs(values.list("build-arg"), runtime.environment);
  const epoch = sourceDateEpoch(given);
  // As for docker buildx, the variable is the value of `ARG SOURCE_DATE_EPOCH`, too.
  if (dialect.hasSourceDate && epoch !== undefined) buildArgs.set("SOURCE_DATE_EPOCH", epoch);
  const labels = readLabels(values.list("label"), dialect);
  const allowsLocalFrom = values.flag("allow-local-from");
  const platforms = readPlatforms(values.text("platform"));
  const target = values.text("target");
  const uncachedStages = readUncachedStages(values, runtime);
  const holder = new DisposableStack();
  const secrets = holder.use(readSecretOptions(given.entries, runtime));
  const maxAddBytes = readMaxAddBytes(values.text("max-add-size"));
  const places = locateInputs(given);
  const defaultExcludes = dialect.filtersContexts && !values.flag("no-default-excludes");
  const settings = { buildArgs, secrets, maxAddBytes, ...options };
  const contexts = await openNamedContexts(
    given,
    prepareFetches({ settings, runtime, holder, lock, mainPlace: () => opened.place }),
    options.log.warn,
  );
  const opened = holder.use(await open(places));
  return {
    ...{ ...opened, contexts },
    ...{ buildArgs, labels, allowsLocalFrom, network, dialect, platforms, target, uncachedStages, secrets },
    maxAddBytes,
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
        place: context.absolutePath,
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

/** Returns the paths of a build's inputs, whether or not they exist. */
export function locateInputs({
  values,
  runtime: { workingDirectory },
  inline,
  fetched,
}: {
  values: Values;
  runtime: Pick<Runtime, "workingDirectory">;
} & BakedTarget): InputPlaces {
  const context = values.positionals[0] ?? ".";
  // As in docker build. A file named - is given as ./-.
  const named = values.text("dockerfile") === "-" ? "/dev/stdin" : values.text("dockerfile");
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

/** Its place is a file that does not exist, so that steps are remembered for each name. */
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

/** Reads `--build-arg`. As in Docker, a name alone takes its value from the environment, and is ignored if it is unset there. */
function readBuildArgs(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Map<string, string> {
  const values = new Map<string, string>();
  for (const text of given) {
    const [name, value = environment[name]] = splitKeyValue(text, "--build-arg");
    if (value === undefined) values.delete(name);
    else values.set(name, value);
  }
  return values;
}

/** Ends an endless response before the service's disk is full. */
export const defaultMaxAddBytes = 16 * 1024 ** 3;

/** Reads a size such as `500M`. K, M, G and T are powers of 1024; 0 means no limit. */
function readMaxAddBytes(text: string | undefined): number {
  if (text === undefined) return defaultMaxAddBytes;
  const [, digits, unit = ""] = /^(\d{1,15})([KMGT])?i?B?$/i.exec(text) ?? [];
  if (digits === undefined) {
    throw usageError(
      wording`${{ option: "max-add-size" }} takes a size, not ${JSON.stringify(text)}`,
      wording`Write a number of bytes, or one with a unit: ${{ option: "max-add-size" }} 500M.`,
    );
  }
  const bytes = Number(digits) * 1024 ** " KMGT".indexOf(unit.toUpperCase() || " ");
  return bytes === 0 ? Number.POSITIVE_INFINITY : bytes;
}

/** Reads the values of `--label` as docker build does: a key alone has an empty value, and the last one counts. */
function readLabels(given: readonly string[], dialect: Dialect): Map<string, string> {
  if (given.length > 0 && !dialect.keepsConfiguration)
    throw usageError(
      wording`--label needs ${{ option: "docker" }}`,
      wording`Without ${{ option: "docker" }} an image has no labels, not even those of the Dockerfile.`,
    );
  return new Map(
    given.map((text): [string, string] => {
      const [key, value = ""] = splitKeyValue(text, "--label");
      return [key, value];
    }),
  );
}

/** Reads `--no-cache-filter STAGE[,STAGE...]`. As in buildx, it can't be used with `--no-cache`. */
function readUncachedStages(values: Values, { isPlugin }: Pick<Runtime, "isPlugin">): string[] {
  const given = values.list("no-cache-filter").flatMap((text) => text.split(","));
  // buildx leaves out empty ones.
  const names = isPlugin === true ? given.filter((name) => name !== "") : given;
  if (names.includes(""))
    throw usageError(
      wording`${{ option: "no-cache-filter" }} takes the names of stages, separated by commas: one is empty`,
      wording`${{ option: "no-cache" }} builds all stages again.`,
    );
  if (names.length > 0 && values.flag("no-cache"))
    throw usageError(
      wording`${{ option: "no-cache" }} and ${{ option: "no-cache-filter" }} cannot be used together`,
      wording`${{ option: "no-cache" }} builds all stages again.`,
    );
  return [...new Set(names)];
}

/** Splits `KEY=VALUE` or `KEY`, the value of `option`. */
function splitKeyValue(text: string, option: string): [key: string, value: string | undefined] {
  const pair = splitPair(text);
  if (pair[0] !== "") return pair;
  throw usageError(`${option} takes KEY=VALUE or KEY, not ${JSON.stringify(text)}`, "The name is missing.");
}

/** Returns what the hashes of a context's files are stored under. The directory of a fetched context differs with each commit. */
export function fileTableOf({ fetched, context, place }: BuildInputs): string {
  return fetched === undefined ? context.realPath : place;
}
