import type { InputObserver } from "../../builder/contexts/named-context.ts";
import type { GivenSecrets } from "../../builder/state/secrets.ts";
import type { Attest } from "../../image/image-writer.ts";
import { formatPlatform, type Platform } from "../../image/platform.ts";
import type { SbomOptions } from "../entries/attestation.ts";
import type { Connection } from "../service/connection.ts";
import type { AttestationOptions } from "./attestation-options.ts";
import { gatherProvenance, type RecordedInputs } from "./provenance.ts";
import { describePackages, findPackages, type ListedPackage } from "./sbom.ts";
import { statementOf } from "./statement.ts";

/** A build for one platform of several, or the only one. */
type TargetPlatform = Platform | undefined;

/** Returns what attests an image in one of the outputs; `undefined` if it gets no attestation there. */
export type AttestOutput = (output: { isInline: boolean }) => Attest | undefined;

interface Attesting {
  /** Returns the observer for a build. */
  inputsFor(platform: TargetPlatform): InputObserver | undefined;
  /** Set if a scanner runs: it is told what the build has for it beside each image. */
  noteScanTargets: ((image: string, targets: readonly ScanTarget[]) => void) | undefined;
  /** Call it once the build is over. `image`: its UUID; `names`: its names. */
  attest(
    connection: Connection,
    image: string,
    names: readonly string[],
    platform: TargetPlatform,
  ): AttestOutput;
}

/** What a scanner says about an image's files. */
export interface ScanResult {
  predicateType: string;
  predicate: object;
}

/** A stage or the context, which a scanner sees beside the image. `image`: has its files. */
interface ScanTarget {
  name: string;
  image: string;
}

/** Runs a scanner over an image. */
export type ScanImage = (
  generator: NonNullable<SbomOptions["generator"]>,
  scanned: { image: string; extras: readonly ScanTarget[] },
  connection: Connection,
) => Promise<ScanResult[]>;

/** Prepares the attestations of an image that `--provenance` and `--sbom` ask for. */
export function prepareAttestations(
  inputs: RecordedInputs,
  given: GivenSecrets,
  wanted: AttestationOptions,
  scan: ScanImage,
): Attesting {
  const provenance = wanted.provenance && gatherProvenance(inputs, given, wanted.provenance);
  const keyOf = (platform: TargetPlatform) => (platform === undefined ? "" : formatPlatform(platform));
  // An image that goes to several places is read and scanned once.
  const packages = new Map<string, Promise<ListedPackage[]>>();
  const scans = new Map<string, Promise<ScanResult[]>>();
  const extras = new Map<string, readonly ScanTarget[]>();
  return {
    noteScanTargets: wanted.sbom?.generator && ((image, targets) => void extras.set(image, targets)),
    inputsFor: (platform) => provenance?.inputsFor(keyOf(platform)),
    attest: (connection, uuid, names, platform) => (output) => {
      const { service } = connection;
      const isLeftOut = wanted.provenance?.isInlineOnly === true && !output.isInline;
      const own = isLeftOut ? undefined : provenance;
      if (own === undefined && wanted.sbom === undefined) return undefined;
      return async (image, digest) => {
        const subject = { image, digest, names };
        const listed = async () => {
          const { generator } = wanted.sbom ?? {};
          if (generator === undefined) {
            const found = packages.getOrInsertComputed(uuid, () => findPackages(service, uuid));
            return [describePackages(await found, subject)];
          }
          const results = await scans.getOrInsertComputed(uuid, () =>
            scan(generator, { image: uuid, extras: extras.get(uuid) ?? [] }, connection),
          );
          return results.map(({ predicateType, predicate }) =>
            statementOf(subject, predicateType, predicate),
          );
        };
        return [
          ...(wanted.sbom === undefined ? [] : await listed()),
          ...(own === undefined ? [] : [await own.describe(service, subject, keyOf(platform))]),
        ];
      };
    },
  };
}
