/**
 * The signed content: an in-toto statement about the manifest of an image, in an envelope.
 * https://github.com/in-toto/attestation/blob/main/spec/v1/statement.md, https://github.com/secure-systems-lab/dsse
 */
import { hexOf } from "../image/digest.ts";
import { mediaTypes, statementType } from "../image/oci-layout.ts";
import { asRecord, asText, type JsonRecord, parseRecord } from "../service/http/json.ts";

/** The predicate type of an image's signature since cosign 3. */
export const signaturePredicate = "https://sigstore.dev/cosign/sign/v1";
export const payloadType = mediaTypes.statement;

/** Returns the statement to sign for a manifest. */
export function signatureStatement(digest: string): Uint8Array {
  const statement = {
    _type: statementType,
    subject: [{ digest: { sha256: hexOf(digest) } }],
    predicateType: signaturePredicate,
    predicate: {},
  };
  return Buffer.from(JSON.stringify(statement));
}

/** Returns the bytes that are signed instead of a payload, which include its type: a payload can't be taken for one of another type. */
export function preAuthEncoding(payload: Uint8Array): Uint8Array {
  const head = `DSSEv1 ${payloadType.length} ${payloadType} ${payload.byteLength} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

interface InTotoStatement {
  predicateType: string | undefined;
  /** The SHA-256 digests of its subjects. */
  digests: readonly string[];
}

/** True for a statement of any version. */
export function isStatement(record: JsonRecord | undefined): record is JsonRecord {
  return /^https:\/\/in-toto\.io\/Statement\/v/.test(asText(record?._type) ?? "");
}

/** Reads a statement. Returns `undefined` for other content. */
export function readStatement(payload: Uint8Array): InTotoStatement | undefined {
  const record = parseRecord(payload);
  if (!isStatement(record)) return undefined;
  const subjects: unknown[] = Array.isArray(record?.subject) ? record.subject : [];
  const digests = subjects.flatMap((subject) => {
    const hex = asText(asRecord(asRecord(subject)?.digest)?.sha256);
    return hex === undefined ? [] : [`sha256:${hex}`];
  });
  return { predicateType: asText(record?.predicateType), digests };
}
