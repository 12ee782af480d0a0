/** `--annotation` of a build, as docker buildx build has it. */
import { messageOf, usageError } from "../../errors.ts";
import type { AnnotatedPart, Annotations } from "../../image/image-writer.ts";
import { formatPlatform, isSamePlatform, type Platform, parsePlatform } from "../../image/platform.ts";
import { listWords } from "../command-line/option-values.ts";
import type { BuildOutput } from "./build-outputs.ts";

const annotatedParts: readonly AnnotatedPart[] = [
  "manifest",
  "manifest-descriptor",
  "index",
  "index-descriptor",
];

export interface AnnotationOptions {
  /** Returns those of the image for a platform, or of the only one. Those for this platform replace those for each. */
  partsFor(platform: Platform | undefined): Annotations;
  /** The platforms that `manifest[OS/ARCH]:` names. */
  platforms: readonly Platform[];
}

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

/**
 * Reads `[TYPE[,TYPE...]:]KEY=VALUE`, in which a TYPE may have a platform in brackets. Throws if no output has the part that is to
 * be annotated. `hasIndex`: an index names the image.
 */
export function readAnnotations(
  given: readonly string[],
  outputs: readonly BuildOutput[],
  hasIndex: boolean,
): AnnotationOptions | undefined {
  if (given.length === 0) return undefined;
  const annotations = given.flatMap((text) => parseAnnotation(text, "manifest"));
  for (const { part, text } of annotations) requirePart(part, text, outputs, hasIndex);
  return {
    platforms: annotations.flatMap(({ platform }) => platform ?? []),
    partsFor(target) {
      const parts: Partial<Record<AnnotatedPart, Map<string, string>>> = {};
      const ofEach = annotations.filter(({ platform }) => platform === undefined);
      const own = annotations.filter(
        ({ platform }) =>
          platform !== undefined && (target === undefined || isSamePlatform(platform, target)),
      );
      for (const { part, key, value } of [...ofEach, ...own]) {
        parts[part] ??= new Map();
        parts[part].set(key, value);
      }
      return parts;
    },
  };
}

/** Parses the value of one `--annotation`. `otherwise`: the part that is meant if no TYPE is given. */
export function parseAnnotation(text: string, otherwise: AnnotatedPart): Annotation[] {
  const [, types = otherwise, key = "", value] = /^(?:([^:=]*):)?([^=]*)(?:=(.*))?$/s.exec(text) ?? [];
  if (value === undefined || key === "" || /\s/.test(key))
    throw usageError(
      `--annotation takes KEY=VALUE, not ${JSON.stringify(text)}`,
      "For example: --annotation org.opencontainers.image.revision=1a2b3c.",
    );
  return types.split(",").map((type) => ({ ...readType(type, text, otherwise), key, value, text }));
}

/** Throws if an annotation is for a platform that the image does not have. */
export function requireAnnotatedPlatforms(
  { platforms }: AnnotationOptions,
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

function requirePart(
  part: AnnotatedPart,
  text: string,
  outputs: readonly BuildOutput[],
  hasIndex: boolean,
): void {
  const kinds = outputs.flatMap(({ destinations }) => destinations.map(({ kind }) => kind));
  const isLayout = kinds.includes("oci") || kinds.includes("oci-archive");
  if (!isLayout && !kinds.includes("registry"))
    throw usageError(
      "--annotation needs an image that is written in OCI form or pushed",
      "Give -o type=oci,dest=PATH, or --push. --label KEY=VALUE keeps labels in every form.",
    );
  if ((part === "index" || part === "index-descriptor") && !hasIndex)
    throw usageError(
      `--annotation ${text}: no index is written, since the image has one platform`,
      "Leave the type out, for the manifest. Several platforms have an index, and so have --provenance and --sbom.",
    );
  const isInLayout = part === "index-descriptor" || (part === "manifest-descriptor" && !hasIndex);
  if (isInLayout && !isLayout)
    throw usageError(
      `--annotation ${text}: a registry keeps no such descriptor`,
      "Leave the type out, for the manifest. -o type=oci,dest=PATH writes a layout, which lists its images by descriptors.",
    );
}
