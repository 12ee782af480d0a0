import { BoughError, usageError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import { type Descriptor, indexTypes } from "../../image/oci-layout.ts";
import { formatPlatform } from "../../image/platform.ts";
import type { BlobStore } from "../../registry/blob-store.ts";
import { openBlobSource, openBlobStore } from "../../registry/open-blob-store.ts";
import { parseRepository } from "../../registry/repository.ts";
import { sizeCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { type Annotation, parseAnnotation } from "../export/annotations.ts";
import type { Runtime } from "../process/runtime.ts";
import { credentialsDefinition, readCredentials, registryOptions } from "../service/registry-options.ts";
import {
  copyEntry,
  encodeIndex,
  type FoundEntry,
  isAttestation,
  mergeEntries,
  platformOf,
  readEntries,
  readImageEntries,
} from "./platform-index.ts";

export const create = command({
  name: "create",
  description:
    "Write an index that names an image for each platform, in a registry: what a pipeline with a machine for each platform does at its end.",
  args: {
    tag: { type: "positional", required: true, description: "Where to write it: HOST/NAME:TAG" },
    source: {
      type: "positional",
      required: true,
      multiple: true,
      description:
        "Images or indexes: HOST/NAME:TAG, HOST/NAME@DIGEST, or only a DIGEST of the same repository",
    },
    append: {
      type: "boolean",
      description: "Keep what the index has now; a source replaces its image for the same platform",
    },
    annotation: {
      type: "string",
      multiple: true,
      valueHint: "[TYPE:]KEY=VALUE",
      description:
        "Annotation of the index, or of a TYPE: manifest-descriptor is each image's entry, manifest-descriptor[linux/arm64] that of one platform",
    },
    copy: {
      type: "boolean",
      description: "Keep the manifest of the one source as it is, also that of an image for one platform",
    },
    "dry-run": { type: "boolean", description: "Print the index, and write nothing" },
    creds: credentialsDefinition,
    ...registryOptions,
  },
  run: createIndex,
  examples: [
    [
      "index create registry.example/team/app:1.0 registry.example/team/app:1.0-amd64 registry.example/team/app:1.0-arm64",
      "what two machines have pushed, under one tag",
    ],
    ["index create --append registry.example/team/app:1.0 sha256:DIGEST", "one platform more"],
  ],
  agentNote: "This command is mutating: it sets a tag in the registry.",
});

async function createIndex(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  const { signal } = runtime;
  const [given = "", ...sources] = values.positionals;
  const { address, reference: tag } = parsePlace(given);
  if (tag.startsWith("sha256:")) throw usageError(`${given} is no tag`, "Give HOST/NAME:TAG.");
  const annotations = values.list("annotation").flatMap(readAnnotation);
  const credentials = readCredentials(values);
  const to = openBlobStore(address, { ...dependenciesOf(runtime), credentials });
  const find = (text: string) => {
    if (/^sha256:/.test(text) && !isDigest(text))
      throw usageError(`${text} is no digest`, "It is sha256: and 64 hexadecimal digits.");
    const place = isDigest(text) ? { address, reference: text } : parsePlace(text);
    const from = place.address === address ? to : openBlobSource(place.address, dependenciesOf(runtime));
    return { place, from };
  };
  const read = async (text: string) => {
    const { place, from } = find(text);
    return readImageEntries(from, place.reference, signal);
  };
  /** The digest of one index stays, as of one image with `--copy`. */
  const readAlone = async (text: string, isCopied: boolean) => {
    const { place, from } = find(text);
    const { manifest, entries } = await readEntries(from, place.reference, signal);
    const isKept = isCopied || indexTypes.includes(manifest.mediaType);
    return isKept && entries.every(({ entry }) => !indexTypes.includes(entry.mediaType))
      ? manifest
      : undefined;
  };
  const isThere = values.flag("append") && (await to.getManifest(tag, signal)) !== undefined;
  const found: FoundEntry[] = [];
  const kept = isThere ? await read(given) : undefined;
  found.push(...(kept?.entries ?? []));
  for (const source of sources) found.push(...(await read(source)).entries);
  const entries = annotateEntries(mergeEntries(found), annotations);
  const isAlone = sources.length === 1 && kept === undefined && annotations.length === 0;
  const alone = isAlone ? await readAlone(sources[0] ?? "", values.flag("copy")) : undefined;
  if (values.flag("copy") && alone === undefined)
    throw usageError("--copy keeps the manifest of one source, without --append and --annotation");
  const index = alone ?? encodeIndex(entries, { ...kept?.annotations, ...textsOf(annotations, "index") });
  if (values.flag("dry-run")) {
    runtime.stdout.write(`${index.bytes.toString()}\n`);
    return;
  }
  // An index that stays as it is may have several images for one platform.
  for (const entry of alone === undefined ? entries : found) {
    if (entry.from.address !== address)
      log.info(`copying ${platformOf(entry.entry)} from ${entry.from.address.slice("docker://".length)}`);
    await copyEntry(entry, to, mountableFrom(entry.from.address, to), signal);
  }
  await to.putManifest(tag, index, signal);
  if (runtime.isPlugin === true) log.info(`${given} is ${index.digest}`);
  else
    printResult(invocation, {
      id: index.digest,
      json: { index: given, digest: index.digest, platforms: entries.map(describeEntry) },
      table: () => ({
        header: ["INDEX", "DIGEST"],
        rows: [[{ whole: given }, { whole: index.digest }]],
      }),
    });
}

export const inspect = command({
  name: "inspect",
  description: "Show which platforms an image of a registry is for.",
  args: {
    reference: { type: "positional", required: true, description: "HOST/NAME:TAG or HOST/NAME@DIGEST" },
    raw: { type: "boolean", description: "Print the manifest's bytes as they are" },
    creds: credentialsDefinition,
    ...registryOptions,
  },
  run: inspectIndex,
  examples: [
    ["index inspect debian:12", "the platforms of an image"],
    ["index inspect debian:12 -f json", "as JSON, for other programs"],
  ],
  agentNote: "Nothing is written, and no layer is fetched.",
});

async function inspectIndex(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const [given = ""] = values.positionals;
  const { address, reference } = parsePlace(given);
  const credentials = readCredentials(values);
  const from = openBlobSource(address, { ...dependenciesOf(runtime), credentials });
  const { manifest, entries } = await readEntries(from, reference, runtime.signal);
  if (values.flag("raw")) {
    runtime.stdout.write(manifest.bytes);
    return;
  }
  printResult(invocation, {
    id: entries.filter(({ entry }) => !isAttestation(entry)).map(({ entry }) => entry.digest),
    json: { reference: given, digest: manifest.digest, platforms: entries.map(describeEntry) },
    table: () => ({
      header: ["PLATFORM", "DIGEST", "SIZE"],
      rows: entries.map(({ entry }) => [
        isAttestation(entry) ? "attestation" : platformOf(entry),
        { whole: entry.digest },
        sizeCell(entry.size),
      ]),
    }),
  });
}

/** Reads an image of a registry, with its whole name: `docker.io/library/debian:12`. An image for one platform has no entries. */
export async function readShownIndex(given: string, runtime: Runtime) {
  const { address, reference } = parsePlace(given);
  const from = openBlobSource(address, dependenciesOf(runtime));
  const { manifest, entries } = await readEntries(from, reference, runtime.signal);
  const separator = isDigest(reference) ? "@" : ":";
  const isIndex = indexTypes.includes(manifest.mediaType);
  return {
    fullName: `${address.slice("docker://".length)}${separator}${reference}`,
    manifest,
    entries: isIndex ? entries.map(({ entry }) => entry) : [],
  };
}

function describeEntry({ entry }: FoundEntry): Descriptor & { platform: string | null } {
  const { mediaType, digest, size } = entry;
  return { platform: isAttestation(entry) ? null : platformOf(entry), mediaType, digest, size };
}

function dependenciesOf({ fetch, clock, environment }: Runtime) {
  return { fetch, clock, environment };
}

/** Returns the path of another repository of the same registry, from which it may take layers itself. */
function mountableFrom(address: string, to: BlobStore): string | undefined {
  const registryOf = (text: string) => text.slice(0, text.indexOf("/", "docker://".length) + 1);
  const registry = registryOf(to.address);
  return address.startsWith(registry) ? address.slice(registry.length) : undefined;
}

/** Parses `HOST/NAME:TAG` or `HOST/NAME@DIGEST`; `latest` if the tag is left out. */
function parsePlace(text: string): { address: string; reference: string } {
  const [, name, digest, tag] =
    /^(?:docker:\/\/)?([^\s@]+?)(?:@(sha256:[0-9a-f]{64})|:([\w][\w.-]{0,127}))?$/.exec(text) ?? [];
  if (name === undefined)
    throw usageError(`${JSON.stringify(text)} is not HOST/NAME:TAG or HOST/NAME@DIGEST`);
  try {
    return { address: parseRepository(name).address, reference: digest ?? tag ?? "latest" };
  } catch (error) {
    if (error instanceof BoughError) throw usageError(error.message, error.hint);
    throw error;
  }
}

/** Reads `[TYPE[,TYPE...]:]KEY=VALUE`. Throws for a part that an index does not have: manifests stay as they are. */
function readAnnotation(given: string): Annotation[] {
  const annotations = parseAnnotation(given, "index");
  const other = annotations.find(({ part }) => part !== "index" && part !== "manifest-descriptor");
  if (other === undefined) return annotations;
  throw usageError(
    `--annotation ${given}: only the index and the entries of its images are written, no ${other.part}`,
    "Give index:KEY=VALUE or manifest-descriptor:KEY=VALUE.",
  );
}

function textsOf(annotations: readonly Annotation[], wanted: Annotation["part"]): Record<string, string> {
  const own = annotations.filter(({ part }) => part === wanted);
  return Object.fromEntries(own.map(({ key, value }) => [key, value]));
}

/** Adds annotations to the entries of images. Those for one platform replace those for each. */
function annotateEntries(entries: readonly FoundEntry[], annotations: readonly Annotation[]): FoundEntry[] {
  const descriptors = annotations.filter(({ part }) => part === "manifest-descriptor");
  const platforms = entries.flatMap(({ entry }) => (isAttestation(entry) ? [] : platformOf(entry)));
  for (const { platform, text } of descriptors)
    if (platform !== undefined && !platforms.includes(formatPlatform(platform)))
      throw usageError(
        `--annotation ${text}: the index has no image for ${formatPlatform(platform)}`,
        `It has images for ${platforms.join(", ")}.`,
      );
  return entries.map(({ entry, from }) => {
    if (isAttestation(entry)) return { entry, from };
    const ofEach = descriptors.filter(({ platform }) => platform === undefined);
    const own = descriptors.filter(
      ({ platform }) => platform !== undefined && formatPlatform(platform) === platformOf(entry),
    );
    const added = textsOf([...ofEach, ...own], "manifest-descriptor");
    if (Object.keys(added).length === 0) return { entry, from };
    return { entry: { ...entry, annotations: { ...entry.annotations, ...added } }, from };
  });
}
