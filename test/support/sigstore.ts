/** A certificate authority (Fulcio's API) and a transparency log (Rekor's), with a trusted root made for them, on loopback. */
import {
  createHash,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
  verify,
  X509Certificate,
} from "node:crypto";
import { merklePath, merkleRoot } from "./merkle.ts";
import { extensions, makeX509 } from "./x509.ts";

export interface Sigstore extends AsyncDisposable {
  authority: string;
  log: string;
  /** A `trusted_root.json`. */
  trustedRoot: string;
  /** Methods and paths of all requests. */
  requests: string[];
  /** The log's clock, which says when something was signed. */
  now: () => Date;
  /** How long certificates are valid. */
  certificateMilliseconds: number;
  /** Responds in place of the service, to show a fault. */
  respond: (path: string) => Response | undefined;
}

interface CertificateRequest {
  credentials: { oidcIdentityToken: string };
  publicKeyRequest: { publicKey: { content: string }; proofOfPossession: string };
}

interface ProposedEntry {
  kind: string;
  apiVersion: string;
  /** Of `dsse`, or of `hashedrekord`, which is kept as it is. */
  spec: { proposedContent: { envelope: string; verifiers: [string] } } | { data: object };
}

interface Authority {
  subject: string;
  privateKey: KeyObject;
  certificate: X509Certificate;
  keyId: Buffer;
}

const day = 86_400_000;

/** Returns a token without a signature: the authority here believes what it says. */
export function identityToken(claims: Readonly<Record<string, unknown>>): string {
  const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
  return `${part({ alg: "none" })}.${part({ aud: "sigstore", ...claims })}.none`;
}

export function startSigstore(): Sigstore {
  const authority = makeAuthority("authority of a test");
  const log = makeLog();
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: serve });
  const url = `http://127.0.0.1:${server.port}`;
  const sigstore: Sigstore = {
    ...{ authority: `${url}/authority`, log: `${url}/log`, requests: [], now: () => new Date() },
    trustedRoot: trustedRootOf(authority, log, `${url}/log`),
    certificateMilliseconds: 600_000,
    respond: () => undefined,
    [Symbol.asyncDispose]: () => server.stop(true),
  };

  async function serve(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    sigstore.requests.push(`${request.method} ${pathname}`);
    const other = sigstore.respond(pathname);
    if (other !== undefined) return other;
    if (pathname === "/authority/api/v2/signingCert")
      return certify((await request.json()) as CertificateRequest);
    if (pathname === "/log/api/v1/log/entries") return enter((await request.json()) as ProposedEntry);
    const index = /^\/log\/api\/v1\/log\/entries\/(\d+)$/.exec(pathname)?.[1];
    return index === undefined
      ? new Response("", { status: 404 })
      : Response.json(log.entry(Number(index), url));
  }

  function certify({ credentials, publicKeyRequest }: CertificateRequest): Response {
    const claims = JSON.parse(
      Buffer.from(credentials.oidcIdentityToken.split(".")[1] ?? "", "base64url").toString(),
    );
    const publicKey = createPublicKey(publicKeyRequest.publicKey.content);
    const identity = claims.email ?? claims.sub;
    const proof = Buffer.from(publicKeyRequest.proofOfPossession, "base64");
    if (claims.aud !== "sigstore" || !verify("sha256", Buffer.from(identity), publicKey, proof))
      return Response.json({ code: 3, message: "the proof of possession is wrong" }, { status: 400 });
    const from = sigstore.now();
    const certificate = makeX509({
      subject: "",
      publicKey,
      issuer: authority,
      from,
      until: new Date(from.getTime() + sigstore.certificateMilliseconds),
      serial: 1000 + sigstore.requests.length,
      extensions: [
        extensions.signsContents(),
        extensions.codeSigning(),
        extensions.authorityKeyId(authority.keyId),
        extensions.names(
          claims.job_workflow_ref ? `https://github.com/${claims.job_workflow_ref}` : identity,
        ),
        extensions.issuer(claims.iss),
      ],
    });
    const certificates = [certificate.toString(), authority.certificate.toString()];
    return Response.json({ signedCertificateEmbeddedSct: { chain: { certificates } } });
  }

  function enter(proposed: ProposedEntry): Response {
    const body = bodyOf(proposed);
    if (body === undefined)
      return Response.json({ code: 400, message: "the signature is wrong" }, { status: 400 });
    const known = log.find(body);
    if (known !== undefined)
      return Response.json(
        { code: 409, message: "an equivalent entry already exists" },
        { status: 409, headers: { location: `/log/api/v1/log/entries/${known}` } },
      );
    return Response.json(log.entry(log.add(body, sigstore.now()), url), { status: 201 });
  }

  return sigstore;
}

function makeAuthority(subject: string): Authority {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const keyId = sha256(Buffer.from(publicKey.export({ type: "spki", format: "der" }))).subarray(0, 20);
  const certificate = makeX509({
    ...{ subject, publicKey, issuer: { subject, privateKey }, serial: 1 },
    ...{ from: new Date(Date.now() - 30 * day), until: new Date(Date.now() + 30 * day) },
    extensions: [extensions.authority(), extensions.signsCertificates(), extensions.keyId(keyId)],
  });
  return { subject, privateKey, certificate, keyId };
}

/** Checks what is entered, and returns the entry's content as the log has it. */
function bodyOf({ kind, apiVersion, spec }: ProposedEntry): string | undefined {
  if (!("proposedContent" in spec)) return JSON.stringify({ apiVersion, kind, spec });
  const { envelope, verifiers } = spec.proposedContent;
  const { payload, payloadType, signatures } = JSON.parse(envelope);
  const bytes = Buffer.from(payload, "base64");
  const signed = Buffer.concat([
    Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${bytes.length} `),
    bytes,
  ]);
  const key = keyIn(Buffer.from(verifiers[0], "base64").toString());
  const algorithm = key.asymmetricKeyType === "ed25519" ? null : "sha256";
  if (!verify(algorithm, signed, key, Buffer.from(signatures[0].sig, "base64"))) return undefined;
  const hashed = (content: string | Buffer) => ({
    algorithm: "sha256",
    value: sha256(Buffer.from(content)).toString("hex"),
  });
  return JSON.stringify({
    ...{ apiVersion, kind },
    spec: {
      envelopeHash: hashed(envelope),
      payloadHash: hashed(bytes),
      signatures: [{ signature: signatures[0].sig, verifier: verifiers[0] }],
    },
  });
}

function keyIn(pem: string): KeyObject {
  return pem.includes("CERTIFICATE") ? new X509Certificate(pem).publicKey : createPublicKey(pem);
}

function makeLog() {
  const { publicKey, privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const der = Buffer.from(publicKey.export({ type: "spki", format: "der" }));
  const id = sha256(der);
  const entries: { body: string; integratedTime: number }[] = [];
  const signed = (text: string) => sign("sha256", Buffer.from(text), privateKey);
  return {
    der,
    id,
    add(body: string, now: Date): number {
      return entries.push({ body, integratedTime: Math.floor(now.getTime() / 1000) }) - 1;
    },
    find(body: string): number | undefined {
      const at = entries.findIndex((entry) => entry.body === body);
      return at < 0 ? undefined : at;
    },
    entry(index: number, url: string): object {
      const { body = "", integratedTime = 0 } = entries[index] ?? {};
      const encoded = Buffer.from(body).toString("base64");
      const promised = { body: encoded, integratedTime, logID: id.toString("hex"), logIndex: index };
      const leaves = entries.map((entry) => Buffer.from(entry.body));
      const root = merkleRoot(leaves);
      const name = new URL(url).host;
      const note = `${name}\n${leaves.length}\n${root.toString("base64")}\n`;
      const signature = Buffer.concat([id.subarray(0, 4), signed(note)]).toString("base64");
      return {
        [String(index)]: {
          ...promised,
          verification: {
            signedEntryTimestamp: signed(JSON.stringify(promised)).toString("base64"),
            inclusionProof: {
              ...{ logIndex: index, treeSize: leaves.length, rootHash: root.toString("hex") },
              hashes: merklePath(leaves, index).map((hash) => hash.toString("hex")),
              checkpoint: `${note}\n\u2014 ${name} ${signature}\n`,
            },
          },
        },
      };
    },
  };
}

function trustedRootOf(authority: Authority, log: ReturnType<typeof makeLog>, logUrl: string): string {
  const start = new Date(Date.now() - 30 * day).toISOString();
  return JSON.stringify({
    mediaType: "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
    tlogs: [
      {
        ...{ baseUrl: logUrl, hashAlgorithm: "SHA2_256" },
        publicKey: {
          rawBytes: log.der.toString("base64"),
          ...{ keyDetails: "PKIX_ECDSA_P256_SHA_256", validFor: { start } },
        },
        logId: { keyId: log.id.toString("base64") },
      },
    ],
    certificateAuthorities: [
      {
        subject: { organization: "test", commonName: authority.subject },
        uri: "",
        certChain: { certificates: [{ rawBytes: authority.certificate.raw.toString("base64") }] },
        validFor: { start },
      },
    ],
  });
}

function sha256(bytes: Uint8Array): Buffer {
  return createHash("sha256").update(bytes).digest();
}
