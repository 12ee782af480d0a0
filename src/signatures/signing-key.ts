/** Private keys that sign images: ECDSA on P-256, and Ed25519. */
import {
  createHash,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  sign,
} from "node:crypto";
import { usageError } from "../errors.ts";
import { decryptCosignKey, isCosignKey } from "./cosign-key.ts";

export interface SigningKey {
  sign(bytes: Uint8Array): Uint8Array;
  /** In PEM. */
  publicKey: string;
  /** The hint by which a verifier finds the public key: the base64 of its SHA-256 digest. */
  hint: string;
}

/** Makes a key for one signature, for which an authority issues a certificate. */
export function makeSigningKey(): SigningKey {
  return signingKeyOf(generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey);
}

/** Reads a private key in PEM, also one of cosign's. @param password `undefined` if none was given */
export async function readSigningKey(
  pem: string,
  password: string | undefined,
  option: string,
): Promise<SigningKey> {
  const key = isCosignKey(pem)
    ? parseKey({ key: await decryptCosignKey(pem, password, option), format: "der", type: "pkcs8" }, option)
    : parseKey({ key: pem, ...(password !== undefined && { passphrase: password }) }, option);
  const isFit =
    key.asymmetricKeyType === "ed25519" ||
    (key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1");
  if (isFit) return signingKeyOf(key);
  throw usageError(
    `${option}: it is a key of type ${key.asymmetricKeyType}, not ECDSA on P-256 or Ed25519`,
    "For example: openssl genpkey -algorithm ed25519 -out bough.key",
  );
}

function parseKey(input: Parameters<typeof createPrivateKey>[0], option: string): KeyObject {
  try {
    return createPrivateKey(input);
  } catch (error) {
    // A wrong or missing password causes the same kinds of errors as damage.
    throw usageError(
      `${option}: it is not a private key in PEM that can be read${error instanceof Error ? `: ${error.message}` : ""}`,
      "If the key has a password, set the variable COSIGN_PASSWORD.",
    );
  }
}

function signingKeyOf(key: KeyObject): SigningKey {
  const publicKey = createPublicKey(key);
  const der = publicKey.export({ type: "spki", format: "der" });
  return {
    sign: (bytes) => sign(key.asymmetricKeyType === "ed25519" ? null : "sha256", bytes, key),
    publicKey: publicKey.export({ type: "spki", format: "pem" }).toString(),
    hint: createHash("sha256").update(der).digest("base64"),
  };
}
