import { canonicalJson } from "../../../builder/keys/canonical-json.ts";
import { asksForPlatforms } from "../../../builder/state/platform.ts";
import { formatPlatform } from "../../../image/platform.ts";
import { type Annotation, parseAnnotation } from "../../export/annotations.ts";
import { readAttestationOptions } from "../../export/attestation-options.ts";
import { readOutputForms } from "../../export/build-outputs.ts";
import type { BuildInvocation } from "../request.ts";

/**
 * Returns what a content key covers beside the image itself: the form in which it is written, and what is written with it. `undefined`
 * if the form is the usual one, and there is nothing else. Counts what options mean, not how they are written; and what would be
 * written if the image were pushed, so that the key is the same before.
 */
export function besideImage(
  build: Pick<BuildInvocation, "context" | "options" | "runtime">,
  buildArgs: ReadonlyMap<string, string>,
): string | undefined {
  const { annotation: common = [], sign: signature } = build.options;
  const forms = readOutputForms(build).map(
    ({ compression, times, recompresses, hasDockersTypes, givenAnnotations }) =>
      canonicalJson({
        ...(compression !== "gzip" && { compression }),
        ...(times.rewritesTimestamps && { epoch: times.epoch }),
        ...(recompresses && { recompresses }),
        ...(hasDockersTypes && { hasDockersTypes }),
        ...annotationsIn([
          ...givenAnnotations.flatMap((text) => parseAnnotation(text, "manifest")),
          ...common,
        ]),
      }),
  );
  const attestations = readAttestationOptions(build.options, build.runtime);
  const { provenance } = attestations ?? {};
  const beside = canonicalJson({
    ...(provenance && { provenance: { ...provenance, isInlineOnly: undefined } }),
    ...(attestations?.sbom && { sbom: attestations.sbom }),
    // The path of a key, or of a token, is another one on each machine.
    ...(signature && {
      signature: { ...signature, by: signature.by.kind === "key" ? "key" : signature.by.authority },
    }),
    ...(asksForPlatforms(buildArgs) && { isIndex: true }),
  });
  const written = [...new Set(forms.length > 0 ? forms : [canonicalJson(annotationsIn(common))])].sort();
  return beside === "{}" && written.join() === "{}" ? undefined : JSON.stringify([written, beside]);
}

/** Returns the annotations by their places. As in what is written, the last one of a key counts. */
function annotationsIn(annotations: readonly Annotation[]): { annotations?: Record<string, string> } {
  return annotations.length === 0
    ? {}
    : { annotations: Object.fromEntries(annotations.map((each) => [placeOf(each), each.value])) };
}

function placeOf({ part, platform, key }: Annotation): string {
  return JSON.stringify([part, platform && formatPlatform(platform), key]);
}
