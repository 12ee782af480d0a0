import type { Dialect } from "../../../builder/dialect.ts";
import type { AskedBuild } from "../../../builder/job.ts";
import { usageError } from "../../../errors.ts";
import type { Platform } from "../../../image/platform.ts";
import { parseTag } from "../../../service/images/reference.ts";
import type { ResourcesLimits } from "../../../service/wire/instance.ts";
import type { Values } from "../../command-line/arguments.ts";
import type { Invocation } from "../../command-line/command.ts";
import type { GlobalOptions } from "../../command-line/globals.ts";
import { oneOf, positiveInteger } from "../../command-line/option-values.ts";
import { readAnnotations } from "../../export/annotations.ts";
import { type AttestationOptions, readAttestationOptions } from "../../export/attestation-options.ts";
import {
  type BuildOutput,
  isAnyInline,
  readBuildOutputs,
  requireIndexes,
} from "../../export/build-outputs.ts";
import { readLimitOptions } from "../../run/limit-options.ts";
import { defaultJobs, isEmbedded } from "../../service/choice.ts";
import { readTimeout, type Timeout } from "../../service/timeout.ts";
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
  const { values, runtime, globals } = invocation;
  // The -t of docker build is a tag.
  const [tag = "NAME:TAG"] = /^[a-z].*/is.exec(values.text("timeout") ?? "") ?? [];
  const timeout = readTimeout(
    values,
    `It takes seconds, as in --timeout 1800. To tag the image, use --tag ${tag}.`,
  );
  const limits = readLimitOptions(values);
  if (values.list("registry-mirror").length > 0 && !isEmbedded(runtime, globals))
    throw usageError(
      "--registry-mirror: only bough's own engine on this machine imports with it",
      "A service fetches the images of FROM itself.",
    );
  const named = [...new Set(values.list("tag").map(parseTag))];
  const given = readBuildOutputs(invocation, named);
  const tags = [...new Set([...named, ...given.flatMap((output) => output.tags)])];
  if (
    values.text("digest-file") !== undefined &&
    given.every(({ destinations }) => destinations.length === 0)
  )
    throw usageError(
      "--digest-file needs an image that is written or pushed",
      "Give --push, or -o type=oci,dest=PATH.",
    );
  const asked = readAttestationOptions(invocation.entries, runtime);
  const isLeftOut = asked?.provenance?.isInlineOnly === true && !isAnyInline(given);
  const withoutProvenance = asked?.sbom && { ...asked, provenance: undefined };
  const attestations = isLeftOut ? withoutProvenance : asked;
  if (attestations?.sbom !== undefined || attestations?.provenance?.isInlineOnly === false)
    requireIndexes(given, attestations.provenance?.isInlineOnly === false ? "--provenance" : "--sbom");
  const outputs = withAnnotations(given, invocation);
  const annotations = outputs.flatMap((output) => output.annotations);
  const jobs = positiveInteger(values.text("jobs"), "--jobs", "It is a number of steps, as in --jobs 4.");
  return {
    ...{ timeout, limits, tags, outputs },
    annotatedPlatforms:
      annotations.length === 0 || runtime.isPlugin === true
        ? undefined
        : annotations.flatMap(({ platform }) => platform ?? []),
    attestations,
    useCache: !values.flag("no-cache"),
    pullsImages: values.flag("pull"),
    measuresLayers: values.text("metadata-file") !== undefined || values.text("report") !== undefined,
    jobsIn(dialect, service) {
      if (!dialect.buildsNeededStages) return 1;
      return jobs ?? defaultJobs(runtime, service);
    },
  };
}

/** Adds those of `--annotation` to those that an output has of its own, which they replace. */
function withAnnotations(
  outputs: readonly BuildOutput[],
  { values, runtime }: Pick<Invocation, "values" | "runtime">,
): BuildOutput[] {
  const all = outputs.flatMap(({ destinations }) => destinations);
  const common = readAnnotations(values.list("annotation"), all, runtime);
  return outputs.map((output, at) => {
    const own = readAnnotations(output.givenAnnotations, output.destinations, runtime);
    const ignored = [...output.ignored, ...own.ignored, ...(at === 0 ? common.ignored : [])];
    return { ...output, annotations: [...own.annotations, ...common.annotations], ignored };
  });
}

/** Reads `--on-error`. Throws a BoughError of kind `usage` if it is not a known action. */
export function readOnError(values: Values): "shell" | undefined {
  const given = values.text("on-error");
  return given === undefined ? undefined : oneOf(given, ["shell"], "--on-error");
}
