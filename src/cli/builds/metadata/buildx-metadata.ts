/** What docker buildx writes of a build into its metadata file, beside the image. */
import type { CheckedLock } from "../../../check/lints/references.ts";
import { BoughError } from "../../../errors.ts";
import { formatPlatform, machinePlatform, type Platform, parsePlatform } from "../../../image/platform.ts";
import type { Runtime } from "../../process/runtime.ts";
import type { BuildInputs } from "../inputs.ts";
import { idsOf } from "../options/secret-options.ts";
import type { Recording } from "../recording/recording.ts";
import type { BuildInvocation } from "../request.ts";
import { buildRefOf, formatBuildRef } from "./build-ref.ts";
import { readMetadataOptions } from "./options.ts";

/** Returns the keys of docker buildx that are about the build. `inputs` must not be disposed of yet. */
export async function describeForBuildx(
  inputs: BuildInputs,
  recording: Pick<Recording, "id" | "startedAt" | "inputs" | "origin">,
  invocation: BuildInvocation,
  lock: CheckedLock | undefined,
): Promise<Record<string, unknown>> {
  const { runtime } = invocation;
  const { provenance, hasWarnings } = readMetadataOptions(runtime);
  return {
    ...(provenance && (await provenances(inputs, recording, runtime, provenance))),
    "buildx.build.ref": formatBuildRef(buildRefOf(recording.id, runtime)),
    ...(hasWarnings && (await warnings(inputs, invocation, lock))),
  };
}

/** One key, or one for each platform. */
async function provenances(
  { platforms, labels, target, secrets, fetched }: BuildInputs,
  { id, startedAt, inputs, origin }: Pick<Recording, "id" | "startedAt" | "inputs" | "origin">,
  { clock }: Pick<Runtime, "clock">,
  mode: "min" | "max",
): Promise<Record<string, unknown>> {
  const { predicateOf } = await import("./slsa.ts");
  const begun = origin();
  if (begun === undefined) return {};
  const described = {
    ...{ id, startedAt, labels, target, finishedAt: clock.now() },
    contextUrl: fetched?.shown,
    dockerfile: begun.dockerfile,
    buildArgs: begun.buildArgs,
    secretIds: [...idsOf(secrets).secrets],
    inputs: inputs(),
  };
  const key = "buildx.build.provenance";
  const of = (platform: Platform) => predicateOf(described, platform, mode);
  const [platform = parsePlatform(machinePlatform())] = platforms;
  if (platforms.length < 2) return { [key]: of(platform) };
  return Object.fromEntries(platforms.map((each) => [`${key}/${formatPlatform(each)}`, of(each)]));
}

async function warnings(
  inputs: BuildInputs,
  invocation: BuildInvocation,
  lock: CheckedLock | undefined,
): Promise<Record<string, unknown>> {
  const { checkInputs } = await import("../check.ts");
  const { vertexWarnings } = await import("./vertex-warnings.ts");
  try {
    const report = await checkInputs(inputs, invocation, lock);
    const found = vertexWarnings(report.warnings, inputs.dockerfile);
    return found.length === 0 ? {} : { "buildx.build.warnings": found };
  } catch (error) {
    invocation.runtime.signal.throwIfAborted();
    if (!(error instanceof BoughError)) throw error;
    // The image exists: a context that has changed meanwhile costs its warnings.
    invocation.log.warn(`the metadata file has no warnings: ${error.message}`);
    return {};
  }
}
