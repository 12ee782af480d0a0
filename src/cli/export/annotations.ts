/** `--annotation` of a build, as docker buildx build has it. */
import { messageOf, usageError } from "../../errors.ts";
import type { AnnotatedPart, Annotations } from "../../image/image-writer.ts";
import { formatPlatform, isSamePlatform, type Platform, parsePlatform } from "../../image/platform.ts";
import { listWords, splitPair } from "../command-line/option-values.ts";
import type { Runtime } from "../process/runtime.ts";
import type { OutputDestination } from "./destination.ts";

const annotatedParts: readonly AnnotatedPart[] = [
  "manifest",
  "manifest-descriptor",
  "index",
  "index-descriptor",
];

/** An annotation of one part. */
export interface Annotation {
  part: AnnotatedPart;
  /** `undefined`: each. */
  platform: Platform | undefined;
  key: string;
  value: string;
  /** The option's value. */
  text: string;
}

interface PlacedAnnotations {
  annotations: readonly Annotation[];
  /** Sentences on those that no output keeps. */
  ignored: readonly string[];
}

/**
 * Throws if no output has the part that is to be annotated; in the place of docker's builder it is left out, as docker does.
 */
export function placeAnnotations(
  annotations: readonly Annotation[],
  destinations: readonly OutputDestination[],
  { isPlugin }: Pick<Runtime, "isPlugin">,
): PlacedAnnotations {
  const ignored = new Set<string>();
  for (const { part, text } of annotations) {
    const problem = problemOf(part, text, destinations);
    if (problem === undefined) continue;
    if (isPlugin !== true) throw usageError(problem.message, problem.hint);
    ignored.add(`--annotation ${text} is left out: ${problem.reason}`);
  }
  return { annotations, ignored: [...ignored] };
}

/** Returns the annotations of the image for a platform. Those for this platform replace those for each. */
export function partsFor(annotations: readonly Annotation[], target: Platform): Annotations {
  const parts: Partial<Record<AnnotatedPart, Map<string, string>>> = {};
  const ofEach = annotations.filter(({ platform }) => platform === undefined);
  const own = annotations.filter(
    ({ platform }) => platform !== undefined && isSamePlatform(platform, target),
  );
  for (const { part, key, value } of [...ofEach, ...own]) {
    parts[part] ??= new Map();
    parts[part].set(key, value);
  }
  return parts;
}

/** Parses `[TYPE[,TYPE...]:]KEY=VALUE`, in which a TYPE may have a platform in brackets. `otherwise`: the part that is meant if no TYPE is given. */
export function parseAnnotation(text: string, otherwise: AnnotatedPart): Annotation[] {
  const [, types = otherwise, key = "", value] = /^(?:([^:=]*):)?([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (value === undefined || key === "" || /\s/.test(key))
    throw usageError(
      `--annotation takes KEY=VALUE, not ${JSON.stringify(text)}`,
      "For example: --annotation org.opencontainers.image.revision=1a2b3c.",
    );
  return types.split(",").map((type) => ({ ...readType(type, text, otherwise), key, value, text }));
}

/** Throws if an annotation has no value, or an unknown TYPE. */
export function requireAnnotationType(text: string): void {
  const [head = "", value] = splitPair(text);
  if (value === undefined) parseAnnotation(text, "manifest");
  const end = head.indexOf(":");
  for (const type of end < 0 ? [] : head.slice(0, end).split(","))
    readType(type.replace(/^(index|index-descriptor)\[.*\]$/, "$1"), text, "manifest");
}

/** Throws if an annotation is for a platform that the image does not have. */
export function requireAnnotatedPlatforms(
  platforms: readonly Platform[],
  targets: readonly Platform[],
): void {
  const other = platforms.find((platform) => !targets.some((target) => isSamePlatform(platform, target)));
  if (other !== undefined)
    throw usageError(
      `--annotation for ${formatPlatform(other)}: the image is for ${targets.map(formatPlatform).join(", ")}`,
      "Leave the platform out: the annotation is then that of each platform.",
    );
}

function readType(
  type: string,
  text: string,
  otherwise: AnnotatedPart,
): { part: AnnotatedPart; platform: Platform | undefined } {
  const [, name, platform] = /^([a-z-]+)(?:\[([^\]]*)\])?$/.exec(type) ?? [];
  const part = annotatedParts.find((each) => each === name);
  if (part === undefined)
    throw usageError(
      `--annotation ${text}: unknown type ${JSON.stringify(type)}, expected ${listWords(annotatedParts)}`,
      `For a key with a colon, write --annotation ${otherwise}:KEY=VALUE.`,
    );
  if (platform !== undefined && part !== "manifest" && part !== "manifest-descriptor")
    throw usageError(`--annotation ${text}: ${part} takes no platform`, `Write ${part}:KEY=VALUE.`);
  return { part, platform: platform === undefined ? undefined : readPlatform(platform, text) };
}

function readPlatform(platform: string, text: string): Platform {
  try {
    return parsePlatform(platform);
  } catch (error) {
    throw usageError(
      `--annotation ${text}: ${messageOf(error)}`,
      "Leave the platform out, or give linux/amd64, for example.",
    );
  }
}

interface PartProblem {
  message: string;
  hint: string;
  /** Why docker leaves it out. */
  reason: string;
}

function problemOf(
  part: AnnotatedPart,
  text: string,
  destinations: readonly OutputDestination[],
): PartProblem | undefined {
  const kinds = destinations.map(({ kind }) => kind);
  if (kinds.some(isLayout)) return undefined;
  if (!kinds.includes("registry") && !kinds.includes("daemon"))
    return {
      message: "--annotation needs an image that is written in OCI form or pushed",
      hint: "Give -o type=oci,dest=PATH, or --push. --label KEY=VALUE keeps labels in every form.",
      reason: "nothing that is written keeps annotations",
    };
  if (part !== "index-descriptor") return undefined;
  return {
    message: `--annotation ${text}: a registry keeps no such descriptor`,
    hint: "Leave the type out, for the manifest. -o type=oci,dest=PATH writes a layout, which lists its images by descriptors.",
    reason: "a registry keeps no such descriptor",
  };
}

/** True if an image has an index for its annotations, also with one platform. A layout's list of images has descriptors, too. */
export function needIndex(annotations: Annotations | undefined, kind: OutputDestination["kind"]): boolean {
  const parts = isLayout(kind) ? indexParts : [...indexParts, "manifest-descriptor" as const];
  return parts.some((part) => annotations?.[part] !== undefined);
}

const indexParts = ["index", "index-descriptor"] as const;

function isLayout(kind: OutputDestination["kind"]): boolean {
  return kind === "oci" || kind === "oci-archive";
}
