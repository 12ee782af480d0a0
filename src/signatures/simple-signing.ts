/**
 * Signatures in the format of cosign 1 and 2: a payload that names an image's digest, in a manifest under a tag made of the digest.
 * https://github.com/sigstore/cosign/blob/main/specs/SIGNATURE_SPEC.md
 */
import { digestOf, hexOf } from "../image/digest.ts";
import { type Descriptor, mediaTypes } from "../image/oci-layout.ts";
import { parseDescriptor } from "../registry/blob-store.ts";
import { asRecord, asText, parseRecord } from "../service/http/json.ts";
import { encodeEntry } from "./bundle.ts";
import { type LogEntry, readLogEntry } from "./transparency-log.ts";

const payloadType = "application/vnd.dev.cosign.simplesigning.v1+json";

const annotations = {
  signature: "dev.cosignproject.cosign/signature",
  certificate: "dev.sigstore.cosign/certificate",
  chain: "dev.sigstore.cosign/chain",
  entry: "dev.sigstore.cosign/bundle",
} as const;

/** Returns the tag for signatures of a manifest. */
export function signatureTag(digest: string): string {
  return `sha256-${hexOf(digest)}.sig`;
}

/** @param name the image's, without a tag: `registry.example/team/app` */
export function simplePayload(name: string, digest: string): Uint8Array {
  const payload = {
    critical: {
      identity: { "docker-reference": name },
      image: { "docker-manifest-digest": digest },
      type: "cosign container image signature",
    },
    optional: null,
  };
  return Buffer.from(JSON.stringify(payload));
}

/** Returns the image's digest in a payload; `undefined` if there is none. */
export function digestInPayload(payload: Uint8Array): string | undefined {
  const critical = asRecord(parseRecord(payload)?.critical);
  return asText(asRecord(critical?.image)?.["docker-manifest-digest"]);
}

export interface SimpleSignature {
  payload: Uint8Array;
  signature: Uint8Array;
  /** In PEM; `undefined` for a signature by a key. */
  certificate: { pem: string; chain: readonly string[] } | undefined;
  logEntry: LogEntry | undefined;
}

/** Returns the layer of a signature, whose blob is the payload. */
export function encodeSignatureLayer({
  payload,
  signature,
  certificate,
  logEntry,
}: SimpleSignature): Descriptor {
  const entry = logEntry && {
    SignedEntryTimestamp: logEntry.promise,
    Payload: {
      body: logEntry.body,
      integratedTime: Number(logEntry.integratedTime),
      logIndex: Number(logEntry.index),
      logID: logEntry.logId,
    },
  };
  return {
    ...{ mediaType: payloadType, digest: digestOf(payload), size: payload.byteLength },
    annotations: {
      [annotations.signature]: Buffer.from(signature).toString("base64"),
      ...(certificate && {
        [annotations.certificate]: certificate.pem,
        [annotations.chain]: certificate.chain.join(""),
      }),
      ...(entry && { [annotations.entry]: JSON.stringify(entry) }),
    },
  };
}

/** Returns a manifest of signatures with one layer more. `previous`: the manifest under the tag; `config`: the configuration of all. */
export function addSignatureLayer(
  previous: Uint8Array | undefined,
  layer: Descriptor,
  config: Descriptor,
): Uint8Array {
  const record = previous === undefined ? undefined : parseRecord(previous);
  const layers: unknown[] = Array.isArray(record?.layers) ? record.layers : [];
  const manifest = { schemaVersion: 2, mediaType: mediaTypes.manifest, config, layers: [...layers, layer] };
  return Buffer.from(JSON.stringify(manifest));
}

/** A layer of a manifest of signatures. Its blob is the payload. */
interface SignatureLayer {
  payload: Descriptor;
  annotations: Readonly<Record<string, unknown>>;
}

export function readSignatureLayers(manifest: Uint8Array): SignatureLayer[] {
  const layers: unknown = parseRecord(manifest)?.layers;
  return (Array.isArray(layers) ? layers : []).flatMap((layer) => {
    const [payload, given] = [parseDescriptor(layer), asRecord(asRecord(layer)?.annotations)];
    return payload?.mediaType === payloadType ? [{ payload, annotations: given ?? {} }] : [];
  });
}

/** Converts a layer's signature to a bundle. Returns `undefined` if the layer has none. */
export function bundleOf(given: SignatureLayer["annotations"], payload: Uint8Array): object | undefined {
  const signature = asText(given[annotations.signature]);
  if (signature === undefined) return undefined;
  const certificate = derOf(asText(given[annotations.certificate]));
  const entry = parseRecord(asText(given[annotations.entry]) ?? "");
  const promise = asText(entry?.SignedEntryTimestamp);
  const logEntry = entry && readLogEntry(asRecord(entry.Payload), { promise, proof: undefined });
  const digest = hexOf(digestOf(payload));
  return {
    mediaType: "application/vnd.dev.sigstore.bundle+json;version=0.1",
    verificationMaterial: {
      ...(certificate === undefined
        ? { publicKey: { hint: "" } }
        : { x509CertificateChain: { certificates: [{ rawBytes: certificate }] } }),
      tlogEntries: logEntry === undefined ? [] : [encodeEntry(logEntry)],
    },
    messageSignature: {
      messageDigest: { algorithm: "SHA2_256", digest: Buffer.from(digest, "hex").toString("base64") },
      signature,
    },
  };
}

/** Returns the base64 in the first block of a PEM file. */
function derOf(pem: string | undefined): string | undefined {
  return /-----BEGIN CERTIFICATE-----([A-Za-z0-9+/=\s]+)-----END CERTIFICATE-----/
    .exec(pem ?? "")?.[1]
    ?.replace(/\s/g, "");
}
