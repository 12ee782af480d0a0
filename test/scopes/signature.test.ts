/** `--cache-sign` signs the index of a scope, and `--cache-verify` accepts only indexes with a known key. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { buildOn, newMachine } from "./machines.ts";

const files = { Dockerfile: "FROM base:1\nRUN first\nRUN second\n" };
const all = ["first", "second"];
/** The directory of the key files, a new one for each test. */
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
const writeTo = (scope: string, ...words: string[]) => build("--cache-to", scope, ...words);
const readFrom = (scope: string, ...words: string[]) => build("--cache-from", scope, ...words);

describe("an index is used", () => {
  test.each<[string, string[], string[]]>([
    ["that is signed, without --cache-verify", sign("ours"), []],
    ["that is signed with the only known key", sign("ours"), verify("ours")],
    ["that is signed with one of several known keys", sign("theirs"), verify("ours", "theirs")],
    ["that is signed with the key of --cache-sign", sign("ours"), [...sign("ours"), "--cache-to", "another"]],
    ["that is not signed, without --cache-verify", [], []],
  ])("%s", async (_, signing, verifying) => {
    await writeTo("main", ...signing);
    expect((await readFrom("main", ...verifying)).runs).toEqual([]);
  });
});

describe("a layer of a scope that is in this machine's store", () => {
  test.each<[string, string[], string[], string[]]>([
    ["is used without --cache-verify", [], [], []],
    ["is not used with --cache-verify if the scope was not signed", [], verify("ours"), all],
    ["is not used with another key", sign("ours"), verify("theirs"), all],
    ["is used with the key that was verified", sign("ours"), verify("ours"), []],
  ])("%s", async (_, signing, verifying, runs) => {
    await writeTo("main", ...signing);
    const machine = newMachine(files);
    const on = (...words: string[]) =>
      buildOn(
        machine,
        service,
        words.map((word) => word.replace("KEYS", keys)),
      );
    const reading = signing.length === 0 ? [] : verify("ours");
    expect((await on("--cache-from", "main", ...reading)).runs).toEqual([]);
    const later = await on(...verifying);
    expect([later.exitCode, later.runs], later.stderr).toEqual([0, runs]);
    const says = "cache: layers of this machine that come from scope main are not used";
    expect(later.stderr.includes(says)).toBe(runs.length > 0);
  });
});

describe("an index is not used", () => {
  test.each<[string, string[], string[], string]>([
    ["that is not signed", [], verify("ours"), "it is not signed"],
    ["that is signed with an unknown key", sign("theirs"), verify("ours"), "it is not signed by a known key"],
    [
      "that is signed with another key than the one of --cache-sign",
      sign("theirs"),
      [...sign("ours"), "--cache-to", "x"],
      "it is not signed by a known key",
    ],
  ])("%s", async (_, signing, verifying, message) => {
    await writeTo("main", ...signing);
    const { runs, stderr, exitCode } = await readFrom("main", ...verifying);
    expect({ runs, exitCode }).toEqual({ runs: all, exitCode: 0 });
    expect(stderr).toContain(`[WARN] cache: the index of scope main (image `);
    expect(stderr).not.toContain("is empty");
    expect(stderr).toContain(message);
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
    ["whose signature was removed", (text) => text.replace(/^\{"key".*$/m, "unsigned")],
    [
      "whose signature names another key",
      (text) => text.replace(/"key":"[0-9a-f]{16}"/, '"key":"0123456789abcdef"'),
    ],
  ])("%s", async (_, change) => {
    await writeTo("main", ...sign("ours"));
    rewrite("main", change);
    expect((await readFrom("main", ...verify("ours"))).runs).toEqual(all);
  });

  test("that was signed for another scope", async () => {
    await writeTo("main", ...sign("ours"));
    const image = service.state.tags.get("bough-cache/main:v1") ?? "";
    service.state.setTag(image, "bough-cache/other:v1");
    const { runs, stderr } = await readFrom("other", ...verify("ours"));
    expect(runs).toEqual(all);
    expect(stderr).toContain("it is the index of scope main");
  });
});

test("a build without a key does not write to a signed scope", async () => {
  await writeTo("main", ...sign("ours"));
  const before = service.state.tags.get("bough-cache/main:v1");
  const { stderr } = await writeTo("main");
  expect(stderr).toContain(
    "nothing is written to scope main: it is signed, and this build has no --cache-sign",
  );
  expect(service.state.tags.get("bough-cache/main:v1")).toBe(before);
});

test("signing an unsigned scope does not keep its layers", async () => {
  await writeTo("main");
  await buildWith({ Dockerfile: "FROM base:1\nRUN other\n" }, "--cache-to", "main", ...sign("ours"));
  expect((await readFrom("main", ...verify("ours"))).runs).toEqual(all);
});

test.each([
  [["--cache-to", "main", "--cache-sign", "missing"], "cannot read missing"],
  [
    ["--cache-to", "main", "--cache-sign", "KEYS/text"],
    "not an Ed25519 private key in PEM: no key found in this file",
  ],
  [["--cache-to", "main", "--cache-sign", "KEYS/rsa"], "it is of type rsa"],
  [["--cache-to", "main", "--cache-sign", "KEYS/ours.pub"], "it is a public key"],
  [["--cache-from", "main", "--cache-verify", "KEYS/ours"], "it is a private key"],
  [["--cache-from", "main", "--cache-verify", "KEYS/text"], "not an Ed25519 public key"],
])("%p is refused before any request", async (words, message) => {
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
