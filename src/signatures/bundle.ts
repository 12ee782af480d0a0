/** Signatures with the material to verify them, in one file: https://docs.sigstore.dev/about/bundle/ */

import { payloadType } from "./statement.ts";
import type { LogEntry } from "./transparency-log.ts";

export const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";

/** Matches the artifact type of a bundle of any version. */
export const anyBundleType = /^application\/vnd\.dev\.sigstore\.bundle[.+]/;

/** The signer: a certificate in DER, or the hint of a public key that the verifier has. */
export type SignerMaterial = { certificate: Uint8Array } | { keyHint: string };

interface SignedStatement {
  signer: SignerMaterial;
  payload: Uint8Array;
  signature: Uint8Array;
  logEntries: readonly LogEntry[];
  /** Responses of timestamp authorities, in DER. */
  timestamps: readonly Uint8Array[];
}

/** Returns the bundle of a signed statement, as JSON. */
export function encodeBundle({
  signer,
  payload,
  signature,
  logEntries,
  timestamps,
}: SignedStatement): Uint8Array {
  const bundle = {
    mediaType: bundleType,
    verificationMaterial: {
      ...("certificate" in signer
        ? { certificate: { rawBytes: base64(signer.certificate) } }
        : { publicKey: { hint: signer.keyHint } }),
      tlogEntries: logEntries.map(encodeEntry),
      timestampVerificationData: {
        rfc3161Timestamps: timestamps.map((each) => ({ signedTimestamp: base64(each) })),
      },
    },
    dsseEnvelope: encodeEnvelope(payload, signature),
  };
  return Buffer.from(JSON.stringify(bundle));
}

/** Returns a signed statement in the form of bundles and transparency logs: a DSSE envelope. */
export function encodeEnvelope(payload: Uint8Array, signature: Uint8Array) {
  return { payload: base64(payload), payloadType, signatures: [{ keyid: "", sig: base64(signature) }] };
}

/** Returns a log entry in the form of bundles: https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_rekor.proto */
export function encodeEntry(entry: LogEntry) {
  const { proof, promise } = entry;
  return {
    logIndex: entry.index,
    logId: { keyId: Buffer.from(entry.logId, "hex").toString("base64") },
    kindVersion: { kind: entry.kind, version: entry.version },
    integratedTime: entry.integratedTime,
    ...(promise !== undefined && { inclusionPromise: { signedEntryTimestamp: promise } }),
    ...(proof !== undefined && {
      inclusionProof: {
        logIndex: proof.index,
        rootHash: Buffer.from(proof.rootHash, "hex").toString("base64"),
        treeSize: proof.treeSize,
        hashes: proof.hashes.map((hash) => Buffer.from(hash, "hex").toString("base64")),
        checkpoint: { envelope: proof.checkpoint },
      },
    }),
    canonicalizedBody: entry.body,
  };
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
