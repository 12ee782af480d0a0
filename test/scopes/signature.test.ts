/** Whose index is believed: `--cache-sign` and `--cache-verify`. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { buildOn, newMachine } from "./machines.ts";

const files = { Dockerfile: "FROM base:1\nRUN first\nRUN second\n" };
const all = ["first", "second"];
/** Names of key files in it; made anew for each test. */
let keys: string;
const pairs = new Map<string, string>();
for (const name of ["ours", "theirs"]) {
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  pairs.set(name, privateKey.export({ type: "pkcs8", format: "pem" }).toString());
  pairs.set(`${name}.pub`, publicKey.export({ type: "spki", format: "pem" }).toString());
}
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
pairs.set("rsa", rsa.privateKey.export({ type: "pkcs8", format: "pem" }).toString());
pairs.set("text", "no key\n");
const sign = (name: string) => ["--cache-sign", `KEYS/${name}`];
const verify = (...names: string[]) => names.flatMap((name) => ["--cache-verify", `KEYS/${name}.pub`]);

let service: FakeService;
beforeEach(async () => {
  keys = temporaryDirectory();
  for (const [name, text] of pairs) writeFileSync(join(keys, name), text);
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(() => service.close());

const build = (...words: string[]) => buildWith(files, ...words);
const buildWith = (context: Record<string, string>, ...words: string[]) =>
  buildOn(
    newMachine(context),
    service,
    words.map((word) => word.replace("KEYS", keys)),
  );
const leave = (scope: string, ...words: string[]) => build("--cache-to", scope, ...words);
const take = (scope: string, ...words: string[]) => build("--cache-from", scope, ...words);

describe("an index is taken", () => {
  test.each<[string, string[], string[]]>([
    ["that is signed, where nobody asks", sign("ours"), []],
    ["that is signed by the one key that is known", sign("ours"), verify("ours")],
    ["that is signed by one of several", sign("theirs"), verify("ours", "theirs")],
    ["that is signed by one's own key", sign("ours"), [...sign("ours"), "--cache-to", "another"]],
    ["that is not signed, where nobody asks", [], []],
  ])("%s", async (_, signing, verifying) => {
    await leave("main", ...signing);
    expect((await take("main", ...verifying)).runs).toEqual([]);
  });
});

describe("an index is a miss, and that is said", () => {
  test.each<[string, string[], string[], string]>([
    ["that is not signed", [], verify("ours"), "it is not signed"],
    ["of another key", sign("theirs"), verify("ours"), "it is not signed by a key that is known here"],
    [
      "of another than one's own key",
      sign("theirs"),
      [...sign("ours"), "--cache-to", "x"],
      "it is not signed by a key",
    ],
  ])("%s", async (_, signing, verifying, why) => {
    await leave("main", ...signing);
    const { runs, stderr, exitCode } = await take("main", ...verifying);
    expect({ runs, exitCode }).toEqual({ runs: all, exitCode: 0 });
    expect(stderr).toContain(`[WARN] cache: the index of scope main (image `);
    expect(stderr).not.toContain("there is nothing in scope");
    expect(stderr).toContain(why);
  });

  test.each<[string, (text: string) => string]>([
    [
      "whose entry was moved to another image",
      (text) => text.replace(/a0000000-[^"]*/, "a0000000-0000-4000-8000-000000000001"),
    ],
    [
      "whose entry was moved to another chain hash, and the digest with it",
      (text) => {
        const [format, header = "", signature, body = ""] = text.split("\n");
        const moved = body.replace(/[0-9a-f]{64}/, "0".repeat(64));
        const digest = new Bun.CryptoHasher("sha256").update(moved).digest("hex");
        return [format, JSON.stringify({ ...JSON.parse(header), body: digest }), signature, moved].join("\n");
      },
    ],
    ["whose signature is gone", (text) => text.replace(/^\{"key".*$/m, "unsigned")],
    [
      "whose key says another name",
      (text) => text.replace(/"key":"[0-9a-f]{16}"/, '"key":"0123456789abcdef"'),
    ],
  ])("%s", async (_, change) => {
    await leave("main", ...sign("ours"));
    rewrite("main", change);
    expect((await take("main", ...verify("ours"))).runs).toEqual(all);
  });

  test("that another scope was signed with", async () => {
    await leave("main", ...sign("ours"));
    const image = service.state.tags.get("bough-cache/main:v1") ?? "";
    service.state.setTag(image, "bough-cache/other:v1");
    const { runs, stderr } = await take("other", ...verify("ours"));
    expect(runs).toEqual(all);
    expect(stderr).toContain("it is the index of scope main");
  });
});

test("a scope that is signed is written by nobody without a key", async () => {
  await leave("main", ...sign("ours"));
  const before = service.state.tags.get("bough-cache/main:v1");
  const { stderr } = await leave("main");
  expect(stderr).toContain(
    "nothing is written to scope main: it is signed, and this build has no --cache-sign",
  );
  expect(service.state.tags.get("bough-cache/main:v1")).toBe(before);
});

test("what is not signed by a known key does not get in under a signature", async () => {
  await leave("main");
  await buildWith({ Dockerfile: "FROM base:1\nRUN other\n" }, "--cache-to", "main", ...sign("ours"));
  expect((await take("main", ...verify("ours"))).runs).toEqual(all);
});

test.each([
  [["--cache-to", "main", "--cache-sign", "missing"], "cannot read missing"],
  [
    ["--cache-to", "main", "--cache-sign", "KEYS/text"],
    "not an Ed25519 private key in PEM: there is none in this file",
  ],
  [["--cache-to", "main", "--cache-sign", "KEYS/rsa"], "it is of type rsa"],
  [["--cache-to", "main", "--cache-sign", "KEYS/ours.pub"], "it is the public one"],
  [["--cache-from", "main", "--cache-verify", "KEYS/ours"], "it is the private one"],
  [["--cache-from", "main", "--cache-verify", "KEYS/text"], "not an Ed25519 public key"],
])("%p is refused before anything is asked", async (words, message) => {
  const { exitCode, stderr } = await build(...words);
  expect(stderr).toContain(message);
  expect(exitCode).toBe(2);
  expect(service.requests).toEqual([]);
});

function rewrite(scope: string, change: (text: string) => string): void {
  const tree = service.state.trees.get(service.state.tags.get(`bough-cache/${scope}:v1`) ?? "") ?? new Map();
  const entry = tree.get("/bough-cache/index");
  const before = Buffer.from(entry?.content ?? "").toString();
  expect(change(before)).not.toBe(before);
  tree.set("/bough-cache/index", { ...entry, content: change(before) });
}
