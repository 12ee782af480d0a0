/** Certificates for keys, by an authority that checks an identity token: https://github.com/sigstore/fulcio/blob/main/fulcio.proto */
import { X509Certificate } from "node:crypto";
import { X509Certificate as Fields } from "@sigstore/core";
import { asRecord, parseRecord } from "../service/http/json.ts";
import type { IdentityToken } from "./identity-token.ts";
import type { SigningKey } from "./signing-key.ts";
import type { SigningService } from "./signing-service.ts";

export interface Certified {
  certificate: X509Certificate;
  /** The certificates that have signed it, in PEM, up to the root's. */
  chain: readonly string[];
}

export async function certify(
  authority: SigningService,
  key: SigningKey,
  { token, subject }: IdentityToken,
  signal: AbortSignal,
): Promise<Certified> {
  const request = {
    credentials: { oidcIdentityToken: token.text() },
    publicKeyRequest: {
      publicKey: { algorithm: "ECDSA", content: key.publicKey },
      proofOfPossession: Buffer.from(key.sign(Buffer.from(subject))).toString("base64"),
    },
  };
  const response = await authority.post("api/v2/signingCert", { json: request }, signal);
  const record = parseRecord(response.bytes);
  const signed = asRecord(record?.signedCertificateEmbeddedSct ?? record?.signedCertificateDetachedSct);
  const certificates: unknown = asRecord(signed?.chain)?.certificates;
  const [leaf, ...chain] = Array.isArray(certificates) ? certificates.map(String) : [];
  const certificate = leaf === undefined ? undefined : parseCertificate(leaf);
  const own = certificate?.publicKey.export({ type: "spki", format: "pem" }).toString();
  return certificate === undefined || own !== key.publicKey
    ? authority.fail(response)
    : { certificate, chain };
}

/** Returns the identity in a certificate, in the form that verifiers read: `https://github.com/...`, or an email address. */
export function certificateIdentity({ raw }: X509Certificate): string {
  return Fields.parse(raw).subjectAltName ?? "";
}

function parseCertificate(pem: string): X509Certificate | undefined {
  try {
    return new X509Certificate(pem);
  } catch {
    return undefined;
  }
}
