/** Signs the manifest of an image, and stores the signature beside it. */
import { withPrefix } from "../errors.ts";
import { digestOf, hexOf } from "../image/digest.ts";
import type { Referrers } from "../registry/referrers.ts";
import { type AttachedBundle, attachBundle, attachSimple } from "./attach.ts";
import { encodeBundle, encodeEnvelope, type SignerMaterial } from "./bundle.ts";
import { type Certified, certify, identityOf } from "./certificate-authority.ts";
import { fetchToken, type TokenSource } from "./identity-token.ts";
import { makeSigningKey, type SigningKey } from "./signing-key.ts";
import { createSigningService, type ServiceDependencies } from "./signing-service.ts";
import { type SimpleSignature, simplePayload } from "./simple-signing.ts";
import { preAuthEncoding, signatureStatement } from "./statement.ts";
import { timestamp } from "./timestamp-authority.ts";
import { enter, type LogEntry } from "./transparency-log.ts";

export interface SigningOptions {
  /** The key, or what proves an identity to the authority that certifies a key made for one signature. */
  by: { key: SigningKey } | { token: TokenSource; authority: string };
  /** Addresses of services; `undefined` for none. */
  log: string | undefined;
  timestampAuthority: string | undefined;
  /** True to write it also under cosign's old tag. */
  hasCosignTag: boolean;
}

/** What is signed: a manifest, and the repository that has it, as `registry.example/team/app`. */
interface Subject {
  mediaType: string;
  digest: string;
  size: number;
}

interface Signature {
  /** Whom the certificate names; `undefined` for a key. */
  identity: string | undefined;
  /** Where the log has it; `undefined` without a log. */
  logIndex: string | undefined;
}

/** A signature beside its image. */
export interface AttachedSignature extends Signature, AttachedBundle {}

export interface ImageSigner {
  /** Signs a manifest that a repository has. One that is in several repositories is signed once. @param name without a tag */
  sign(subject: Subject, name: string, referrers: Referrers, signal: AbortSignal): Promise<AttachedSignature>;
}

export function createSigner(options: SigningOptions, dependencies: ServiceDependencies): ImageSigner {
  const signed = new Map<string, Promise<{ bundle: Uint8Array; signature: Signature; signing: Signing }>>();
  const attached = new Map<string, Promise<AttachedSignature>>();

  async function signOnce(digest: string, signal: AbortSignal) {
    const signing = await openSigning(options, dependencies, signal);
    const payload = signatureStatement(digest);
    const made = await signing.sign(preAuthEncoding(payload), (signature, verifier) => ({
      ...{ kind: "dsse", verifier, envelope: encodeEnvelope(payload, signature) },
    }));
    const { signature, logEntry, timestamps } = made;
    const logEntries = logEntry === undefined ? [] : [logEntry];
    const bundle = encodeBundle({ signer: signing.material, payload, signature, logEntries, timestamps });
    const { identity } = signing;
    return { bundle, signing, signature: { identity, logIndex: logEntry?.index } };
  }

  async function attach(subject: Subject, name: string, referrers: Referrers, signal: AbortSignal) {
    const { digest } = subject;
    const { bundle, signing, signature } = await signed.getOrInsertComputed(digest, () =>
      signOnce(digest, signal),
    );
    const created = new Date(dependencies.clock.now()).toISOString();
    const stored = await attachBundle(referrers, subject, { bundle, created }, signal);
    if (options.hasCosignTag) {
      const payload = simplePayload(name, digest);
      const simple = await signing.signSimple(payload);
      await attachSimple(referrers, digest, simple, signal);
    }
    return { ...signature, ...stored };
  }

  return {
    async sign(subject, name, referrers, signal) {
      const key = `${name}@${subject.digest}`;
      try {
        return await attached.getOrInsertComputed(key, () => attach(subject, name, referrers, signal));
      } catch (error) {
        // Whoever asks again may have more luck.
        signed.delete(subject.digest);
        attached.delete(key);
        throw withPrefix(error, `signing ${key} failed`);
      }
    },
  };
}

interface Made {
  signature: Uint8Array;
  logEntry: LogEntry | undefined;
  timestamps: readonly Uint8Array[];
}

type Proposal = (signature: Uint8Array, verifier: string) => Parameters<typeof enter>[1];

/** A key with what vouches for it. */
interface Signing {
  material: SignerMaterial;
  identity: string | undefined;
  /** @param propose what is entered into the log */
  sign(bytes: Uint8Array, propose: Proposal): Promise<Made>;
  signSimple(payload: Uint8Array): Promise<SimpleSignature>;
}

async function openSigning(
  { by, log, timestampAuthority }: SigningOptions,
  dependencies: ServiceDependencies,
  signal: AbortSignal,
): Promise<Signing> {
  const open = (address: string) => createSigningService(address, dependencies);
  const key = "key" in by ? by.key : makeSigningKey();
  const certified: Certified | undefined =
    "key" in by
      ? undefined
      : await certify(open(by.authority), key, await fetchToken(by.token, dependencies, signal), signal);
  const pem = certified?.certificate.toString();
  const sign: Signing["sign"] = async (bytes, propose) => {
    const signature = key.sign(bytes);
    const [logEntry, stamp] = await Promise.all([
      log === undefined ? undefined : enter(open(log), propose(signature, pem ?? key.publicKey), signal),
      timestampAuthority === undefined ? undefined : timestamp(open(timestampAuthority), signature, signal),
    ]);
    return { signature, logEntry, timestamps: stamp === undefined ? [] : [stamp] };
  };
  return {
    material: certified === undefined ? { keyHint: key.hint } : { certificate: certified.certificate.raw },
    identity: certified && identityOf(certified.certificate),
    sign,
    async signSimple(payload) {
      const sha256 = hexOf(digestOf(payload));
      const { signature, logEntry } = await sign(payload, (made, verifier) => ({
        ...{ kind: "hashedrekord", sha256, signature: made, verifier },
      }));
      const certificate = pem === undefined ? undefined : { pem, chain: certified?.chain ?? [] };
      return { payload, signature, certificate, logEntry };
    },
  };
}
