import { resolve } from "node:path";
import { describeMissing, type MissingPart } from "../../builder/state/warnings.ts";
import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError, usageError } from "../../errors.ts";
import { normalizedName } from "../../registry/repository.ts";
import { parseTag, withLatest } from "../../service/images/reference.ts";
import { type ImageForm, type OutputEntry, parseOutput, unusable } from "../entries/output.ts";
import type { Runtime } from "../process/runtime.ts";
import { isSameFile } from "../process/same-file.ts";
import type { Annotation } from "./annotations.ts";
import {
  type Destination,
  digestDestination,
  goesToStandardOutput,
  type OutputDestination,
  pushDestination,
  refuseTerminal,
} from "./destination.ts";
import type { TimeOptions } from "./image-source.ts";
import { requirePlaces } from "./output-places.ts";
import { readTimes } from "./times.ts";

/** How an output writes the image. */
export interface OutputForm extends Omit<ImageForm, "rewritesTimestamps"> {
  times: TimeOptions;
}

/** One `--output` of a build, or its `--push`. */
export interface BuildOutput extends OutputForm, Pick<OutputEntry, "splitsPlatforms" | "isInsecure"> {
  destinations: readonly OutputDestination[];
  /** Further tags of the image. */
  tags: readonly string[];
  annotations: readonly Annotation[];
  /** Sentences on fields that make no difference. */
  ignored: readonly string[];
}

/** The options of outputs, as they are given. */
interface GivenOutputs {
  readonly output?: readonly OutputEntry[] | undefined;
  readonly push?: boolean | undefined;
  readonly load?: boolean | undefined;
}

type Given = Parameters<typeof readTimes>[1] & {
  options: GivenOutputs & { readonly tag?: readonly string[] | undefined };
  runtime: Pick<Runtime, "isPlugin" | "stdout">;
};

/** Returns all outputs: those of `--output`, `--push` and `--load`. */
function outputsIn({ output = [], push, load }: GivenOutputs): OutputEntry[] {
  return [
    ...output,
    ...(push === true ? [parseOutput("type=registry")] : []),
    ...(load === true ? [parseOutput("type=docker")] : []),
  ];
}

/**
 * Reads `-o/--output` and `--push`, which are those of docker buildx build. Throws before the build if one is impossible.
 * https://docs.docker.com/reference/cli/docker/buildx/build/#output
 */
export function readBuildOutputs(given: Given, tags: readonly string[]): BuildOutput[] {
  const outputs = outputsIn(given.options).map((entry) => readOutput(entry, tags, given));
  if (standardOutputs(outputs) > 1)
    throw new BoughError("two outputs can't both go to standard output", { kind: "usage" });
  requireOwnFiles(outputs);
  requirePlaces(outputs.flatMap(({ destinations }) => destinations));
  return outputs;
}

/**
 * Returns how the outputs write the image that a registry or a layout gets. Whether that is possible here, and whether it is pushed
 * now, makes no difference.
 */
export function readOutputForms(given: Given): OutputForm[] {
  return outputsIn(given.options)
    .filter(({ type }) => ["oci", "image", "registry"].includes(type))
    .map((entry) => formOf(entry, given));
}

function formOf(
  { compression, recompresses, hasDockersTypes, givenAnnotations, rewritesTimestamps }: ImageForm,
  given: Given,
): OutputForm {
  const times = readTimes(rewritesTimestamps, given);
  return { compression, recompresses, hasDockersTypes, givenAnnotations, times };
}

function readOutput(entry: OutputEntry, tags: readonly string[], given: Given): BuildOutput {
  const { text, type, dest, byDigest, splitsPlatforms, isInsecure, unknown } = entry;
  const { options, runtime } = given;
  // A push by digest needs the names as they are given: none has a tag.
  const named = entry.names ?? (byDigest ? (options.tag ?? []) : tags);
  // Where users write docker's command line, a name without a host is one of Docker Hub.
  const isForHub = runtime.isPlugin === true && ["image", "registry"].includes(type);
  const names = isForHub ? named.map(normalizedName) : named;
  const path = dest === undefined || dest === "-" ? undefined : resolve(runtime.workingDirectory, dest);
  const output = {
    ...{ splitsPlatforms, isInsecure, annotations: [] },
    // The name of an image that is pushed by its digest is that of a repository.
    tags: type === "image" && !byDigest ? named.map(parseTag) : [],
    destinations: destinationsOf(entry, path, names),
    ...formOf(entry, given),
    // As docker does, in its place.
    ignored: [
      ...entry.ignored,
      ...unknown.map((field) => `--output: ${field} is ignored: it is not known here`),
    ],
  };
  if (unknown.length > 0 && runtime.isPlugin !== true) throw unusable(text, `unknown field ${unknown[0]}`);
  for (const destination of output.destinations) {
    if (destination.kind !== "local") refuseTerminal(destination, runtime.stdout);
  }
  return output;
}

/** Throws unless every output has an index, which holds the attestations. `option`: the one that asks for them. */
export function requireIndexes(outputs: readonly BuildOutput[], option: string): void {
  if (haveIndexes(outputs)) return;
  const unfit = withoutIndex(outputs);
  throw new BoughError(
    unfit === undefined
      ? `${option} needs an image that is written or pushed`
      : `${option}: ${unfit === "docker-archive" ? "type=docker" : `type=${unfit}`} does not support it`,
    { kind: "usage", hint: "Give -o type=oci,dest=PATH, or --push." },
  );
}

/** True if one of them is for a registry. */
export function isPushed(outputs: readonly BuildOutput[]): boolean {
  return outputs.some(({ destinations }) => destinations.some(({ kind }) => kind === "registry"));
}

/** True if one of them is for docker's daemon. */
export function isForDaemon(outputs: readonly BuildOutput[]): boolean {
  return outputs.some(({ destinations }) => destinations.some(({ kind }) => kind === "daemon"));
}

/** True for an image that is pushed or loaded: docker's builder has provenances of its own accord only there. */
export function isInline({ kind }: Pick<OutputDestination, "kind">): boolean {
  return kind === "registry" || kind === "daemon";
}

export function isAnyInline(outputs: readonly BuildOutput[]): boolean {
  return outputs.some(({ destinations }) => destinations.some(isInline));
}

/** True if every output has an index, and there is one. */
function haveIndexes(outputs: readonly BuildOutput[]): boolean {
  return outputs.some(({ destinations }) => destinations.length > 0) && withoutIndex(outputs) === undefined;
}

function withoutIndex(outputs: readonly BuildOutput[]): string | undefined {
  return outputs
    .flatMap(({ destinations }) => destinations.map(({ kind }) => kind))
    .find((kind) => !["oci", "oci-archive", "registry", "daemon"].includes(kind));
}

/** Throws if an output has no place for the images of several platforms. */
export function requirePlatformsFit(outputs: readonly BuildOutput[]): void {
  const kinds = outputs.flatMap(({ destinations }) => destinations.map(({ kind }) => kind));
  const unfit = kinds.find((kind) => kind === "docker-archive" || kind === "dir" || kind === "rootfs");
  if (unfit === undefined) return;
  throw new BoughError(
    `${unfit === "docker-archive" ? "type=docker" : `type=${unfit}`} takes the image of one platform`,
    { kind: "usage", hint: "Give -o type=oci,dest=PATH, type=local,dest=PATH or --push, or one --platform." },
  );
}

/**
 * Throws if an image that lacks a part of Docker's would leave this machine, unless `--no-docker` asks for it. The settings of an
 * image count only where they are written.
 */
export function requireCompleteImage(
  missing: readonly MissingPart[],
  outputs: readonly BuildOutput[],
  options: { readonly "no-docker"?: boolean | undefined; readonly push?: boolean | undefined },
): void {
  if (options["no-docker"] === true) return;
  const kinds = outputs.flatMap(({ destinations }) => destinations.map(({ kind }) => kind));
  const hasSettings = kinds.some((kind) => !["local", "tar"].includes(kind));
  const counted = missing.filter(({ what }) => hasSettings || !["CMD", "ENTRYPOINT"].includes(what));
  if (kinds.length === 0 || counted.length === 0) return;
  const [option, does] = options.push === true ? ["--push", "pushes"] : ["--output", "writes"];
  throw usageError(
    `${option} is refused: the image lacks ${describeMissing(counted)}`,
    `With --docker it is built as Docker does; BOUGH_DOCKER=1 makes that the default. --no-docker ${does} it as it is.`,
  );
}

/** True if the image itself goes to standard output, where nothing else may be printed then. */
export function takesStandardOutput(outputs: readonly BuildOutput[]): boolean {
  return standardOutputs(outputs) > 0;
}

/** Throws if two outputs would write one archive. A directory may get several. */
function requireOwnFiles(outputs: readonly BuildOutput[]): void {
  const paths = outputs.flatMap(({ destinations }) => destinations.flatMap(archivePath));
  const repeated = paths.find((path, at) =>
    paths.slice(0, at).some((other) => path === other || isSameFile(path, other)),
  );
  if (repeated !== undefined)
    throw usageError(
      `two outputs can't both be written to ${displayPath(repeated)}`,
      "Give each its own dest=PATH.",
    );
}

function archivePath(destination: OutputDestination): string[] {
  const isArchive = ["oci-archive", "docker-archive", "tar"].includes(destination.kind);
  return isArchive && "path" in destination && destination.path !== undefined ? [destination.path] : [];
}

function standardOutputs(outputs: readonly BuildOutput[]): number {
  return outputs
    .flatMap(({ destinations }) => destinations)
    .filter((destination) => destination.kind !== "local" && goesToStandardOutput(destination)).length;
}

function destinationsOf(
  { text, type, dest, isPushed, byDigest, isArchive }: OutputEntry,
  path: string | undefined,
  names: readonly string[],
): BuildOutput["destinations"] {
  const pathNeeded = () => {
    if (path !== undefined) return path;
    throw unusable(
      text,
      dest === undefined ? "dest=PATH is missing" : "a directory can't go to standard output",
    );
  };
  switch (type) {
    case "local":
      return [{ kind: "local", path: pathNeeded() }];
    case "tar":
      return [{ kind: "tar", path }];
    case "oci": {
      const wholeNames = names.map((each) => normalizedName(withLatest(each)));
      const name = names[0]?.slice(names[0].lastIndexOf(":") + 1);
      const named = { name, wholeNames };
      return [
        isArchive ? { kind: "oci-archive", path, ...named } : { kind: "oci", path: pathNeeded(), ...named },
      ];
    }
    case "docker": {
      if (dest === undefined) return [{ kind: "daemon", names: names.map(withLatest) }];
      if (!isArchive) throw unusable(text, "docker load needs an archive, not a directory");
      const [first, ...otherNames] = names.map(withLatest);
      return [{ kind: "docker-archive", path, name: first, otherNames }];
    }
    case "cacheonly":
      return [];
    case "image":
      return isPushed ? registries(names, byDigest, text) : [];
    case "registry":
      return registries(names, byDigest, text);
  }
}

function registries(names: readonly string[], byDigest: boolean, text: string): Destination[] {
  if (names.length === 0)
    throw unusable(
      text,
      byDigest ? "no name to push to: give name=HOST/NAME" : "no name to push to: give --tag HOST/NAME:TAG",
    );
  return names.map((name) => (byDigest ? digestDestination(name) : pushDestination(name, name)));
}
