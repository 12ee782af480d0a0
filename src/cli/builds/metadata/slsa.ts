import type { BuildInput } from "../../../history/build-record.ts";
import type { Platform } from "../../../image/platform.ts";
import { formatPlatform } from "../../../image/platform.ts";
import { digestSet, packageUrl } from "../../export/statement.ts";

/** What the provenance in a metadata file says of a build. It has no secret. */
interface DescribedBuild {
  id: string;
  /** Milliseconds since the epoch. */
  startedAt: number;
  finishedAt: number;
  /** The address of a fetched context. */
  contextUrl: string | undefined;
  /** Relative to the context. */
  dockerfile: string;
  target: string | undefined;
  /** The value of a secret is `null`. */
  buildArgs: readonly { name: string; value: string | null }[];
  labels: ReadonlyMap<string, string>;
  secretIds: readonly string[];
  inputs: readonly BuildInput[];
}

/**
 * Returns the predicate that docker buildx writes into metadata files, whatever the version of the image's own.
 * https://slsa.dev/spec/v0.2/provenance
 *
 * @param mode `max`: with times and what is complete
 */
export function predicateOf(build: DescribedBuild, platform: Platform, mode: "min" | "max"): object {
  const { buildArgs, labels, target, secretIds, inputs, contextUrl } = build;
  const isFetched = contextUrl !== undefined;
  const args = [
    ...buildArgs.flatMap(({ name, value }) => (value === null ? [] : [[`build-arg:${name}`, value]])),
    ...Array.from(labels, ([name, value]) => [`label:${name}`, value]),
    ...(target === undefined ? [] : [["target", target]]),
  ];
  const materials = inputs.map((input) => materialOf(input, platform));
  const source = inputs.find(({ name }) => name === contextUrl);
  return {
    builder: { id: "" },
    buildType: "urn:bough:dockerfile:v1",
    ...(materials.length > 0 && { materials }),
    invocation: {
      configSource: { ...(source && materialOf(source, platform)), entryPoint: build.dockerfile },
      parameters: {
        frontend: "dockerfile.v0",
        ...(args.length > 0 && { args: Object.fromEntries(args) }),
        ...(secretIds.length > 0 && { secrets: secretIds.map((id) => ({ id, optional: true })) }),
        ...(!isFetched && { locals: [{ name: "context" }, { name: "dockerfile" }] }),
      },
      environment: { platform: formatPlatform(platform) },
    },
    ...(mode === "max" && { metadata: completenessOf(build) }),
  };
}

function completenessOf({ id, startedAt, finishedAt, buildArgs }: DescribedBuild): object {
  return {
    buildInvocationID: id,
    buildStartedOn: new Date(startedAt).toISOString(),
    buildFinishedOn: new Date(finishedAt).toISOString(),
    completeness: {
      parameters: buildArgs.every(({ value }) => value !== null),
      environment: true,
      materials: false,
    },
    reproducible: false,
  };
}

function materialOf(input: BuildInput, platform: Platform): object {
  switch (input.kind) {
    case "image": {
      const { name, digest } = input;
      return { uri: packageUrl(name, platform), ...(digest !== null && { digest: digestSet(digest) }) };
    }
    case "url":
      return { uri: input.name, digest: { sha256: input.sha256 } };
    case "repository":
      return { uri: input.name, digest: { sha1: input.commit } };
  }
}
