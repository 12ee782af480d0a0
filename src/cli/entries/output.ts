import { BoughError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { type Compression, findCompression } from "../../image/compression.ts";
import { splitCsv } from "../command-line/option-values.ts";

const outputTypes = ["oci", "docker", "tar", "local", "image", "registry", "cacheonly"] as const;

/** What is written of an image, and where to. Whether that is possible here has not been looked at. */
export interface OutputEntry extends ImageForm {
  /** As it was given, for messages. */
  text: string;
  type: (typeof outputTypes)[number];
  /** `-`: standard output. */
  dest: string | undefined;
  /** `undefined`: the tags of the build. */
  names: readonly string[] | undefined;
  /** `push` of `type=image`. */
  isPushed: boolean;
  byDigest: boolean;
  /** False for a directory in place of an archive. */
  isArchive: boolean;
  /** `platform-split`: true if files get a directory for each platform. Default: if there are several. */
  splitsPlatforms: boolean | undefined;
  isInsecure: boolean;
  /** Sentences on fields that make no difference. */
  ignored: readonly string[];
  /** Names of fields that neither docker nor bough has. */
  unknown: readonly string[];
}

/** How an image is written. */
export interface ImageForm {
  compression: Compression;
  /** True if layers of bases are compressed again, where they have another compression. */
  recompresses: boolean;
  /** True for Docker's media types in place of OCI's. */
  hasDockersTypes: boolean;
  rewritesTimestamps: boolean;
  /** The fields `annotation.KEY=VALUE`, as `--annotation` has them. */
  givenAnnotations: readonly string[];
}

/** Fields of docker buildx that make no difference, and why. */
const ignoredFields: Readonly<Record<string, string>> = {
  "attestation-prefix": "attestations are in the image's index",
  "compression-level": "the level is fixed, so that the same image is always the same bytes",
  "dangling-name-prefix": "an image without a tag has an id",
  store: "the image stays with the service in any case",
  unpack: "images are always unpacked",
};

/** Parses a value of `--output`, as docker buildx does. */
export function parseOutput(text: string): OutputEntry {
  return outputOf(parseFields(text), text);
}

/** Returns the output that the fields mean. An empty field is as if it were not given. `text`: how they were written, for messages. */
export function outputOf(given: ReadonlyMap<string, string>, text: string): OutputEntry {
  const fields = new Map(given);
  const take = (name: string) => {
    const value = fields.get(name);
    fields.delete(name);
    return value === "" ? undefined : value;
  };
  const flag = (name: string) => {
    const value = take(name);
    return value === undefined ? undefined : parseFlag(value, name, text);
  };
  const type = readType(take("type"), text);
  const entry = {
    ...{ text, type, dest: take("dest"), names: take("name")?.split(",") },
    isPushed: type === "image" && flag("push") === true,
    byDigest: flag("push-by-digest") ?? false,
    isArchive: flag("tar") ?? true,
    splitsPlatforms: flag("platform-split"),
    isInsecure: flag("registry.insecure") ?? false,
    compression: readCompression(take("compression"), text),
    recompresses: flag("force-compression") ?? false,
    hasDockersTypes: flag("oci-mediatypes") === false,
    rewritesTimestamps: flag("rewrite-timestamp") ?? false,
    givenAnnotations: takeAnnotations(fields),
    ignored: Object.entries(ignoredFields).flatMap(([field, why]) =>
      take(field) === undefined ? [] : [`--output: ${field} is ignored: ${why}`],
    ),
  };
  // Asks for what is so in any case: an image is found by its digest.
  flag("name-canonical");
  return { ...entry, unknown: [...fields.keys()] };
}

/** Parses `key=value,...`. As in docker, a word without `=` is a directory, and `-` is an archive on standard output. */
function parseFields(text: string): Map<string, string> {
  if (!/[=,]/.test(text)) {
    if (text === "") throw unusable(text, "it is empty");
    return new Map([
      ["type", text === "-" ? "tar" : "local"],
      ["dest", text],
    ]);
  }
  return new Map(
    splitCsv(text).map((field): [string, string] => {
      const [, key, value] = /^([^=]+)=(.*)$/s.exec(field) ?? [];
      if (key === undefined || value === undefined)
        throw unusable(text, `${JSON.stringify(field)} is not KEY=VALUE`);
      return [key.toLowerCase(), value];
    }),
  );
}

function readType(given: string | undefined, text: string): OutputEntry["type"] {
  const type = outputTypes.find((known) => known === given);
  if (type !== undefined) return type;
  throw unusable(text, "type must be oci, docker, tar, local, image or registry");
}

/** Takes `annotation.KEY=VALUE` out, and those with a type and a platform. */
function takeAnnotations(fields: Map<string, string>): string[] {
  return [...fields].flatMap(([name, value]) => {
    const [, type, key] = /^annotation(?:-([^.]+))?\.(.+)$/.exec(name) ?? [];
    if (key === undefined) return [];
    fields.delete(name);
    return [`${type ?? "manifest"}:${key}=${value}`];
  });
}

function readCompression(value = "gzip", text: string): Compression {
  const found = findCompression(value);
  if (found !== undefined) return found;
  throw unusable(text, `compression must be gzip, zstd or uncompressed, not ${JSON.stringify(value)}`);
}

function parseFlag(value: string, name: string, text: string): boolean {
  const flag = parseGoBoolean(value);
  if (flag !== undefined) return flag;
  throw unusable(text, `${name} must be true or false, not ${JSON.stringify(value)}`);
}

export function unusable(text: string, problem: string): BoughError {
  return new BoughError(`--output ${JSON.stringify(text)}: ${problem}`, {
    kind: "usage",
    hint: "As for docker buildx build: type=oci|docker|tar|local,dest=PATH, or type=image|registry.",
  });
}
