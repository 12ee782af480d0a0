/** Private keys that `--sign key=FILE` reads. */
import { describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { readSigningKey } from "../../src/signatures/signing-key.ts";

/** Made as `cosign generate-key-pair` does, by libsodium, with the password `correct horse`. */
const encrypted = `-----BEGIN ENCRYPTED SIGSTORE PRIVATE KEY-----
eyJrZGYiOiB7Im5hbWUiOiAic2NyeXB0IiwgInBhcmFtcyI6IHsiTiI6IDQwOTYs
ICJyIjogOCwgInAiOiAxfSwgInNhbHQiOiAiVUp3alR1WHFDUXV6Mkdabjh2SEJF
S3lwQy85QjNxTm96VjdMZ2xWRnNOST0ifSwgImNpcGhlciI6IHsibmFtZSI6ICJu
YWNsL3NlY3JldGJveCIsICJub25jZSI6ICJZTFowSE9KejVPOUFZeUwvTXJZTzJQ
VGRaNjRQL015MCJ9LCAiY2lwaGVydGV4dCI6ICJlNVpEdzg0SjJtcEhWM0JzdHc3
SllqcHNPOCt6UjUxb2pieFZjeFh0WWNscmhFeGlWWkdoUHNEK3BQV1R4RTNZbDFX
OVZ2Z0RsbnRIS05OSTVFaUorZmxqY09MeXRFUXpaZkJsUVpNbWhZSW1nNjgxdGY4
WUJsMjBOdEJSYUxta0VXWmZhZVBVbmhndHZFTTl4MlpUVDRyeEM4Q2M5Vnd0czlW
WDdlQ2lwZUVUY05BeFJYOHBhaU81N3NPcU83NkZMYWRtK1pzNE5LOVJXdz09In0=
-----END ENCRYPTED SIGSTORE PRIVATE KEY-----
`;
const publicKey = `-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/R/mMk6UD8pBnsjlpc42oAe6Uzeb
5cegtE0iqvkoVfV9LvB9cMHwzoPYYblOln9F6roUmpa0p/9pVWMTEOqzIw==
-----END PUBLIC KEY-----
`;

describe("a key of cosign", () => {
  test("is decrypted with its password, whatever it is called", async () => {
    for (const name of ["SIGSTORE", "COSIGN"]) {
      const pem = encrypted.replaceAll("SIGSTORE", name);
      expect((await readSigningKey(pem, "correct horse", "--sign")).publicKey).toBe(publicKey);
    }
  });

  test.each([undefined, "", "correct", "correct horse "])(
    "is refused with the password %p",
    async (password) => {
      await expect(readSigningKey(encrypted, password, "--sign key=a.key")).rejects.toThrow(
        "--sign key=a.key: the password is wrong",
      );
    },
  );

  test("that is damaged is refused", async () => {
    const [head = "", ...lines] = encrypted.split("\n");
    const cut = [head, ...lines.slice(3)].join("\n");
    await expect(readSigningKey(cut, "correct horse", "--sign key=a.key")).rejects.toThrow("is damaged");
  });
});

describe("a key of openssl", () => {
  const pem = { type: "pkcs8", format: "pem" } as const;

  test("is read with a password, too", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-256" });
    const text = privateKey.export({ ...pem, cipher: "aes-256-cbc", passphrase: "secret" }).toString();
    expect((await readSigningKey(text, "secret", "--sign")).publicKey).toContain("BEGIN PUBLIC KEY");
    for (const password of [undefined, "wrong"])
      await expect(readSigningKey(text, password, "--sign key=a.key")).rejects.toThrow("can be read");
  });

  test("of another kind is refused", async () => {
    const { privateKey } = generateKeyPairSync("ec", { namedCurve: "P-384" });
    await expect(
      readSigningKey(privateKey.export(pem).toString(), undefined, "--sign key=a.key"),
    ).rejects.toThrow("not ECDSA on P-256 or Ed25519");
    await expect(readSigningKey("no key", undefined, "--sign key=a.key")).rejects.toThrow(
      "not a private key in PEM",
    );
  });
});
