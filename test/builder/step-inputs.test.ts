import { describe, expect, test } from "bun:test";
import { findDifference } from "../../src/builder/cache/step-difference.ts";
import { inputsOf, inputsText } from "../../src/builder/cache/step-inputs.ts";
import { type StepKey, stageKey } from "../../src/builder/cache/step-key.ts";
import { declareArgument } from "../../src/builder/state/scope.ts";
import type { StagedEntry } from "../../src/builder/state/staged.ts";
import { type StageState, startStage } from "../../src/builder/state/state.ts";

const base: StageState = startStage({
  hash: "parent",
  image: "image-1",
  entry: 1,
  cached: false,
  operation: null,
  isBase: true,
  origin: [],
});
const stepOf = (stage: StageState, key: Partial<StepKey> = {}) => ({
  title: "RUN make",
  key: { ...stageKey(stage), instruction: "RUN", command: ["shell", "make"], ...key },
});
const mountsWith = (key: string) => ({ key, files: new Map(), images: [] });
const inputs = (stage: StageState, key: Partial<StepKey> = {}) => inputsOf(stepOf(stage, key), "salt");
const file: StagedEntry = {
  type: "file",
  sha256: "a".repeat(64),
  size: 1,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: { kind: "text", text: "" },
};
const device = (minor: number): StagedEntry => ({
  ...{ type: "special", kind: "character-device", major: 1, minor },
  ...{ mode: 0o666, uid: 0, gid: 0 },
});
const withFile = (entry: StagedEntry): StageState => ({ ...base, staged: new Map([["/a", entry]]) });
const onLayer = (hash: string): StageState => ({
  ...base,
  layer: { ...base.layer, hash, operation: "operation-1", isBase: false, origin: [] },
});
const withVariables = (env: Record<string, string>, args: Record<string, string> = {}): StageState => {
  let declared: StageState["args"] = new Map();
  for (const [name, value] of Object.entries(args))
    declared = declareArgument(declared, name, value, new Map());
  return { ...base, env: new Map(Object.entries(env)), args: declared };
};

describe("a change of the chain hash is explained by", () => {
  test.each<[string, StageState, StageState]>([
    ["parent", base, { ...base, layer: { ...base.layer, image: "image-2" } }],
    ["parent", onLayer("one"), onLayer("other")],
    ["USER", base, { ...base, config: { ...base.config, User: "app" } }],
    ["WORKDIR", base, { ...base, config: { WorkingDir: "/app" } }],
    ["ENV", base, withVariables({ A: "" })],
    ["ENV", withVariables({ A: "1" }), withVariables({ A: "2" })],
    ["ENV", withVariables({ TOKEN: "old-secret" }), withVariables({ TOKEN: "new-secret" })],
    ["ARG", base, withVariables({}, { A: "1" })],
    ["file", base, withFile(file)],
    ["file", withFile(file), withFile({ ...file, sha256: "b".repeat(64) })],
    ["file", withFile(file), withFile({ ...file, mode: 0o755 })],
    ["file", withFile(file), withFile({ ...file, gid: 1 })],
    ["file", withFile(file), withFile({ type: "symlink", target: "b", uid: 0, gid: 0 })],
    ["file", withFile(file), withFile({ ...file, attributes: { "user.a": "1" } })],
    ["file", withFile(file), withFile({ ...file, replaces: true })],
    ["file", withFile(device(3)), withFile(device(5))],
    [
      "file",
      withFile({ type: "directory", mode: 0o755, uid: 0, gid: 0, isExplicit: false }),
      withFile({ type: "directory", mode: 0o755, uid: 0, gid: 0, isExplicit: true }),
    ],
  ])("%s", (reason, before, now) => {
    const found = findDifference(inputs(before), inputs(now));
    expect(found?.reason).toBe(reason as never);
    expect(findDifference(inputs(now), inputs(now))).toBeUndefined();
  });

  test("command", () => {
    const now = inputs(base, { command: ["exec", "make"] });
    expect(findDifference(inputs(base), now)).toEqual({ reason: "command" });
  });
});

test.each<[string, Partial<StepKey>, Partial<StepKey>]>([
  ["--network", {}, { options: [{ name: "--network", text: "--network=none" }] }],
  ["--network", { options: [{ name: "--network", text: "--network=none" }] }, {}],
  ["--mount", { mounts: mountsWith("[1]") }, { mounts: mountsWith("[2]") }],
  ["--chown", { copy: { sources: ["/a"], chown: "1" } }, { copy: { sources: ["/a"], chown: "2" } }],
  ["--chmod", { copy: { chown: "" } }, { copy: { chmod: "755", chown: "" } }],
  ["the list of sources", { copy: { sources: ["/a"] } }, { copy: { sources: ["/a", "/b"] } }],
  ["the destination", { copy: { destination: "/a" } }, { copy: { destination: "/b" } }],
])("a change of an option is explained by its name: %s", (name, before, now) => {
  expect(findDifference(inputs(base, before), inputs(base, now))).toEqual({ reason: "option", name });
});

test("a record of an earlier version, without options, is compared by what it has", () => {
  const { options: _, ...before } = inputs(base);
  expect(findDifference(before, inputs(base))).toBeUndefined();
  const { command: _command, ...key } = { ...stepOf(base).key, copy: { chown: "1" } };
  expect(findDifference(before, inputsOf({ title: "RUN make", key }, "salt"))).toBeUndefined();
});

describe("a step's record has no text of a secret", () => {
  test.each([
    ["in a variable named like a secret", withVariables({ API_TOKEN: "hunter2" })],
    ["in an argument", withVariables({}, { password: "hunter2" })],
    [
      "in another variable that repeats it",
      withVariables({ URL: "https://x:hunter2@host" }, { API_KEY: "hunter2" }),
    ],
  ])("%s", (_, stage) => {
    const command = ["shell", "login hunter2"];
    const options = [{ name: "--network", text: "hunter2" }];
    expect(JSON.stringify(inputs(stage, { command, options }))).not.toContain("hunter2");
  });

  test("but has the values of PUBLIC_KEY and KEYBOARD", () => {
    const stage = withVariables({ PUBLIC_KEY: "ssh-ed25519 AAAA", KEYBOARD: "us" });
    expect(inputs(stage).env).toEqual({
      PUBLIC_KEY: { text: "ssh-ed25519 AAAA" },
      KEYBOARD: { text: "us" },
    });
  });
});

test("the text of a step's inputs is their JSON", async () => {
  const link: StagedEntry = { type: "symlink", target: "http://u:hunter2@host/=\"'", uid: 0, gid: 0 };
  const staged = new Map<string, StagedEntry>([
    ["/a", file],
    ['/b "c" TOKEN=x', link],
    ["/d", { type: "directory", mode: 0o700, uid: 1, gid: 2, isExplicit: true }],
  ]);
  const stage = { ...withVariables({ TOKEN: "hunter2", A: "1" }, { B: "2" }), staged };
  const images = [{ from: "one", path: "/hunter2", hash: "ab" }];
  const mounts = { key: "[]", files: new Map([["/m", { ...file, mode: 0o600 }]]), images };
  for (const each of [stepOf(stage), stepOf(stage, { mounts })]) {
    const text = new TextDecoder().decode(await inputsText(each, "salt"));
    expect(JSON.parse(text)).toEqual(inputsOf(each, "salt"));
  }
});
