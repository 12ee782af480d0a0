/** Checks the signature in a bundle: that a key made it, or somebody whom a trusted authority has certified when a trusted log entered it. */
import { createPublicKey, verify, X509Certificate } from "node:crypto";
import { type Bundle, bundleFromJSON } from "@sigstore/bundle";
import type { TrustedRoot } from "@sigstore/protobuf-specs";
import { type SignedEntity, toSignedEntity, toTrustMaterial, Verifier } from "@sigstore/verify";
import { digestInPayload } from "./simple-signing.ts";
import { payloadType, readStatement } from "./statement.ts";

/** What a signature has to be by. With a key and a root, a log of the root has to have it. */
export interface Trust {
  /** In PEM. */
  key: string | undefined;
  root: TrustedRoot | undefined;
}

export interface VerifiedSigner {
  /** Whom the certificate names, and who has vouched for that to the authority; `undefined` for a key. */
  identity: string | undefined;
  issuer: string | undefined;
  /** When the log entered it, in ISO 8601; `undefined` if nothing says so. */
  signedAt: string | undefined;
  logIndex: string | undefined;
}

/** A signature with the bytes that are signed: those of its envelope, or a payload beside it. */
export interface SignedBundle {
  /** Parsed JSON. */
  bundle: unknown;
  payload: Uint8Array | undefined;
}

/** Why a bundle is no proof. */
export class UnverifiedError extends Error {
  override readonly name = "UnverifiedError";
}

/** Throws an UnverifiedError unless the signature is by whom is trusted, and about the manifest with this digest. */
export function verifyBundle(
  { bundle: given, payload }: SignedBundle,
  { digest, predicateType }: { digest: string; predicateType: string },
  trust: Trust,
): VerifiedSigner {
  const bundle = attempt("it is damaged", () => bundleFromJSON(given));
  const isCertified = bundle.verificationMaterial.content.$case !== "publicKey";
  if (isCertified && trust.key !== undefined) throw new UnverifiedError("it is not made by a key");
  if (!isCertified && trust.key === undefined)
    throw new UnverifiedError("it is made by a key, and has no certificate");
  const signer = attempt(
    "it does not verify",
    () => verifySignature(bundle, payload, trust),
    () => expiryIn(bundle),
  );
  requireSubject(bundle, payload, { digest, predicateType });
  const [entry] = bundle.verificationMaterial.tlogEntries;
  const isProven = entry !== undefined && trust.root !== undefined;
  const seconds = isProven ? Number(entry.integratedTime) : 0;
  return {
    identity: signer.identity?.subjectAlternativeName,
    issuer: signer.identity?.extensions?.issuer,
    signedAt: seconds > 0 ? new Date(seconds * 1000).toISOString() : undefined,
    logIndex: isProven ? entry.logIndex : undefined,
  };
}

function verifySignature(bundle: Bundle, payload: Uint8Array | undefined, { key, root }: Trust) {
  const { certificateAuthorities = [], timestampAuthorities = [], tlogs = [], ctlogs = [] } = root ?? {};
  const mediaType = root?.mediaType ?? "";
  const all = { mediaType, certificateAuthorities, timestampAuthorities, tlogs, ctlogs };
  const material = toTrustMaterial(all, () => {
    if (key === undefined) throw new UnverifiedError("it is made by a key");
    return { publicKey: createPublicKey(key), validFor: () => true };
  });
  const entity = openEntity(bundle, payload);
  // Without a root, nothing but the key is trusted: what logs say is left out.
  const checked = root === undefined ? { ...entity, tlogEntries: [], timestamps: [] } : entity;
  // A root says which services its signatures pass through. When a certificate was used has to be proven in any case.
  const required = (services: readonly unknown[]) => (services.length > 0 ? 1 : 0);
  const verifier = new Verifier(material, {
    tlogThreshold: required(tlogs),
    ctlogThreshold: required(ctlogs),
    timestampThreshold: key === undefined ? 1 : 0,
  });
  return verifier.verify(checked);
}

function openEntity(bundle: Bundle, payload: Uint8Array | undefined): SignedEntity {
  if (payload === undefined) return toSignedEntity(bundle);
  const entity = toSignedEntity(bundle, Buffer.from(payload));
  const { signature: content } = entity;
  return {
    ...entity,
    signature: {
      signature: content.signature,
      compareSignature: (other) => content.compareSignature(other),
      compareDigest: (digest) => content.compareDigest(digest),
      compareSignedDigest: (digest) => content.compareSignedDigest(digest),
      // Ed25519 signs the payload itself, not its digest.
      verifySignature: (key) =>
        key.asymmetricKeyType === "ed25519"
          ? verify(null, payload, key, content.signature)
          : content.verifySignature(key),
    },
  };
}

/** Returns the sentence on a certificate that was not valid when the log says that it was used; `undefined` for others. */
function expiryIn({ verificationMaterial: { content, tlogEntries } }: Bundle): string | undefined {
  const raw =
    content.$case === "certificate"
      ? content.certificate.rawBytes
      : content.$case === "x509CertificateChain"
        ? content.x509CertificateChain.certificates[0]?.rawBytes
        : undefined;
  const seconds = Number(tlogEntries[0]?.integratedTime ?? 0);
  if (raw === undefined || seconds === 0) return undefined;
  const { validFromDate, validToDate } = new X509Certificate(raw);
  const used = new Date(seconds * 1000);
  if (used >= validFromDate && used <= validToDate) return undefined;
  return `its certificate was valid from ${validFromDate.toISOString()} to ${validToDate.toISOString()}, but the log says that it was used at ${used.toISOString()}`;
}

function requireSubject(
  bundle: Bundle,
  payload: Uint8Array | undefined,
  { digest, predicateType }: { digest: string; predicateType: string },
): void {
  if (bundle.content.$case === "messageSignature") {
    const named = payload && digestInPayload(payload);
    if (named === digest) return;
    throw new UnverifiedError(`it is about ${named ?? "something else"}, not about the image`);
  }
  const envelope = bundle.content.dsseEnvelope;
  const statement = envelope.payloadType === payloadType ? readStatement(envelope.payload) : undefined;
  if (statement === undefined) throw new UnverifiedError("it signs something else than an in-toto statement");
  if (!statement.digests.includes(digest))
    throw new UnverifiedError(
      `it is about ${statement.digests.join(", ") || "nothing"}, not about the image`,
    );
  if (statement.predicateType !== predicateType)
    throw new UnverifiedError(`it is a statement of type ${statement.predicateType}`);
}

/** Every failure of the library means the same: nothing is proven. Its messages say why, unless `explain` knows more. */
function attempt<Result>(what: string, action: () => Result, explain?: () => string | undefined): Result {
  try {
    return action();
  } catch (error) {
    if (error instanceof UnverifiedError) throw error;
    const explained = explain?.();
    if (explained !== undefined) throw new UnverifiedError(explained);
    throw new UnverifiedError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
