import type { MissingPart } from "./state/warnings.ts";
import type { StepPlace } from "./step-place.ts";

/** The result of a build. */
export interface BuildResult {
  image: string;
  /** The image for each platform, if several were asked for. */
  platforms?: readonly PlatformImage[];
  /** Complete: `name:tag`. */
  tags: readonly string[];
  session: string;
  steps: readonly FinishedStep[];
  /** The files and bytes sent to the service, from the context and from URLs. */
  uploaded: { files: number; bytes: number };
  /** The parts of Docker's image that this one lacks, by line. Empty with `--docker`. */
  missing: readonly MissingPart[];
  seconds: number;
  /** How the image was written or pushed at the end of the build. */
  exported: readonly ExportedAs[];
}

export interface PlatformImage {
  platform: string;
  image: string;
  /** The profile of the service that has it, if `--platform-service` names one. */
  profile?: string | undefined;
}

/** An image that has left the service. */
export interface ExportedAs {
  destination: string;
  /** The descriptor of its manifest, or of the index of it and its attestations. */
  descriptor: { mediaType: string; digest: string; size: number };
  /** Docker's id of the image. */
  configDigest: string;
  /** The bytes of layers that a push sent, because the registry did not have them. */
  sentBytes?: number | undefined;
  /** The signature of a push with `--sign`. */
  signature?: ImageSignature | undefined;
}

/** The signature of an image in a registry. */
export interface ImageSignature {
  /** Null for a key. */
  identity: string | null;
  /** Null without a log. */
  logIndex: string | null;
  /** The digest of the Sigstore bundle. */
  bundle: string;
  /** The digest of the manifest that has it, a referrer of the image. */
  manifest: string;
}

/** The result of one instruction. The fields about a layer are null if the instruction makes none. */
export interface StepRecord extends StepPlace {
  /** The line in the Dockerfile. */
  line: number;
  /** The Dockerfile's words, on one line. */
  instruction: string;
  /** The name of its branch: `layer:` and the chain hash. */
  layer: string | null;
  image: string | null;
  /** The operation that made the layer, in this build or an earlier one. */
  operation: string | null;
  cached: boolean | null;
  seconds: number;
}

/** A step, after the build has ended. */
interface FinishedStep extends StepRecord {
  /** The bytes sent to the service for it, from the context and from URLs. */
  uploadedBytes: number;
  /** The size that its layer adds to the image. Null if there is no layer, or if the service does not report it. */
  addedBytes: number | null;
}
