/** Signs the manifest of an image, and stores the signature beside it. */
import { withPrefix } from "../errors.ts";
import { digestOf, hexOf } from "../image/digest.ts";
import { createSingleFlight } from "../once.ts";
import type { Referrers } from "../registry/referrers.ts";
import { type AttachedBundle, attachBundle, attachSimple } from "./attach.ts";
import { encodeBundle, encodeEnvelope, type SignerMaterial } from "./bundle.ts";
import { type Certified, certificateIdentity, certify } from "./certificate-authority.ts";
import { fetchToken, type TokenSource } from "./identity-token.ts";
import { makeSigningKey, type SigningKey } from "./signing-key.ts";
import { createSigningService, type ServiceDependencies, type SigningService } from "./signing-service.ts";
import { type SimpleSignature, simplePayload } from "./simple-signing.ts";
import { preAuthEncoding, signatureStatement } from "./statement.ts";
import { timestamp } from "./timestamp-authority.ts";
import { addLogEntry, type LogEntry } from "./transparency-log.ts";

export interface SigningOptions {
  /** The key, or a token for the authority that certifies a key made for one signature. */
  by: { key: SigningKey } | { token: TokenSource; authority: string };
  /** Addresses of services; `undefined` for none. */
  log: string | undefined;
  timestampAuthority: string | undefined;
  /** True to store the signature also under cosign's old tag. */
  hasCosignTag: boolean;
}

/** The descriptor of the manifest to sign. */
interface Subject {
  mediaType: string;
  digest: string;
  size: number;
}

interface Signature {
  /** The identity in the certificate; `undefined` for a key. */
  identity: string | undefined;
  /** The index of the log's entry; `undefined` without a log. */
  logIndex: string | undefined;
}

/** A certificate is not used for this long before it expires: the log has to enter the signature in time. */
const expiryMarginMilliseconds = 60_000;

/** A signature beside its image. */
interface AttachedSignature extends Signature, AttachedBundle {}

export interface ImageSigner {
  /**
   * Signs a manifest of a repository. One in several repositories is signed once.
   *
   * @param name the repository's, without a tag: `registry.example/team/app`
   */
  sign(subject: Subject, name: string, referrers: Referrers, signal: AbortSignal): Promise<AttachedSignature>;
}

export function createSigner(options: SigningOptions, dependencies: ServiceDependencies): ImageSigner {
  const services = openServices(options, dependencies);
  // A signature that could not be stored is kept, so that another attempt does not enter it into the log a second time.
  const signed = createSingleFlight<{ bundle: Uint8Array; signature: Signature; signing: Signing }>({
    keeps: true,
  });
  const simple = createSingleFlight<SimpleSignature>({ keeps: true });
  const attached = createSingleFlight<AttachedSignature>({ keeps: true });

  async function signOnce(digest: string, signal: AbortSignal) {
    const signing = await openSigning(services, dependencies, signal);
    const payload = signatureStatement(digest);
    const propose: Proposal = (signature, verifier) => ({
      ...{ kind: "dsse", verifier, envelope: encodeEnvelope(payload, signature) },
    });
    const made = await signing.sign(preAuthEncoding(payload), propose, signal);
    const { signature, logEntry, timestamps } = made;
    const logEntries = logEntry === undefined ? [] : [logEntry];
    const bundle = encodeBundle({ signer: signing.material, payload, signature, logEntries, timestamps });
    const { identity } = signing;
    return { bundle, signing, signature: { identity, logIndex: logEntry?.index } };
  }

  async function attach(subject: Subject, name: string, referrers: Referrers, signal: AbortSignal) {
    const { digest } = subject;
    const { bundle, signing, signature } = await signed(digest, () => signOnce(digest, signal));
    const created = new Date(dependencies.clock.now()).toISOString();
    const stored = await attachBundle(referrers, subject, { bundle, created }, signal);
    if (options.hasCosignTag) {
      const made = await simple(`${name}@${digest}`, () => signSimple(signing, name, digest, signal));
      await attachSimple(referrers, digest, made, signal);
    }
    return { ...signature, ...stored };
  }

  async function signSimple(first: Signing, name: string, digest: string, signal: AbortSignal) {
    // The push to another repository may have taken longer than the certificate is valid.
    const isValid = first.expiresAt - expiryMarginMilliseconds > dependencies.clock.now();
    const signing = isValid ? first : await openSigning(services, dependencies, signal);
    return signing.signSimple(simplePayload(name, digest), signal);
  }

  return {
    async sign(subject, name, referrers, signal) {
      const key = `${name}@${subject.digest}`;
      try {
        return await attached(key, () => attach(subject, name, referrers, signal));
      } catch (error) {
        throw withPrefix(error, `signing ${key} failed`);
      }
    },
  };
}

/** The key or token, and a client for each service. */
interface Services {
  by: { key: SigningKey } | { token: TokenSource; authority: SigningService };
  log: SigningService | undefined;
  timestampAuthority: SigningService | undefined;
}

function openServices(
  { by, log, timestampAuthority }: SigningOptions,
  dependencies: ServiceDependencies,
): Services {
  const open = (address: string) => createSigningService(address, dependencies);
  return {
    by: "key" in by ? by : { token: by.token, authority: open(by.authority) },
    log: log === undefined ? undefined : open(log),
    timestampAuthority: timestampAuthority === undefined ? undefined : open(timestampAuthority),
  };
}

interface Made {
  signature: Uint8Array;
  logEntry: LogEntry | undefined;
  timestamps: readonly Uint8Array[];
}

type Proposal = (signature: Uint8Array, verifier: string) => Parameters<typeof addLogEntry>[1];

/** A key, with the certificate for it, if there is one. */
interface Signing {
  material: SignerMaterial;
  /** Milliseconds since the epoch, after which the certificate is no longer valid. */
  expiresAt: number;
  identity: string | undefined;
  /** @param propose returns the entry for the log */
  sign(bytes: Uint8Array, propose: Proposal, signal: AbortSignal): Promise<Made>;
  signSimple(payload: Uint8Array, signal: AbortSignal): Promise<SimpleSignature>;
}

async function openSigning(
  { by, log, timestampAuthority }: Services,
  dependencies: ServiceDependencies,
  opening: AbortSignal,
): Promise<Signing> {
  const key = "key" in by ? by.key : makeSigningKey();
  const certified: Certified | undefined =
    "key" in by
      ? undefined
      : await certify(by.authority, key, await fetchToken(by.token, dependencies, opening), opening);
  const pem = certified?.certificate.toString();
  const sign: Signing["sign"] = async (bytes, propose, signal) => {
    const signature = key.sign(bytes);
    const [logEntry, stamp] = await Promise.all([
      log && addLogEntry(log, propose(signature, pem ?? key.publicKey), signal),
      timestampAuthority && timestamp(timestampAuthority, signature, signal),
    ]);
    return { signature, logEntry, timestamps: stamp === undefined ? [] : [stamp] };
  };
  return {
    material: certified === undefined ? { keyHint: key.hint } : { certificate: certified.certificate.raw },
    expiresAt: certified?.certificate.validToDate.getTime() ?? Number.POSITIVE_INFINITY,
    identity: certified && certificateIdentity(certified.certificate),
    sign,
    async signSimple(payload, signal) {
      const sha256 = hexOf(digestOf(payload));
      const propose: Proposal = (made, verifier) => ({
        ...{ kind: "hashedrekord", sha256, signature: made, verifier },
      });
      const { signature, logEntry } = await sign(payload, propose, signal);
      const certificate = pem === undefined ? undefined : { pem, chain: certified?.chain ?? [] };
      return { payload, signature, certificate, logEntry };
    },
  };
}
