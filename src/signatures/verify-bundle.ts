/** Checks the signature in a bundle: that a key made it, or somebody whom a trusted authority has certified when a trusted log entered it. */
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
  /** When the log entered it, or a timestamp authority saw it, in ISO 8601; `undefined` if neither has signed a time. */
  signedAt: string | undefined;
  /** Where the log has it; `undefined` unless the log has signed that. */
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
export type VerifyBundle = (
  signed: SignedBundle,
  about: { digest: string; predicateType: string },
) => VerifiedSigner;

/** What a trust means to the library. */
interface Verifying {
  trust: Trust;
  verifier: () => Verifier;
  /** Returns one for a key alone, which asks for no proven time. */
  verifierFor(key: KeyObject): Verifier;
}

export function createVerifier(trust: Trust): VerifyBundle {
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

function verifyingBy(trust: Trust): Verifying {
  const { key, root } = trust;
  const { certificateAuthorities = [], timestampAuthorities = [], tlogs = [], ctlogs = [] } = root ?? {};
  const mediaType = root?.mediaType ?? "";
  const all = { mediaType, certificateAuthorities, timestampAuthorities, tlogs, ctlogs };
  // A root says which services its signatures pass through. When a certificate was used has to be proven in any case.
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

/** Returns who has signed, and what of the bundle is verified. */
function verifySignature(
  bundle: Bundle,
  payload: Uint8Array | undefined,
  { trust: { root }, verifier, verifierFor }: Verifying,
): { signer: Signer; entity: SignedEntity } {
  const whole = openEntity(bundle, payload);
  // Without a root, nothing but the key is trusted: what logs say is left out.
  const entity = root === undefined ? { ...whole, tlogEntries: [], timestamps: [] } : whole;
  try {
    return { signer: verifier().verify(entity), entity };
  } catch (error) {
    const certificate = certificateIn(bundle);
    const isByCertificate = error instanceof VerificationError && error.code === "CERTIFICATE_ERROR";
    if (!isByCertificate || certificate === undefined) throw error;
    // The library checks what logs say last. A time that nobody has signed is no reason to blame the certificate.
    verifierFor(certificate.publicKey).verify({ ...entity, key: { $case: "public-key", hint: "" } });
    requireValidity(certificate, timesOf(entity));
    throw error;
  }
}

interface SignedTime {
  by: string;
  at: Date;
}

/** Returns the times that others have signed. Who has written a bundle may have changed that of an entry without a promise. */
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

/** Every failure of the library means the same: nothing is proven. Its messages say why. */
function attempt<Result>(what: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (error instanceof UnverifiedError) throw error;
    throw new UnverifiedError(`${what}: ${error instanceof Error ? error.message : String(error)}`);
  }
}
