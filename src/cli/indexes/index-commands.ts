import type { ImageSignature } from "../../builder/result.ts";
import { usageError } from "../../errors.ts";
import { isDigest } from "../../image/digest.ts";
import type { Descriptor } from "../../image/oci-layout.ts";
import { sizeCell } from "../../terminal/table.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { parsePlatforms } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { type Annotation, parseAnnotation } from "../export/annotations.ts";
import { credentialsDefinition, registryOptions } from "../service/registry-definitions.ts";
import { readCredentials } from "../service/registry-options.ts";
import { readSigner } from "../signing/read-signer.ts";
import { signDefinition } from "../signing/sign-definition.ts";
import { parseSign } from "../signing/sign-option.ts";
import { type ImageName, imageNameDefinition, parseImageName } from "./image-name.ts";
import { makeIndex, writeIndex } from "./make-index.ts";
import { type FoundEntry, isAttestation, platformOf, readEntries } from "./platform-index.ts";
import { openDestination, openSource } from "./registries.ts";

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
    platform: {
      type: "string",
      multiple: true,
      valueHint: "OS/ARCH,...",
      description: "Name only the images for these platforms, with their attestations",
    },
    sign: { ...signDefinition, description: "Sign the index, as build --sign does" },
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
  const [given = "", ...sources] = values.positionals;
  const tag = parseTag(given);
  const isAppended = values.flag("append");
  const isCopied = values.flag("copy");
  const annotations = values.list("annotation").flatMap(readIndexAnnotation);
  if (isCopied && (sources.length !== 1 || isAppended || annotations.length > 0))
    throw usageError("--copy keeps the manifest of one source, without --append and --annotation");
  const { signal } = runtime;
  const credentials = readCredentials(values);
  const sign = values.flag("dry-run")
    ? undefined
    : await readSigner(parseSign(values.text("sign")), true, runtime, log);
  const to = openDestination(tag.address, runtime, credentials);
  const isThere = isAppended && (await to.getManifest(tag.reference, signal)) !== undefined;
  const made = await makeIndex(
    {
      sources: [
        ...(isThere ? [{ name: tag, isBase: true }] : []),
        ...sources.map((text) => ({ name: parseSourceName(text, tag.repository) })),
      ],
      replaces: "platform",
      annotations,
      prefersIndex: !isCopied,
      platforms: parsePlatforms(values.list("platform")),
    },
    // Without mirrors, which may not have what was pushed just now.
    (address) => (address === to.address ? to : openSource(address, runtime)),
    signal,
  );
  const { manifest, entries } = made;
  if (values.flag("dry-run")) {
    runtime.stdout.write(`${Buffer.from(manifest.bytes)}\n`);
    return;
  }
  let signature: ImageSignature | undefined;
  if (sign === undefined) await writeIndex(made, tag.reference, to, { signal, log });
  else {
    const { bytes, digest, mediaType } = manifest;
    await writeIndex(made, digest, to, { signal, log });
    const { repository } = tag;
    signature = await sign({ mediaType, digest, size: bytes.byteLength }, repository, { credentials });
    await to.putManifest(tag.reference, manifest, signal);
  }
  printResult(invocation, {
    id: manifest.digest,
    json: {
      ...{ index: given, digest: manifest.digest, platforms: entries.map(describeEntry) },
      ...(signature && { signature }),
    },
    table: () => ({
      header: ["INDEX", "DIGEST"],
      rows: [[{ whole: given }, { whole: manifest.digest }]],
    }),
  });
}

/** Reads the name of an image, or a digest in a repository. */
export function parseSourceName(text: string, repository: string): ImageName {
  if (!text.startsWith("sha256:")) return parseImageName(text);
  if (!isDigest(text))
    throw usageError(`${text} is not a digest`, "It is sha256: and 64 hexadecimal digits.");
  return parseImageName(`${repository}@${text}`);
}

export function parseTag(text: string): ImageName {
  const name = parseImageName(text);
  if (isDigest(name.reference)) throw usageError(`${text} is not a tag`, "Give HOST/NAME:TAG.");
  return name;
}

export const inspect = command({
  name: "inspect",
  description: "Show which platforms an image of a registry is for.",
  args: {
    reference: imageNameDefinition,
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
  const { address, reference } = parseImageName(given);
  const from = openSource(address, runtime, readCredentials(values));
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

function describeEntry({ entry }: FoundEntry): Descriptor & { platform: string | null } {
  const { mediaType, digest, size } = entry;
  return { platform: isAttestation(entry) ? null : platformOf(entry), mediaType, digest, size };
}

/** Reads `[TYPE[,TYPE...]:]KEY=VALUE`. Throws for a part that an index does not have: manifests stay as they are. */
export function readIndexAnnotation(given: string): Annotation[] {
  const annotations = parseAnnotation(given, "index");
  const other = annotations.find(({ part }) => part !== "index" && part !== "manifest-descriptor");
  if (other === undefined) return annotations;
  throw usageError(
    `--annotation ${given}: only the index and the entries of its images are written, no ${other.part}`,
    "Give index:KEY=VALUE or manifest-descriptor:KEY=VALUE.",
  );
}
