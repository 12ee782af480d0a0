import { createHash, createPrivateKey, createPublicKey, type KeyObject, sign, verify } from "node:crypto";
import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Sign, Verify } from "./index-file.ts";

/** A PEM file with a key, as `openssl genpkey -algorithm ed25519` and `openssl pkey -pubout` write it. */
export interface KeyFile {
  /** The path as given, for messages. */
  path: string;
  content: string;
}

/** The key that signs indexes, and those that verify them. */
export interface ScopeKeys {
  sign: Sign | undefined;
  /** `undefined`: an index need not be signed. */
  verify: Verify | undefined;
  /** Fingerprints of the keys that verify; `undefined` if everything is trusted. */
  trusted: ReadonlySet<string> | undefined;
}

/**
 * `signing`: the key of `--cache-sign`. Its signatures are trusted, too: otherwise the next write could not use its own index.
 *
 * @throws BoughError of kind `usage` for a key that is not Ed25519
 */
export function readScopeKeys(signing: KeyFile | undefined, verifying: readonly KeyFile[]): ScopeKeys {
  const own = signing && readKey(signing, "cache-sign", createPrivateKey);
  const known = new Map(
    [
      ...(own === undefined ? [] : [createPublicKey(own)]),
      ...verifying.map((file) => readKey(file, "cache-verify", createPublicKey)),
    ].map((key) => [nameOf(key), key]),
  );
  return {
    sign:
      own &&
      ((text) => ({ key: nameOf(createPublicKey(own)), value: sign(null, text, own).toString("base64") })),
    verify:
      known.size === 0
        ? undefined
        : (text, signature) => {
            const key = signature && known.get(signature.key);
            const isValid =
              key !== undefined && verify(null, text, key, Buffer.from(signature?.value ?? "", "base64"));
            return isValid ? fingerprintOf(key) : undefined;
          },
    trusted: known.size === 0 ? undefined : new Set(known.values().map(fingerprintOf)),
  };
}

function readKey(
  { path, content }: KeyFile,
  option: "cache-sign" | "cache-verify",
  read: (content: string) => KeyObject,
): KeyObject {
  const [what, command] =
    option === "cache-sign"
      ? ["private", "openssl genpkey -algorithm ed25519 -out cache.key"]
      : ["public", "openssl pkey -in cache.key -pubout -out cache.pub"];
  const refuse = (reason: string) =>
    new BoughError(wording`${{ option, value: path }}: not an Ed25519 ${what} key in PEM: ${reason}`, {
      kind: "usage",
      hint: `Make one: ${command}`,
    });
  let key: KeyObject;
  try {
    key = read(content);
  } catch {
    throw refuse(/PUBLIC KEY/.test(content) ? "it is a public key" : "no key found in this file");
  }
  if (key.asymmetricKeyType !== "ed25519") throw refuse(`it is of type ${key.asymmetricKeyType}`);
  // Verification does not need the private key, which should not be passed around.
  if (option === "cache-verify" && /PRIVATE KEY/.test(content)) throw refuse("it is a private key");
  return key;
}

/** Returns the beginning of the key's fingerprint, enough to tell keys apart. */
function nameOf(key: KeyObject): string {
  return fingerprintOf(key).slice(0, 16);
}

function fingerprintOf(key: KeyObject): string {
  return createHash("sha256")
    .update(key.export({ type: "spki", format: "der" }))
    .digest("hex");
}
