import type { InputObserver } from "../../builder/contexts/named-context.ts";
import type { GivenSecrets } from "../../builder/state/secrets.ts";
import type { Attest } from "../../image/image-writer.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";
import type { Service } from "../../service/client.ts";
import type { AttestationOptions } from "./attestation-options.ts";
import { gatherProvenance, type RecordedInputs } from "./provenance.ts";
import { describePackages } from "./sbom.ts";

/** A build for one platform of several, or the only one. */
type TargetPlatform = Platform | undefined;

/** Returns what attests an image in one of the outputs; `undefined` if it gets no attestation there. */
export type AttestOutput = (output: { isInline: boolean }) => Attest | undefined;

interface Attesting {
  /** Returns the observer for a build. */
  inputsFor(platform: TargetPlatform): InputObserver | undefined;
  /** Call it once the build is over. `image`: its UUID; `names`: its names. */
  attest(service: Service, image: string, names: readonly string[], platform: TargetPlatform): AttestOutput;
}

/** Prepares the attestations of an image that `--provenance` and `--sbom` ask for. */
export function prepareAttestations(
  inputs: RecordedInputs,
  given: GivenSecrets,
  wanted: AttestationOptions,
): Attesting {
  const provenance = wanted.provenance && gatherProvenance(inputs, given, wanted.provenance);
  const keyOf = (platform: TargetPlatform) => (platform === undefined ? "" : formatPlatform(platform));
  return {
    inputsFor: (platform) => provenance?.inputsFor(keyOf(platform)),
    attest: (service, uuid, names, platform) => (output) => {
      const isLeftOut = wanted.provenance?.isInlineOnly === true && !output.isInline;
      const own = isLeftOut ? undefined : provenance;
      if (own === undefined && !wanted.sbom) return undefined;
      return async (image, digest) => {
        const subject = { image, digest, names };
        return [
          ...(wanted.sbom ? [await describePackages(service, uuid, subject)] : []),
          ...(own === undefined ? [] : [await own.describe(service, subject, keyOf(platform))]),
        ];
      };
    },
  };
}
