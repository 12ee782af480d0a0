/** The private keys that cosign makes: JSON in PEM, encrypted with NaCl's secretbox under a key that scrypt makes of the password. */
import { type ScryptOptions, scrypt } from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { BoughError, usageError } from "../errors.ts";
import { asInteger, asRecord, asText, parseRecord } from "../service/http/json.ts";

const pattern =
  /-----BEGIN ENCRYPTED (COSIGN|SIGSTORE) PRIVATE KEY-----\s([A-Za-z0-9+/=\s]+)-----END ENCRYPTED \1 PRIVATE KEY-----/;

/** The limit of scrypt's memory: cosign's own parameters need 64 MiB. */
const maxMemoryBytes = 512 * 1024 * 1024;

export function isCosignKey(pem: string): boolean {
  return pattern.test(pem);
}

/** Returns the key in PKCS #8. cosign encrypts a key without a password with an empty one. */
export async function decryptCosignKey(pem: string, password = "", option: string): Promise<Buffer> {
  const record = parseRecord(Buffer.from(pattern.exec(pem)?.[2] ?? "", "base64"));
  const [kdf, cipher] = [asRecord(record?.kdf), asRecord(record?.cipher)];
  const params = asRecord(kdf?.params);
  const [cost, blockSize, parallelization] = [params?.N, params?.r, params?.p].map(asInteger);
  const [salt, nonce, ciphertext] = [kdf?.salt, cipher?.nonce, record?.ciphertext].map((field) =>
    Buffer.from(asText(field) ?? "", "base64"),
  );
  const isKnown = kdf?.name === "scrypt" && cipher?.name === "nacl/secretbox";
  const isWhole = salt?.length !== 0 && nonce?.length === 24 && ciphertext?.length !== 0;
  if (!isKnown || !isWhole || salt === undefined || nonce === undefined || ciphertext === undefined)
    throw damaged(option);
  const key = await derive(password, salt, {
    ...{ N: cost, r: blockSize, p: parallelization },
    maxmem: maxMemoryBytes,
  }).catch(() => {
    throw damaged(option);
  });
  try {
    return Buffer.from(xsalsa20poly1305(key, nonce).decrypt(ciphertext));
  } catch (cause) {
    throw new BoughError(`${option}: the password is wrong`, {
      kind: "usage",
      hint: "Set the variable COSIGN_PASSWORD to the password.",
      cause,
    });
  }
}

/** Derives the key on another thread, since scrypt takes long by design. */
function derive(password: string, salt: Buffer, options: ScryptOptions): Promise<Buffer> {
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>();
  // scrypt throws at once for invalid parameters.
  try {
    scrypt(password, salt, 32, options, (error, key) => (error ? reject(error) : resolve(key)));
  } catch (error) {
    reject(error);
  }
  return promise;
}

function damaged(option: string): BoughError {
  return usageError(`${option}: the key of cosign is damaged, or of an unknown version`);
}
