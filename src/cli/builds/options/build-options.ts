import type { Dialect } from "../../../builder/dialect.ts";
import type { AskedBuild } from "../../../builder/job.ts";
import { usageError } from "../../../errors.ts";
import type { Platform } from "../../../image/platform.ts";
import { parseTag } from "../../../service/images/reference.ts";
import type { ResourcesLimits } from "../../../service/wire/instance.ts";
import type { GlobalOptions } from "../../command-line/globals.ts";
import { parseAnnotation, placeAnnotations } from "../../export/annotations.ts";
import { type AttestationOptions, readAttestationOptions } from "../../export/attestation-options.ts";
import {
  type BuildOutput,
  isAnyInline,
  readBuildOutputs,
  requireIndexes,
} from "../../export/build-outputs.ts";
import { limitsOf } from "../../run/limit-options.ts";
import { defaultJobs, isEmbedded } from "../../service/choice.ts";
import type { Timeout } from "../../service/timeout.ts";
import type { BuildInvocation } from "../request.ts";

/** The options of `bough build` that do not name what is built. */
export interface BuildOptions
  extends Pick<AskedBuild, "tags" | "useCache" | "pullsImages" | "measuresLayers"> {
  limits: ResourcesLimits | undefined;
  /** The time that each RUN may take. */
  timeout: Timeout;
  outputs: readonly BuildOutput[];
  /** `undefined` if there are none. */
  attestations: AttestationOptions | undefined;
  /** The platforms that annotations name; `undefined` if there are no annotations. */
  annotatedPlatforms: readonly Platform[] | undefined;
  /** The number of steps that run concurrently. */
  jobsIn(dialect: Dialect, globals: GlobalOptions): number;
}

/** @throws BoughError of kind `usage` for an invalid value, or for options that exclude each other */
export function readBuildOptions(invocation: BuildInvocation): BuildOptions {
  const { options, runtime, globals } = invocation;
  if (options["registry-mirror"] !== undefined && !isEmbedded(runtime, globals))
    throw usageError(
      "--registry-mirror: only bough's own engine on this machine imports with it",
      "A service fetches the images of FROM itself.",
    );
  const named = [...new Set((options.tag ?? []).map(parseTag))];
  const given = readBuildOutputs(invocation, named);
  const tags = [...new Set([...named, ...given.flatMap((output) => output.tags)])];
  if (options["digest-file"] !== undefined && given.every(({ destinations }) => destinations.length === 0))
    throw usageError(
      "--digest-file needs an image that is written or pushed",
      "Give --push, or -o type=oci,dest=PATH.",
    );
  const asked = readAttestationOptions(options, runtime);
  const isLeftOut = asked?.provenance?.isInlineOnly === true && !isAnyInline(given);
  const withoutProvenance = asked?.sbom && { ...asked, provenance: undefined };
  const attestations = isLeftOut ? withoutProvenance : asked;
  if (attestations?.sbom !== undefined || attestations?.provenance?.isInlineOnly === false)
    requireIndexes(given, attestations.provenance?.isInlineOnly === false ? "--provenance" : "--sbom");
  const outputs = withAnnotations(given, invocation);
  const annotations = outputs.flatMap((output) => output.annotations);
  return {
    ...{ timeout: options.timeout, limits: limitsOf(options), tags, outputs },
    annotatedPlatforms:
      annotations.length === 0 || runtime.isPlugin === true
        ? undefined
        : annotations.flatMap(({ platform }) => platform ?? []),
    attestations,
    useCache: options["no-cache"] !== true,
    pullsImages: options.pull === true,
    measuresLayers: options["metadata-file"] !== undefined || options.report !== undefined,
    jobsIn(dialect, service) {
      if (!dialect.buildsNeededStages) return 1;
      return options.jobs ?? defaultJobs(runtime, service);
    },
  };
}

/** Adds those of `--annotation` to those that an output has of its own, which they replace. */
function withAnnotations(
  outputs: readonly BuildOutput[],
  { options, runtime }: Pick<BuildInvocation, "options" | "runtime">,
): BuildOutput[] {
  const all = outputs.flatMap(({ destinations }) => destinations);
  const common = placeAnnotations(options.annotation ?? [], all, runtime);
  return outputs.map((output, at) => {
    const given = output.givenAnnotations.flatMap((text) => parseAnnotation(text, "manifest"));
    const own = placeAnnotations(given, output.destinations, runtime);
    const ignored = [...output.ignored, ...own.ignored, ...(at === 0 ? common.ignored : [])];
    return { ...output, annotations: [...own.annotations, ...common.annotations], ignored };
  });
}
