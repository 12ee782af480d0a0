/** Parsers of the options of a build. They are apart from the definitions, so that help need not load them. */
import { usageError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import { normalizedName } from "../../../registry/repository.ts";
import type { Values } from "../../command-line/arguments.ts";
import { oneOf, parsePlatforms, positiveInteger, splitPair } from "../../command-line/option-values.ts";
import { type OptionParsers, type OptionsOf, readOptions } from "../../command-line/options.ts";
import { parseAgent } from "../../entries/agent.ts";
import { parseAttestation, parseAttestationOf } from "../../entries/attestation.ts";
import { parseCaches, parseWrittenCaches } from "../../entries/cache.ts";
import { parseContext } from "../../entries/context.ts";
import { parseOutput } from "../../entries/output.ts";
import { parseSecret } from "../../entries/secret.ts";
import { parseAnnotation } from "../../export/annotations.ts";
import type { Runtime } from "../../process/runtime.ts";
import { limitParsers } from "../../run/limit-options.ts";
import { parseEntitlements, parseHosts, parseNetworkMode } from "../../run/network-option.ts";
import { parseTimeout } from "../../service/timeout.ts";
import { parseSign } from "../../signing/sign-option.ts";
import { inputDefinitions, parseCall, parseCheck } from "./input-definitions.ts";
import { parsePlatformServices } from "./platform-services.ts";
import { parseProgressMode, resultDefinitions } from "./result-definitions.ts";

const buildDefinitions = { ...inputDefinitions, ...resultDefinitions };

type BuildDefinitions = typeof buildDefinitions;

/** Returns what a command line asks for. */
export function readBuildRequest(
  values: Values,
  runtime: Parameters<typeof buildParsers>[0],
): { context: string; options: BuildOptionValues } {
  const [context = "."] = values.positionals;
  const buildArgs = new Map(Object.entries(runtime.defaultBuildArgs ?? {}));
  const options = readOptions(values, buildDefinitions, buildParsers(runtime));
  return { context, options: { "build-arg": buildArgs, ...options } };
}

/** The options of a build, parsed. */
export type BuildOptionValues = OptionsOf<BuildDefinitions, ReturnType<typeof buildParsers>>;

/** `isPlugin`: the words are docker's, for which the name of a cache is one of an image. */
function buildParsers({
  environment,
  isPlugin = false,
  defaultBuildArgs,
}: Pick<Runtime, "environment" | "isPlugin" | "defaultBuildArgs">) {
  // A name that scopes can have too stays one.
  const cacheText = (text: string) =>
    isPlugin && /^[^=]*[:@][^=]*$/.test(text) ? `type=registry,ref=${normalizedName(text)}` : text;
  return {
    ...limitParsers,
    ...{ call: parseCall, check: parseCheck, progress: parseProgressMode, "on-error": parseOnError },
    ...{ network: parseNetworkMode, allow: parseEntitlements, "add-host": parseHosts },
    ...{ sign: parseSign, label: parseLabels, "max-add-size": parseMaxAddBytes, cache: parseCacheChoice },
    platform: (text: string) => parsePlatforms([text]),
    "platform-service": parsePlatformServices,
    "build-arg": (given: readonly string[]) => parseBuildArgs(given, environment, defaultBuildArgs),
    "build-context": (given: readonly string[]) => given.map(parseContext),
    secret: (given: readonly string[]) => given.map(parseSecret),
    ssh: (given: readonly string[]) => given.map(parseAgent),
    "cache-from": (given: readonly string[]) =>
      given.flatMap((text) => parseCaches(cacheText(text), "--cache-from")),
    "cache-to": (given: readonly string[]) =>
      given.flatMap((text) => parseWrittenCaches(cacheText(text), "--cache-to")),
    "no-cache-filter": (given: readonly string[]) => parseStages(given, isPlugin),
    annotation: (given: readonly string[]) => given.flatMap((text) => parseAnnotation(text, "manifest")),
    output: (given: readonly string[]) => given.map(parseOutput),
    attest: (given: readonly string[]) => given.map(parseAttestation),
    provenance: (text: string) => parseAttestationOf("provenance", text),
    sbom: (text: string) => parseAttestationOf("sbom", text),
    jobs: (text: string) => positiveInteger(text, "--jobs", "It is a number of steps, as in --jobs 4."),
    timeout: parseRunTimeout,
  } satisfies OptionParsers<BuildDefinitions>;
}

function parseOnError(text: string): "shell" {
  return oneOf(text, ["shell"], "--on-error");
}

function parseCacheChoice(text: string): "auto" {
  if (text === "auto") return text;
  throw usageError(
    `--cache takes auto, not ${JSON.stringify(text)}`,
    wording`Scopes are named with ${{ option: "cache-from" }} and ${{ option: "cache-to" }}.`,
  );
}

/** Parses the time that each RUN may take. */
function parseRunTimeout(text: string): ReturnType<typeof parseTimeout> {
  // The -t of docker build is a tag.
  const [tag = "NAME:TAG"] = /^[a-z].*/is.exec(text) ?? [];
  return parseTimeout(text, `It takes seconds, as in --timeout 1800. To tag the image, use --tag ${tag}.`);
}

/** As in docker, a name alone takes the value of this process's variable, if that is set. */
function parseBuildArgs(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
  defaults: Readonly<Record<string, string>> = {},
): ReadonlyMap<string, string> {
  const values = new Map(Object.entries(defaults));
  for (const text of given) {
    const [name, value = environment[name]] = splitKeyValue(text, "--build-arg");
    if (value === undefined) values.delete(name);
    else values.set(name, value);
  }
  return values;
}

/** As in docker, a key alone has an empty value, and the last one counts. */
function parseLabels(given: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    given.map((text): [string, string] => {
      const [key, value = ""] = splitKeyValue(text, "--label");
      return [key, value];
    }),
  );
}

/** Splits `KEY=VALUE` or `KEY`, the value of `option`. */
function splitKeyValue(text: string, option: string): [key: string, value: string | undefined] {
  const pair = splitPair(text);
  if (pair[0] !== "") return pair;
  throw usageError(`${option} takes KEY=VALUE or KEY, not ${JSON.stringify(text)}`, "The name is missing.");
}

/** Parses a size such as `500M`. K, M, G and T are powers of 1024; 0 means no limit. */
function parseMaxAddBytes(text: string): number {
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

/** Parses `--no-cache-filter STAGE[,STAGE...]`. */
export function parseStages(given: readonly string[], isPlugin = false): string[] {
  const all = given.flatMap((text) => text.split(","));
  // buildx leaves out empty ones.
  const names = isPlugin ? all.filter((name) => name !== "") : all;
  if (!names.includes("")) return [...new Set(names)];
  throw usageError(
    wording`${{ option: "no-cache-filter" }} takes the names of stages, separated by commas: one is empty`,
    wording`${{ option: "no-cache" }} builds all stages again.`,
  );
}
