/** Verifies the signature in a bundle: it is by a given key, or by a certificate of a trusted authority that was valid when a trusted log entered it. */
import { createPublicKey, type KeyObject, verify, X509Certificate } from "node:crypto";
import { type Bundle, bundleFromJSON } from "@sigstore/bundle";
import type { TrustedRoot } from "@sigstore/protobuf-specs";
import {
  type SignedEntity,
  type Signer,
  toSignedEntity,
  toTrustMaterial,
  VerificationError,
  Verifier,
} from "@sigstore/verify";
import { once } from "../once.ts";
import { digestInPayload } from "./simple-signing.ts";
import { payloadType, readStatement, signaturePredicate } from "./statement.ts";

/** The trusted key, or the root of trusted authorities. With both, a log of the root must have the signature. */
interface SignatureTrust {
  /** In PEM. */
  key: string | undefined;
  root: TrustedRoot | undefined;
}

export interface VerifiedSigner {
  /** The identity in the certificate, and the issuer of the token that proved it; `undefined` for a key. */
  identity: string | undefined;
  issuer: string | undefined;
  /** The time of the log's entry or of a timestamp, in ISO 8601; `undefined` if neither is signed. */
  signedAt: string | undefined;
  /** The index of the log's entry; `undefined` unless the log has signed it. */
  logIndex: string | undefined;
}

/** A signature with the bytes that are signed: those of its envelope, or a payload beside it. */
export interface SignedBundle {
  /** Parsed JSON. */
  bundle: unknown;
  payload: Uint8Array | undefined;
}

/** Thrown for a bundle that does not verify. */
export class UnverifiedError extends Error {
  override readonly name = "UnverifiedError";
}

/** Throws an UnverifiedError unless the signer is trusted, and the signature is about the manifest with this digest. */
export type VerifyBundle = (
  signed: SignedBundle,
  about: { digest: string; predicateType: string },
) => VerifiedSigner;

/** The library's verifiers for a trust. */
interface Verifying {
  trust: SignatureTrust;
  verifier: () => Verifier;
  /** Returns a verifier for a key alone, without a timestamp. */
  verifierFor(key: KeyObject): Verifier;
}

export function createVerifier(trust: SignatureTrust): VerifyBundle {
  const verifying = verifyingBy(trust);
  return ({ bundle: given, payload }, { digest, predicateType }) => {
    const bundle = attempt("it is damaged", () => bundleFromJSON(given));
    const isCertified = bundle.verificationMaterial.content.$case !== "publicKey";
    if (isCertified && trust.key !== undefined) throw new UnverifiedError("it is not made by a key");
    if (!isCertified && trust.key === undefined)
      throw new UnverifiedError("it is made by a key, and has no certificate");
    const { signer, entity } = attempt("it does not verify", () =>
      verifySignature(bundle, payload, verifying),
    );
    requireSubject(bundle, payload, { digest, predicateType });
    const [time] = timesOf(entity);
    return {
      identity: signer.identity?.subjectAlternativeName,
      issuer: signer.identity?.extensions?.issuer,
      signedAt: time?.at.toISOString(),
      logIndex: promisedEntries(entity)[0]?.logIndex,
    };
  };
}

function verifyingBy(trust: SignatureTrust): Verifying {
  const { key, root } = trust;
  const { certificateAuthorities = [], timestampAuthorities = [], tlogs = [], ctlogs = [] } = root ?? {};
  const mediaType = root?.mediaType ?? "";
  const all = { mediaType, certificateAuthorities, timestampAuthorities, tlogs, ctlogs };
  // Signatures have to pass through the kinds of services that the root has. For a certificate, the time must be proven in any case.
  const required = (services: readonly unknown[]) => (services.length > 0 ? 1 : 0);
  const thresholds = { tlogThreshold: required(tlogs), ctlogThreshold: required(ctlogs) };
  const verifierWith = (publicKey: () => KeyObject, timestampThreshold: number) =>
    new Verifier(
      toTrustMaterial(all, () => ({ publicKey: publicKey(), validFor: () => true })),
      { ...thresholds, timestampThreshold },
    );
  const ownKey = once(() => {
    if (key === undefined) throw new UnverifiedError("it is made by a key");
    return createPublicKey(key);
  });
  return {
    trust,
    // A root with authorities that can't be read verifies nothing.
    verifier: once(() => verifierWith(ownKey, key === undefined ? 1 : 0)),
    verifierFor: (publicKey) => verifierWith(() => publicKey, 0),
  };
}

/** Returns the signer, and the verified parts of the bundle. */
function verifySignature(
  bundle: Bundle,
  payload: Uint8Array | undefined,
  { trust: { root }, verifier, verifierFor }: Verifying,
): { signer: Signer; entity: SignedEntity } {
  const whole = openEntity(bundle, payload);
  // Without a root, only the key is trusted, so entries of logs are ignored.
  const entity = root === undefined ? { ...whole, tlogEntries: [], timestamps: [] } : whole;
  try {
    return { signer: verifier().verify(entity), entity };
  } catch (error) {
    const certificate = certificateIn(bundle);
    const isByCertificate = error instanceof VerificationError && error.code === "CERTIFICATE_ERROR";
    if (!isByCertificate || certificate === undefined) throw error;
    // The library checks log entries last, so an unsigned time could cause a misleading error about the certificate.
    verifierFor(certificate.publicKey).verify({ ...entity, key: { $case: "public-key", hint: "" } });
    requireValidity(certificate, timesOf(entity));
    throw error;
  }
}

interface SignedTime {
  by: string;
  at: Date;
}

/** Returns the times that a log or a timestamp authority has signed. The time of an entry without a promise may be forged. */
function timesOf(entity: SignedEntity): SignedTime[] {
  return [
    ...promisedEntries(entity)
      .map(({ integratedTime }) => ({ by: "the log", at: new Date(Number(integratedTime) * 1000) }))
      .filter(({ at }) => at.getTime() > 0),
    ...entity.timestamps.flatMap((stamp) =>
      stamp.$case === "timestamp-authority"
        ? [{ by: "a timestamp authority", at: stamp.timestamp.signingTime }]
        : [],
    ),
  ];
}

/** Returns the entries whose time and index the log has signed. A proof alone covers neither. */
function promisedEntries({ tlogEntries }: SignedEntity): SignedEntity["tlogEntries"] {
  return tlogEntries.filter(({ inclusionPromise }) => inclusionPromise !== undefined);
}

/** Throws for a certificate that was not valid when it was used. */
function requireValidity(
  { validFromDate, validToDate }: X509Certificate,
  times: readonly SignedTime[],
): void {
  const wrong = times.find(({ at }) => at < validFromDate || at > validToDate);
  if (wrong === undefined) return;
  throw new UnverifiedError(
    `its certificate was valid from ${validFromDate.toISOString()} to ${validToDate.toISOString()}, but ${wrong.by} says that it was used at ${wrong.at.toISOString()}`,
  );
}

function certificateIn({ verificationMaterial: { content } }: Bundle): X509Certificate | undefined {
  const raw =
    content.$case === "certificate"
      ? content.certificate.rawBytes
      : content.$case === "x509CertificateChain"
        ? content.x509CertificateChain.certificates[0]?.rawBytes
        : undefined;
  return raw && new X509Certificate(raw);
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

function requireSubject(
  bundle: Bundle,
  payload: Uint8Array | undefined,
  { digest, predicateType }: { digest: string; predicateType: string },
): void {
  if (bundle.content.$case === "messageSignature") {
    const named = payload && digestInPayload(payload);
    if (named !== digest)
      throw new UnverifiedError(`it is about ${named ?? "something else"}, not about the image`);
    if (predicateType !== signaturePredicate)
      throw new UnverifiedError("it is a signature of the image alone, not a statement about it");
    return;
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

/** Performs an action of the library. Each of its failures means that the bundle does not verify, and its message says why. */
function attempt<Result>(what: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (error instanceof UnverifiedError) throw error;
    throw new UnverifiedError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
