import { basename } from "node:path";
import type { InputObserver, NamedContexts } from "../../builder/contexts/named-context.ts";
import type { Dialect } from "../../builder/dialect.ts";
import { type GivenSecrets, secretTexts } from "../../builder/state/secrets.ts";
import type { BuildContext } from "../../context/build-context.ts";
import { pathWithin } from "../../context/file-system/display-path.ts";
import { isSecretName, isSecretValue, secretsAmong } from "../../dockerfile/secrets.ts";
import type { Attestation } from "../../image/attestation-manifest.ts";
import { digestOf } from "../../image/digest.ts";
import type { ImageToWrite } from "../../image/image-writer.ts";
import type { Service } from "../../service/client.ts";
import { isUuid } from "../../service/images/reference.ts";
import { version } from "../../version.ts";
import type { ProvenanceOptions } from "../entries/attestation.ts";
import { digestSet, packageUrl, type Subject, statementOf } from "./statement.ts";

interface Provenance {
  /** Returns the observer for the build of one platform: each has its own images, and all use the same files. */
  inputsFor(platform: string): InputObserver;
  /** Call it once the build is over. https://slsa.dev/spec/v1.0/provenance */
  describe(
    service: Pick<Service, "capabilities" | "listLayers">,
    subject: Subject,
    platform: string,
  ): Promise<Attestation>;
}

/** The inputs of a build that its provenance names. */
export interface RecordedInputs {
  context: Pick<BuildContext, "absolutePath">;
  contexts: NamedContexts;
  dockerfile: { absolutePath: string; text: string };
  buildArgs: ReadonlyMap<string, string>;
  labels: ReadonlyMap<string, string>;
  dialect: Pick<Dialect, "name">;
  target: string | undefined;
}

/**
 * Gathers what an image is made from. The result has no time but the image's own, no path of this machine and no secret: the same
 * inputs give the same bytes.
 */
export function gatherProvenance(
  { context, contexts, dockerfile, buildArgs, labels, dialect, target }: RecordedInputs,
  given: GivenSecrets,
  { hasArguments, builderId }: ProvenanceOptions,
): Provenance {
  const imagesOf = new Map<string, Map<string, string>>();
  const urls = new Map<string, string>();
  const repositories = new Map<string, { uri: string; commit: string }>();
  const files = new Map<string, string>();
  const named = new Map<string, Map<string, string>>();
  const { absolutePath } = dockerfile;
  const externalParameters = {
    dockerfile: pathWithin(context.absolutePath, absolutePath) ?? basename(absolutePath),
    mode: dialect.name,
    ...(target === undefined ? {} : { target }),
    ...withoutSecrets(buildArgs, given, hasArguments),
    ...(labels.size === 0 ? {} : { labels: Object.fromEntries(inOrder(labels)) }),
  };
  return {
    inputsFor: (platform) => ({
      image(reference, uuid) {
        const images = imagesOf.getOrInsertComputed(platform, () => new Map());
        images.set(layoutName(reference, contexts) ?? reference, uuid);
      },
      url: (url, sha256) => void urls.set(url, sha256),
      repository: (url, { ref, commit }) => {
        const uri = `git+${url}${ref === undefined ? "" : `@${ref}`}`;
        repositories.set(`${uri} ${commit}`, { uri, commit });
      },
      file(path, sha256, context) {
        if (context === undefined) files.set(path, sha256);
        else named.set(context, (named.get(context) ?? new Map<string, string>()).set(path, sha256));
      },
    }),
    async describe(service, subject, platform) {
      const { image } = subject;
      const images = imagesOf.get(platform) ?? new Map<string, string>();
      const bases = inOrder(images).filter(([reference]) => reference !== "scratch");
      return statementOf(subject, "https://slsa.dev/provenance/v1", {
        buildDefinition: {
          buildType: "urn:bough:dockerfile:v1",
          externalParameters,
          resolvedDependencies: [
            { name: "Dockerfile", digest: digestSet(digestOf(dockerfile.text)) },
            { name: "context", digest: digestSet(contextDigest(files)) },
            ...inOrder(named).map(([name, files]) => ({
              name: `${contextPrefix}${name}`,
              digest: digestSet(contextDigest(files)),
            })),
            ...(await Promise.all(bases.map((base) => describeBase(base, image.platform, service)))),
            ...inOrder(urls).map(([uri, sha256]) => ({ uri, digest: { sha256 } })),
            ...inOrder(repositories).map(([, { uri, commit }]) => ({ uri, digest: { gitCommit: commit } })),
          ],
        },
        runDetails: {
          builder: { id: builderId ?? `pkg:generic/bough@${version}` },
          metadata: { finishedOn: image.created },
        },
      });
    },
  };
}

/** The beginning of names for what `--build-context` has given. No reference has a space. */
const contextPrefix = "context ";

/** Returns the name of a layout, whose reference is a path of this machine; `undefined` for other images. */
function layoutName(reference: string, contexts: NamedContexts): string | undefined {
  if (!reference.startsWith("oci:/")) return undefined;
  const given = contexts.values().find((each) => each.kind === "image" && each.reference === reference);
  return given && `${contextPrefix}${given.name}`;
}

/** Hashes a list of the files that the build has used: sha256sum's lines, in the order of the paths' bytes. */
function contextDigest(files: ReadonlyMap<string, string>): string {
  const lines = [...files].map(([path, sha256]): [Buffer, string] => [
    Buffer.from(path),
    `${sha256}  ${path}\n`,
  ]);
  lines.sort(([one], [other]) => Buffer.compare(one, other));
  return digestOf(lines.map(([, line]) => line).join(""));
}

/** Returns the build arguments that are not secret, and only the names of the others. */
function withoutSecrets(values: ReadonlyMap<string, string>, given: GivenSecrets, hasOthers: boolean) {
  const secrets = secretsAmong([...values, ...secretTexts(given)]);
  const entries = inOrder(values);
  const withheld = entries.flatMap(([name, value]) =>
    !hasOthers || isSecretName(name) || isSecretValue(value) || secrets.has(name) ? [name] : [],
  );
  return {
    buildArgs: Object.fromEntries(entries.filter(([name]) => !withheld.includes(name))),
    ...(withheld.length === 0 ? {} : { withheldBuildArgs: withheld }),
  };
}

/** Describes a base: an imported one by its layers' digests, one of the service by its UUID, unless its name has a digest. */
async function describeBase(
  [reference, uuid]: readonly [string, string],
  platform: ImageToWrite["platform"],
  { capabilities, listLayers }: Pick<Service, "capabilities" | "listLayers">,
) {
  const manifest = /@(sha256:[0-9a-f]{64})$/.exec(reference)?.[1];
  const hasLayers = (await capabilities.extensions()).has("layers");
  const layers = hasLayers ? await listLayers(uuid) : [];
  const digests = layers.flatMap(({ blob }) => blob?.digest ?? []);
  const isWhole = digests.length > 0 && digests.length === layers.length;
  const isKnown = (manifest !== undefined || isWhole) && !reference.startsWith(contextPrefix);
  return {
    uri: isKnown && !isUuid(reference) ? packageUrl(reference, platform) : `urn:uuid:${uuid}`,
    ...(isKnown ? {} : { name: reference }),
    ...(manifest === undefined ? {} : { digest: digestSet(manifest) }),
    ...(isWhole ? { annotations: { layers: digests } } : {}),
  };
}

function inOrder<Value>(map: ReadonlyMap<string, Value>): [string, Value][] {
  return [...map].sort(([one], [other]) => (one < other ? -1 : 1));
}
