import { BoughError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import type { AttestationEntry, ProvenanceOptions, SbomOptions } from "../entries/attestation.ts";
import type { Runtime } from "../process/runtime.ts";

/** The options, as they are given. */
interface GivenAttestations {
  readonly attest?: readonly AttestationEntry[] | undefined;
  readonly provenance?: AttestationEntry | undefined;
  readonly sbom?: AttestationEntry | undefined;
}

/** `--provenance`, `--sbom` and `--attest`. */
export interface AttestationOptions {
  /** `undefined` for none. */
  provenance: ProvenanceOptions | undefined;
  sbom: SbomOptions | undefined;
}

/**
 * Chooses between docker buildx's options. A later one replaces an earlier one of its kind. `undefined` if nothing is to be recorded. In the
 * place of docker's builder, images that are pushed or loaded have a provenance unless something says otherwise.
 * https://docs.docker.com/build/metadata/attestations/
 */
export function readAttestationOptions(
  { attest = [], provenance: given, sbom: packages }: GivenAttestations,
  runtime: Pick<Runtime, "isPlugin" | "environment">,
): AttestationOptions | undefined {
  const attestations = [...attest, ...(given ? [given] : []), ...(packages ? [packages] : [])];
  const provenance = attestations.findLast((entry) => entry.kind === "provenance");
  const sbom = attestations.findLast((entry) => entry.kind === "sbom");
  const options = {
    provenance: provenance === undefined ? defaultProvenance(runtime) : provenance.options,
    sbom: sbom?.options,
  };
  return options.provenance === undefined && options.sbom === undefined ? undefined : options;
}

/** https://docs.docker.com/build/building/variables/#buildx_no_default_attestations */
function defaultProvenance({
  isPlugin,
  environment,
}: Pick<Runtime, "isPlugin" | "environment">): ProvenanceOptions | undefined {
  const { BUILDX_NO_DEFAULT_ATTESTATIONS: none } = environment;
  if (isPlugin !== true) return undefined;
  const isOff = none !== undefined && parseGoBoolean(none);
  if (isOff === undefined)
    throw new BoughError(
      `invalid BUILDX_NO_DEFAULT_ATTESTATIONS: strconv.ParseBool: parsing ${JSON.stringify(none)}: invalid syntax`,
    );
  return isOff ? undefined : { hasArguments: false, builderId: undefined, isInlineOnly: true };
}

/** What a value of `--provenance` looks like, where the word behind it may be something else. */
export const provenanceValue =
  /^(true|false|[10]|(mode|builder-id|version|disabled|reproducible|inline-only|filename)=.*)$/;

export const sbomValue = /^(true|false|[10]|(generator|disabled|filename|scan-\w+|[A-Z_]+)=.*)$/;
