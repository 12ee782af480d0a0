import { resolve } from "node:path";
import type { ScopeChoice } from "../../../builder/scopes/open-scopes.ts";
import { parseScopeName } from "../../../builder/scopes/scope-name.ts";
import type { KeyFile, ScopeKeys } from "../../../builder/scopes/signature.ts";
import { fileError } from "../../../context/file-system/file-error.ts";
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { sourcesOf, storeOfScope, targetOf, targetsOf } from "../../cache/cache-stores.ts";
import { type CacheEntry, parseCaches, parseWrittenCaches } from "../../entries/cache.ts";
import { isEmbedded } from "../../service/choice.ts";
import type { BuildInvocation } from "../request.ts";

/** The scopes that a build shares its cache in, and their keys. */
export interface ScopeOptions extends ScopeChoice {
  keys: ScopeKeys;
  /** The reason for the choice of `--cache auto`; `undefined` if the scopes are named. */
  reason: string | undefined;
}

type Given = Pick<BuildInvocation, "options" | "runtime" | "globals" | "log">;

/** Reads the options. `context` is the absolute path of a local context. Rejects with a BoughError of kind `usage`. */
export async function readScopeOptions(given: Given, context: string | undefined): Promise<ScopeOptions> {
  const { options, runtime } = given;
  const { "cache-from": cacheFrom = [], "cache-to": cacheTo = [] } = options;
  const named = namedScopes(given);
  const isAutomatic = options.cache === "auto";
  const isNamed = cacheTo.length > 0 || cacheFrom.length > 0;
  if (isAutomatic && isNamed)
    throw usageError(
      wording`--cache auto chooses the scopes itself: it cannot be used with ${{ option: "cache-from" }} or ${{ option: "cache-to" }}`,
      "Leave one of them out.",
    );
  const choice = isAutomatic ? await chooseScopes(given, context) : { ...named, reason: undefined };
  const keys = await readKeys(given);
  // A cache that this job may not write is one, too.
  const writes =
    cacheTo.some(({ kind }) => kind !== "none") || (runtime.environment.BOUGH_CACHE_TO ?? "") !== "";
  if (keys.sign !== undefined && !writes && !isAutomatic)
    throw usageError(
      wording`${{ option: "cache-sign" }} needs ${{ option: "cache-to" }}`,
      wording`Name a scope with ${{ option: "cache-to" }} NAME.`,
    );
  return { ...choice, keys };
}

async function chooseScopes({ runtime, globals }: Given, context: string | undefined) {
  const { chooseAutomatically } = await import("./automatic-scopes.ts");
  const choice = chooseAutomatically(runtime.environment, context);
  const { BOUGH_CACHE_REGISTRY = "" } = runtime.environment;
  // A service keeps the scopes itself, which needs no transfers.
  if (BOUGH_CACHE_REGISTRY === "" || !isEmbedded(runtime, globals)) return choice;
  const { from, to, reason } = choice;
  const storeOf = (scope: string) => storeOfScope(BOUGH_CACHE_REGISTRY, scope);
  const target = to === undefined ? [] : [targetOf(storeOf(to), "max")];
  return { from: [], to: undefined, caches: { from: from.map(storeOf), to: target }, reason };
}

/** Returns the caches that options or variables name. An option with an empty name overrides its variable with no cache. */
function namedScopes({
  options: { "cache-from": cacheFrom = [], "cache-to": cacheTo = [] },
  runtime,
  log,
}: Given): ScopeChoice {
  const { environment, workingDirectory, github, isPlugin = false } = runtime;
  const { BOUGH_CACHE_TO = "", BOUGH_CACHE_FROM = "" } = environment;
  const usable = <Entry extends CacheEntry>(given: readonly Entry[], option: string) =>
    given.filter((entry) => {
      if (!isPlugin || entry.kind !== "unsupported") return true;
      // Pipelines name them for docker, and a build without its cache is the same build.
      log.warn(`${option}: type=${entry.type} is not supported: it is left out`);
      return false;
    });
  const [from, to] = [usable(cacheFrom, "--cache-from"), usable(cacheTo, "--cache-to")];
  const [fromEntries, fromOption] =
    from.length > 0
      ? [from, "--cache-from"]
      : [
          wordsIn(BOUGH_CACHE_FROM).flatMap((text) => parseCaches(text, "BOUGH_CACHE_FROM")),
          "BOUGH_CACHE_FROM",
        ];
  const [toEntries, toOption] =
    to.length > 0
      ? [to, "--cache-to"]
      : [
          wordsIn(BOUGH_CACHE_TO).flatMap((text) => parseWrittenCaches(text, "BOUGH_CACHE_TO")),
          "BOUGH_CACHE_TO",
        ];
  const reading = { workingDirectory, environment, github, isPlugin, warn: log.warn };
  const sources = sourcesOf(fromEntries, { ...reading, option: fromOption });
  const targets = targetsOf(toEntries, { ...reading, option: toOption });
  const [scope, second] = targets.scopes.map((text) => parseScopeName(text, toOption));
  if (second !== undefined)
    throw usageError(
      `${toOption} names two scopes`,
      "A build writes one scope, and any number of other caches.",
    );
  return {
    from: [...new Set(sources.scopes.map((text) => parseScopeName(text, fromOption)))],
    to: scope,
    caches: { from: sources.stores, to: targets.stores },
  };
}

/** A variable can't be repeated as an option can. */
function wordsIn(variable: string): string[] {
  return variable.split(/\s+/).filter((word) => word !== "");
}

const maxKeyBytes = 64 * 1024;

/** Reads the keys. Loads the code that signs and verifies only if one is given. */
async function readKeys({
  options: { "cache-sign": signing, "cache-verify": verifying = [] },
  runtime: { workingDirectory, inputs, signal },
}: Given): Promise<ScopeKeys> {
  if (signing === undefined && verifying.length === 0)
    return { sign: undefined, verify: undefined, trusted: undefined };
  const read = async (option: string, path: string): Promise<KeyFile> => {
    try {
      const bytes = await inputs.read(resolve(workingDirectory, path), { maxBytes: maxKeyBytes, signal });
      return { path, content: bytes.toString() };
    } catch (error) {
      signal.throwIfAborted();
      throw usageError(
        `${option}: ${fileError("read", path, error).message}`,
        "It takes a file with a key in PEM format.",
      );
    }
  };
  const { readScopeKeys } = await import("../../../builder/scopes/signature.ts");
  return readScopeKeys(
    signing === undefined ? undefined : await read("--cache-sign", signing),
    await Promise.all(verifying.map((path) => read("--cache-verify", path))),
  );
}
