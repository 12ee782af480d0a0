import { createPrivateKey, type JsonWebKeyInput, type KeyObject, sign } from "node:crypto";
import { mpint, text, WireReader } from "./wire.ts";

/** A private key that an agent signs with. */
export interface SigningKey {
  /** The public key, as SSH writes it. */
  publicKey: Buffer;
  /** Returns a signature with its algorithm's name. `flags`: those of a request to an agent. */
  sign(data: Buffer, flags: number): Buffer;
}

/** Why a file has no private key that can be used. */
export class PrivateKeyError extends Error {}

/** Reads a private key in OpenSSH's form, PKCS #8, PKCS #1 or SEC 1, as docker does. Throws a PrivateKeyError. */
export function readPrivateKey(content: string): SigningKey {
  const [, label] = /^-----BEGIN ([A-Z ]*)PRIVATE KEY-----\s*$/m.exec(content) ?? [];
  if (label === undefined) throw new PrivateKeyError("it has no private key");
  if (label === "ENCRYPTED " || /^Proc-Type: 4,ENCRYPTED/m.test(content))
    throw new PrivateKeyError(encrypted);
  try {
    const key = createPrivateKey(
      label === "OPENSSH " ? { key: readOpenSsh(content), format: "jwk" } : content,
    );
    return signingKey(key);
  } catch (error) {
    if (error instanceof PrivateKeyError) throw error;
    throw new PrivateKeyError("its private key can't be read");
  }
}

const encrypted = "its private key is protected by a passphrase";

/** The elliptic curves, by their names in SSH. */
const curves = {
  nistp256: { crv: "P-256", bytes: 32, hash: "sha256" },
  nistp384: { crv: "P-384", bytes: 48, hash: "sha384" },
  nistp521: { crv: "P-521", bytes: 66, hash: "sha512" },
} as const;
const curveNames = Object.keys(curves) as (keyof typeof curves)[];

/** https://github.com/openssh/openssh-portable/blob/master/PROTOCOL.key */
function readOpenSsh(content: string): JsonWebKeyInput["key"] {
  const magic = "openssh-key-v1\0";
  const [, body = ""] = /-----BEGIN OPENSSH PRIVATE KEY-----([^-]*)-----END/.exec(content) ?? [];
  const outer = new WireReader(Buffer.from(body, "base64"));
  if (outer.take(magic.length).toString("latin1") !== magic)
    throw new PrivateKeyError("it has no private key");
  if (outer.text().toString() !== "none") throw new PrivateKeyError(encrypted);
  outer.text();
  outer.text();
  if (outer.uint32() !== 1) throw new PrivateKeyError("it has several private keys");
  outer.text();
  const inner = new WireReader(outer.text());
  const checks = [inner.uint32(), inner.uint32()];
  if (checks[0] !== checks[1]) throw new PrivateKeyError("its private key is damaged");
  return readKeyFields(inner.text().toString(), inner);
}

function readKeyFields(type: string, fields: WireReader): JsonWebKeyInput["key"] {
  const next = () => unsigned(fields.text()).toString("base64url");
  if (type === "ssh-ed25519") {
    const x = fields.text().toString("base64url");
    // The public key follows.
    return { kty: "OKP", crv: "Ed25519", x, d: fields.text().subarray(0, 32).toString("base64url") };
  }
  if (type === "ssh-rsa") {
    const [n, e, d, qi, p, q] = [next(), next(), next(), next(), next(), next()];
    return { kty: "RSA", n, e, d, qi, p, q, dp: remainder(d, p), dq: remainder(d, q) };
  }
  const curve = curveNames.find((name) => type === `ecdsa-sha2-${name}`);
  if (curve === undefined) throw new PrivateKeyError(`its private key has the unsupported type ${type}`);
  const { crv, bytes } = curves[curve];
  fields.text();
  const point = fields.text();
  const padded = Buffer.concat([Buffer.alloc(bytes), unsigned(fields.text())]);
  const [x, y] = [point.subarray(1, 1 + bytes), point.subarray(1 + bytes)];
  const encode = (part: Buffer) => part.toString("base64url");
  return { kty: "EC", crv, x: encode(x), y: encode(y), d: encode(padded.subarray(-bytes)) };
}

function unsigned(bytes: Buffer): Buffer {
  return bytes[0] === 0 ? bytes.subarray(1) : bytes;
}

/** Returns `d` modulo a prime less one, which OpenSSH does not store. */
function remainder(d: string, prime: string): string {
  const number = (value: string) => BigInt(`0x${Buffer.from(value, "base64url").toString("hex")}`);
  const hex = (number(d) % (number(prime) - 1n)).toString(16);
  return Buffer.from(hex.padStart(hex.length + (hex.length % 2), "0"), "hex").toString("base64url");
}

function signingKey(key: KeyObject): SigningKey {
  const { kty, crv, n = "", e = "", x = "", y = "" } = key.export({ format: "jwk" });
  const bytes = (value: string) => Buffer.from(value, "base64url");
  if (kty === "RSA") {
    return {
      publicKey: Buffer.concat([text("ssh-rsa"), mpint(bytes(e)), mpint(bytes(n))]),
      sign(data, flags) {
        const [name, hash] = rsaAlgorithm(flags);
        return Buffer.concat([text(name), text(sign(hash, data, key))]);
      },
    };
  }
  if (crv === "Ed25519") {
    return {
      publicKey: Buffer.concat([text("ssh-ed25519"), text(bytes(x))]),
      sign: (data) => Buffer.concat([text("ssh-ed25519"), text(sign(null, data, key))]),
    };
  }
  const curve = curveNames.find((name) => curves[name].crv === crv);
  if (curve === undefined) throw new PrivateKeyError("its private key has an unsupported type");
  const name = `ecdsa-sha2-${curve}`;
  const { hash, bytes: size } = curves[curve];
  return {
    publicKey: Buffer.concat([
      text(name),
      text(curve),
      text(Buffer.concat([Buffer.of(4), bytes(x), bytes(y)])),
    ]),
    sign(data) {
      const both = sign(hash, data, { key, dsaEncoding: "ieee-p1363" });
      const numbers = Buffer.concat([mpint(both.subarray(0, size)), mpint(both.subarray(size))]);
      return Buffer.concat([text(name), text(numbers)]);
    },
  };
}

/** RFC 8332 and the flags of draft-miller-ssh-agent. */
function rsaAlgorithm(flags: number): [name: string, hash: string] {
  if ((flags & 4) !== 0) return ["rsa-sha2-512", "sha512"];
  return (flags & 2) !== 0 ? ["rsa-sha2-256", "sha256"] : ["ssh-rsa", "sha1"];
}
