/**
 * Keys and signatures in the format of minisign (https://jedisct1.github.io/minisign/): two letters for the algorithm, eight
 * bytes for the key's id, then the key or the signature. Signatures are Ed25519 over the BLAKE2b-512 of a file.
 */
import { createHash, createPrivateKey, generateKeyPairSync, type KeyObject, sign } from "node:crypto";

export interface SigningKey {
  /** 8 random bytes that identify the pair. */
  id: Uint8Array;
  /** 32 bytes, from which the key pair is derived. */
  seed: Uint8Array;
  /** 32 bytes. */
  publicKey: Uint8Array;
}

export function generateKey(): SigningKey {
  const { privateKey } = generateKeyPairSync("ed25519");
  return fromSeed(crypto.getRandomValues(new Uint8Array(8)), base64UrlBytes(privateKey, "d"));
}

/** Returns the public key for `minisign -P`. */
export function renderPublicKey({ id, publicKey }: SigningKey): string {
  return base64(ascii("Ed"), id, publicKey);
}

/** Returns the file of the secret key for `minisign -s`, without a password, as `minisign -G -W` writes it. */
export function renderSecretKey({ id, seed, publicKey }: SigningKey): string {
  const fields = [ascii("Ed"), new Uint8Array(2), ascii("B2"), new Uint8Array(48), id, seed, publicKey];
  return `untrusted comment: bough's release key: secret, and not protected by a password\n${base64(...fields, new Uint8Array(32))}\n`;
}

/** Reads the file of a secret key. Throws if it is another file, or protected by a password. */
export function parseSecretKey(text: string): SigningKey {
  const bytes = Buffer.from(text.split("\n")[1] ?? "", "base64");
  if (bytes.length !== 158 || bytes.toString("latin1", 0, 2) !== "Ed") {
    throw new Error("it is not a secret key of minisign's");
  }
  if (bytes.readUInt16BE(2) !== 0) throw new Error("it is protected by a password");
  const key = fromSeed(bytes.subarray(54, 62), bytes.subarray(62, 94));
  if (Buffer.compare(key.publicKey, bytes.subarray(94, 126)) !== 0) throw new Error("it is damaged");
  return key;
}

/** Returns the `.minisig` file for `content`. The comment is signed, too. */
export function signFile(content: string, comment: string, key: SigningKey): string {
  const signature = signBytes(createHash("blake2b512").update(content).digest(), key);
  const over = signBytes(Buffer.concat([signature, Buffer.from(comment)]), key);
  return [
    "untrusted comment: verify with minisign, and the key that `bough release-key` prints",
    base64(ascii("ED"), key.id, signature),
    `trusted comment: ${comment}`,
    base64(over),
    "",
  ].join("\n");
}

function fromSeed(id: Uint8Array, seed: Uint8Array): SigningKey {
  return { id, seed, publicKey: base64UrlBytes(privateKeyOf(seed), "x") };
}

function signBytes(bytes: Uint8Array, { seed }: SigningKey): Uint8Array {
  return sign(null, bytes, privateKeyOf(seed));
}

/** Converts a seed to the PKCS #8 of RFC 8410. */
function privateKeyOf(seed: Uint8Array): KeyObject {
  const key = Buffer.concat([Buffer.from("302e020100300506032b657004220420", "hex"), seed]);
  return createPrivateKey({ key, format: "der", type: "pkcs8" });
}

function base64UrlBytes(key: KeyObject, member: "d" | "x"): Uint8Array {
  const value = key.export({ format: "jwk" })[member];
  if (value === undefined) throw new Error(`an Ed25519 key has no ${member}`);
  return Buffer.from(value, "base64url");
}

function ascii(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

function base64(...parts: readonly Uint8Array[]): string {
  return Buffer.concat(parts).toString("base64");
}
