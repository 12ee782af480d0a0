/** Signatures with what proves them, in one file: https://docs.sigstore.dev/about/bundle/ */

import { payloadType } from "./statement.ts";
import type { LogEntry } from "./transparency-log.ts";

export const bundleType = "application/vnd.dev.sigstore.bundle.v0.3+json";

/** What an artifact type of a bundle begins with, whatever its version. */
export const anyBundleType = /^application\/vnd\.dev\.sigstore\.bundle[.+]/;

/** Who has signed: a certificate in DER, or a key that whoever verifies it has. */
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

/** Returns a signed statement as a transparency log takes it, and as a bundle has it. */
export function encodeEnvelope(payload: Uint8Array, signature: Uint8Array) {
  return { payload: base64(payload), payloadType, signatures: [{ keyid: "", sig: base64(signature) }] };
}

/** Returns an entry as bundles have it: https://github.com/sigstore/protobuf-specs/blob/main/protos/sigstore_rekor.proto */
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
