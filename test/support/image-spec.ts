/**
 * Compares OCI image layouts with the image specification (1.1): schemas of its documents, written from its text, and
 * references between them. https://github.com/opencontainers/image-spec/blob/main/spec.md
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { gunzipSync, zstdDecompressSync } from "node:zlib";
import { problemsOf, type Schema } from "./json-schema.ts";

const text: Schema = { type: "string" };
const texts: Schema = { type: "array", items: text };
const orNone = (schema: Schema): Schema => ({ anyOf: [schema, { type: "null" }] });
const mapOf = (values: Schema): Schema => ({ type: "object", additionalProperties: values });
const part = "[A-Za-z0-9][A-Za-z0-9!#$&^_.+-]{0,126}";
const mediaType: Schema = { type: "string", pattern: `^${part}/${part}$` };
const time: Schema = { type: "string", format: "date-time" };
const imagePrefix = "application/vnd.oci.image";

const descriptorProperties: Readonly<Record<string, Schema>> = {
  mediaType,
  digest: { type: "string", pattern: "^sha256:[0-9a-f]{64}$" },
  size: { type: "integer", minimum: 0 },
  urls: texts,
  annotations: mapOf(text),
  data: text,
  artifactType: mediaType,
};
const descriptor: Schema = {
  type: "object",
  required: ["mediaType", "digest", "size"],
  properties: descriptorProperties,
  additionalProperties: false,
};
const platform: Schema = {
  type: "object",
  required: ["architecture", "os"],
  properties: { architecture: text, os: text, "os.version": text, "os.features": texts, variant: text },
  additionalProperties: false,
};

const layout: Schema = {
  type: "object",
  required: ["imageLayoutVersion"],
  properties: { imageLayoutVersion: { const: "1.0.0" } },
};
const index: Schema = {
  type: "object",
  required: ["schemaVersion", "mediaType", "manifests"],
  properties: {
    schemaVersion: { type: "integer", const: 2 },
    mediaType: { const: `${imagePrefix}.index.v1+json` },
    manifests: {
      type: "array",
      items: { ...descriptor, properties: { ...descriptorProperties, platform } },
    },
    artifactType: mediaType,
    subject: descriptor,
    annotations: mapOf(text),
  },
  additionalProperties: false,
};
const manifest: Schema = {
  type: "object",
  required: ["schemaVersion", "mediaType", "config", "layers"],
  properties: {
    schemaVersion: { type: "integer", const: 2 },
    mediaType: { const: `${imagePrefix}.manifest.v1+json` },
    config: descriptor,
    layers: { type: "array", minItems: 1, items: descriptor },
    artifactType: mediaType,
    subject: descriptor,
    annotations: mapOf(text),
  },
  additionalProperties: false,
};
const history: Schema = {
  type: "object",
  properties: {
    created: time,
    author: text,
    created_by: text,
    comment: text,
    empty_layer: { type: "boolean" },
  },
  additionalProperties: false,
};
const config: Schema = {
  type: "object",
  required: ["architecture", "os", "rootfs"],
  properties: {
    created: time,
    author: text,
    ...platform.properties,
    config: {
      type: "object",
      properties: {
        User: text,
        ExposedPorts: mapOf({ type: "object" }),
        Env: { type: "array", items: { type: "string", pattern: "^[^=]+=" } },
        Entrypoint: orNone(texts),
        Cmd: orNone(texts),
        Volumes: orNone(mapOf({ type: "object" })),
        WorkingDir: text,
        Labels: orNone(mapOf(text)),
        StopSignal: text,
        ArgsEscaped: { type: "boolean" },
      },
    },
    rootfs: {
      type: "object",
      required: ["type", "diff_ids"],
      properties: {
        type: { const: "layers" },
        diff_ids: { type: "array", items: { type: "string", pattern: "^sha256:[0-9a-f]{64}$" } },
      },
    },
    history: { type: "array", items: history },
  },
  additionalProperties: false,
};
/** https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://slsa.dev/spec/v1.0/provenance */
const digests = mapOf({ type: "string", pattern: "^[0-9a-f]+$" });
const resource: Schema = {
  type: "object",
  properties: { name: text, uri: text, digest: digests, annotations: { type: "object" } },
  additionalProperties: false,
};
const statement: Schema = {
  type: "object",
  required: ["_type", "subject", "predicateType", "predicate"],
  properties: {
    _type: { const: "https://in-toto.io/Statement/v1" },
    subject: { type: "array", minItems: 1, items: { ...resource, required: ["digest"] } },
    predicateType: text,
    predicate: { type: "object" },
  },
  additionalProperties: false,
};
const provenance: Schema = {
  type: "object",
  required: ["buildDefinition", "runDetails"],
  properties: {
    buildDefinition: {
      type: "object",
      required: ["buildType", "externalParameters"],
      properties: {
        buildType: { type: "string", pattern: "^[a-z]+:" },
        externalParameters: { type: "object" },
        resolvedDependencies: { type: "array", items: resource },
      },
      additionalProperties: false,
    },
    runDetails: {
      type: "object",
      required: ["builder"],
      properties: {
        builder: { type: "object", required: ["id"], properties: { id: { type: "string", pattern: ":" } } },
        metadata: { type: "object", properties: { finishedOn: time }, additionalProperties: false },
      },
      additionalProperties: false,
    },
  },
  additionalProperties: false,
};

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
  annotations?: Record<string, string>;
  platform?: { os: string; architecture: string };
}

interface Config {
  os: string;
  rootfs: { diff_ids: string[] };
  history?: { empty_layer?: boolean }[];
}

/** Problems of a layout's files; none if it matches the specification and has no unused file. */
export function problemsOfLayout(directory: string): string[] {
  const problems: string[] = [];
  const used = new Set<string>();
  const check = (what: string, found: readonly string[]) =>
    problems.push(...found.map((problem) => `${what}: ${problem}`));
  const read = ({ digest, size }: Descriptor): Buffer => {
    const name = digest.replace("sha256:", "");
    used.add(name);
    const bytes = readFileSync(join(directory, "blobs/sha256", name));
    if (bytes.byteLength !== size) problems.push(`${digest} has ${bytes.byteLength} bytes, not ${size}`);
    if (sha256(bytes) !== digest) problems.push(`${digest} is another content`);
    return bytes;
  };
  const parse = <T>(found: Descriptor, what: string, schema: Schema): T => {
    const value = JSON.parse(read(found).toString());
    check(`${what} ${found.digest}`, problemsOf(value, schema));
    return value as T;
  };
  const checkImage = (found: Descriptor, subject: string | undefined) => {
    const { config: named, layers } = parse<{ config: Descriptor; layers: Descriptor[] }>(
      found,
      "manifest",
      manifest,
    );
    const { rootfs, history, os } = parse<Config>(named, "config", config);
    const contents = layers.map((layer) => unpack(read(layer), layer));
    check(found.digest, contents.map(sha256).toString() === rootfs.diff_ids.toString() ? [] : ["diff_ids"]);
    const made = history?.filter(({ empty_layer }) => empty_layer !== true);
    if (made !== undefined && made.length !== layers.length) problems.push("history is of other layers");
    if (subject === undefined) return;
    if (os !== "unknown") problems.push("an attestation has a platform");
    for (const [number, content] of contents.entries()) {
      const value = JSON.parse(content.toString());
      check("statement", problemsOf(value, statement));
      if (value.predicateType === "https://slsa.dev/provenance/v1")
        check("provenance", problemsOf(value.predicate, provenance));
      if (layers[number]?.annotations?.["in-toto.io/predicate-type"] !== value.predicateType)
        problems.push("a statement's layer does not say what it is");
      if (`sha256:${value.subject[0].digest.sha256}` !== subject)
        problems.push("a statement of another image");
    }
  };
  const checkIndex = (value: unknown, what: string) => {
    check(what, problemsOf(value, index));
    for (const found of (value as { manifests: Descriptor[] }).manifests) {
      if (found.mediaType === `${imagePrefix}.index.v1+json`)
        checkIndex(JSON.parse(read(found).toString()), found.digest);
      else if (found.annotations?.["vnd.docker.reference.type"] === "attestation-manifest")
        checkImage(found, found.annotations["vnd.docker.reference.digest"]);
      else checkImage(found, undefined);
    }
  };
  check("oci-layout", problemsOf(JSON.parse(readFileSync(join(directory, "oci-layout"), "utf8")), layout));
  checkIndex(JSON.parse(readFileSync(join(directory, "index.json"), "utf8")), "index.json");
  const others = readdirSync(join(directory, "blobs/sha256")).filter((name) => !used.has(name));
  return [...problems, ...others.map((name) => `nothing names ${name}`)];
}

/** The same for an `oci-archive`; `scratch` is an empty directory. */
export function problemsOfArchive(path: string, scratch: string): string[] {
  const { success, stderr } = Bun.spawnSync(["tar", "-xf", path, "-C", scratch]);
  return success ? problemsOfLayout(scratch) : [stderr.toString()];
}

function unpack(bytes: Buffer, { mediaType }: Descriptor): Buffer {
  if (mediaType.endsWith("+gzip")) return gunzipSync(bytes);
  return mediaType.endsWith("+zstd") ? zstdDecompressSync(bytes) : bytes;
}

function sha256(bytes: Uint8Array): string {
  return `sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`;
}
