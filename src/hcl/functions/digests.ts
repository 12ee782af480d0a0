import { constants, createHash, privateDecrypt } from "node:crypto";
import { ArgumentError } from "../evaluate/eval-context.ts";
import { HclError } from "../hcl-error.ts";
import { type HclValue, stringValue } from "../values/value.ts";
import {
  define,
  defineText,
  defineVariadic,
  type FunctionTable,
  integerIn,
  number,
  text,
  textIn,
} from "./define.ts";
import { decodeBase64 } from "./encodings.ts";

const digest = (algorithm: string) =>
  defineText(["str"], (value) => createHash(algorithm).update(value).digest("hex"));

export const digestFunctions: FunctionTable = {
  md5: digest("md5"),
  sha1: digest("sha1"),
  sha256: digest("sha256"),
  sha512: digest("sha512"),
  bcrypt: defineVariadic([text("str")], number("cost"), (given, budget) => {
    if (given.length > 2) throw new HclError("at most two arguments are allowed");
    const cost = given.length > 1 ? integerIn(given, 1) : 10;
    if (cost > 31) throw new ArgumentError(1, "a cost from 4 to 31 is required");
    const rounds = cost < 4 ? 10 : cost;
    budget.spend(2 ** rounds * 300);
    const password = textIn(given[0]);
    if (Buffer.byteLength(password) > 72) throw new ArgumentError(0, "more than 72 bytes can't be hashed");
    const hash = Bun.password.hashSync(password, { algorithm: "bcrypt", cost: rounds });
    // For up to 72 bytes, both versions mean the same.
    return stringValue(hash.replace(/^\$2b\$/, "$2a$"));
  }),
  rsadecrypt: define([text("ciphertext"), text("privatekey")], decrypt),
  uuidv4: define([], () => stringValue(crypto.randomUUID())),
  uuidv5: define([text("namespace"), text("name")], ([namespace, name]) =>
    stringValue(nameUuid(namespaceOf(textIn(namespace)), textIn(name))),
  ),
};

function decrypt(given: readonly HclValue[]): HclValue {
  const ciphertext = decodeBase64(textIn(given[0]));
  try {
    const key = { key: textIn(given[1]), padding: constants.RSA_PKCS1_PADDING };
    return stringValue(privateDecrypt(key, ciphertext).toString());
  } catch (error) {
    throw new HclError(`the text can't be decrypted: ${error instanceof Error ? error.message : error}`);
  }
}

const namespaces: Readonly<Record<string, string>> = {
  dns: "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
  url: "6ba7b811-9dad-11d1-80b4-00c04fd430c8",
  oid: "6ba7b812-9dad-11d1-80b4-00c04fd430c8",
  x500: "6ba7b814-9dad-11d1-80b4-00c04fd430c8",
};

function namespaceOf(name: string): Buffer {
  const written = Object.hasOwn(namespaces, name) ? (namespaces[name] ?? "") : name;
  const bare = written.replace(/^urn:uuid:|^\{|\}$/gi, "").replaceAll("-", "");
  if (/^[0-9a-fA-F]{32}$/.test(bare)) return Buffer.from(bare, "hex");
  throw new ArgumentError(
    0,
    `unknown namespace ${JSON.stringify(name)}`,
    "There are dns, url, oid, x500, and any UUID.",
  );
}

function nameUuid(namespace: Buffer, name: string): string {
  const bytes = createHash("sha1").update(namespace).update(name).digest().subarray(0, 16);
  bytes[6] = ((bytes[6] ?? 0) & 0x0f) | 0x50;
  bytes[8] = ((bytes[8] ?? 0) & 0x3f) | 0x80;
  return bytes.toString("hex").replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, "$1-$2-$3-$4-$5");
}
