import type { InputObserver } from "../../builder/contexts/named-context.ts";
import type { GivenSecrets } from "../../builder/state/secrets.ts";
import type { Attest } from "../../image/image-writer.ts";
import type { Service } from "../../service/client.ts";
import type { AttestationOptions } from "./attestation-options.ts";
import { gatherProvenance, type RecordedInputs } from "./provenance.ts";
import { describePackages } from "./sbom.ts";

interface Attesting {
  /** The observer for the build. */
  inputs: InputObserver | undefined;
  /** Call it once the build is over. `image`: its UUID; `names`: its names. */
  attest(service: Service, image: string, names: readonly string[]): Attest;
}

/** Prepares the attestations of an image that `--provenance` and `--sbom` ask for. */
export function prepareAttestations(
  inputs: RecordedInputs,
  given: GivenSecrets,
  wanted: AttestationOptions,
): Attesting {
  const provenance = wanted.provenance && gatherProvenance(inputs, given, wanted.provenance);
  return {
    inputs: provenance?.inputs,
    attest: (service, uuid, names) => async (image, digest) => {
      const subject = { image, digest, names };
      return [
        ...(wanted.sbom ? [await describePackages(service, uuid, subject)] : []),
        ...(provenance === undefined ? [] : [await provenance.describe(service, subject)]),
      ];
    },
  };
}
