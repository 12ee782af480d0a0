import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { chainHash } from "../../src/build/layer.ts";
import type { StagedEntry } from "../../src/build/staged.ts";
import { declareArgument, type StageState, startStage } from "../../src/build/state.ts";
import { runs } from "../support/random.ts";

const base: StageState = startStage(undefined, {
  hash: "parent",
  image: "image-1",
  entry: 1,
  cached: false,
  operation: null,
});
const run = ["RUN", "shell", "make"];
const file: StagedEntry = {
  type: "file",
  sha256: "a".repeat(64),
  size: 1,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: { kind: "local", absolutePath: "/somewhere/a" },
};
const withFile = (path: string, entry: Partial<StagedEntry> = {}): StageState => ({
  ...base,
  staged: new Map([[path, { ...file, ...entry } as StagedEntry]]),
});

test("the chain hash is 64 hexadecimal digits and stays the same from release to release", async () => {
  expect(await chainHash(base, run)).toBe("f76c2a365069e43ffa456bd226fa5492aa20942c8713fefb59670376dca09010");
});

describe("what the chain hash depends on", () => {
  const variants: [string, StageState, readonly string[]][] = [
    ["nothing", base, run],
    ["the parent layer", { ...base, layer: { ...base.layer, hash: "other" } }, run],
    ["the directive", base, ["RUN", "shell", "make all"]],
    ["the form", base, ["RUN", "exec", "make"]],
    ["how words are divided", base, ["RUN", "exec", "make", "all"]],
    ["the working directory", { ...base, workdir: "/app" }, run],
    ["the user", { ...base, user: "app" }, run],
    ["a variable", { ...base, env: new Map([["A", "1"]]) }, run],
    ["its value", { ...base, env: new Map([["A", "2"]]) }, run],
    ["an argument", { ...base, args: declareArgument(new Map(), "A", "1", new Map()) }, run],
    [
      "an argument without a value",
      { ...base, args: declareArgument(new Map(), "A", undefined, new Map()) },
      run,
    ],
    [
      "an argument's default under a variable",
      { ...base, env: new Map([["A", "1"]]), args: declareArgument(new Map(), "A", "2", new Map()) },
      run,
    ],
    [
      "a --build-arg over a variable",
      {
        ...base,
        env: new Map([["A", "1"]]),
        args: declareArgument(new Map(), "A", "2", new Map([["A", "2"]])),
      },
      run,
    ],
    ["a staged file", withFile("/a"), run],
    ["its path", withFile("/b"), run],
    ["its content", withFile("/a", { sha256: "b".repeat(64) }), run],
    ["its mode", withFile("/a", { mode: 0o755 }), run],
    ["its owner", withFile("/a", { uid: 1000 }), run],
    ["its group", withFile("/a", { gid: 1000 }), run],
    [
      "a staged link",
      { ...base, staged: new Map([["/a", { type: "symlink", target: "b", uid: 0, gid: 0 }]]) },
      run,
    ],
    [
      "a staged directory",
      {
        ...base,
        staged: new Map([["/a", { type: "directory", mode: 0o755, isExplicit: true, uid: 0, gid: 0 }]]),
      },
      run,
    ],
  ];
  const hashOf = async ([name, stage, directive]: (typeof variants)[number]) =>
    [name, await chainHash(stage, directive)] as const;
  test.each(variants)("%s", async (name, stage, directive) => {
    const hash = await chainHash(stage, directive);
    const all = await Promise.all(variants.map(hashOf));
    expect(all.filter(([, other]) => other === hash).map(([other]) => other)).toEqual([name]);
  });
});

describe("what it does not depend on", () => {
  test.each<[string, StageState, StageState]>([
    ["the image's id", base, { ...base, layer: { ...base.layer, image: "image-2", entry: 7, cached: true } }],
    [
      "where a file came from",
      withFile("/a"),
      withFile("/a", { content: { kind: "local", absolutePath: "/elsewhere" } }),
    ],
    [
      "the order in which variables were set",
      {
        ...base,
        env: new Map([
          ["A", "1"],
          ["B", "2"],
        ]),
      },
      {
        ...base,
        env: new Map([
          ["B", "2"],
          ["A", "1"],
        ]),
      },
    ],
    [
      "the order in which files were staged",
      {
        ...base,
        staged: new Map([
          ["/a", file],
          ["/b", file],
        ]),
      },
      {
        ...base,
        staged: new Map([
          ["/b", file],
          ["/a", file],
        ]),
      },
    ],
  ])("%s", async (_, one, other) => expect(await chainHash(one, run)).toBe(await chainHash(other, run)));
});

test("no two different inputs have one hash, whatever characters are in them", async () => {
  // Short ones of few characters: run together in any other way, two of them would often come to the same.
  const text = fc.string({ unit: fc.constantFrom('"', ",", "[", "]", "\\", "A", "=", "\0"), maxLength: 2 });
  const pairs = fc.uniqueArray(fc.tuple(text, text), { maxLength: 2, selector: ([name]) => name });
  const input = fc.record({
    directive: fc.array(text, { maxLength: 3 }),
    workdir: text,
    user: fc.option(text, { nil: undefined }),
    env: pairs,
    args: pairs,
    links: pairs,
  });
  /** Equal but for one field. */
  const neighbours = fc
    .tuple(input, input, fc.constantFrom("directive", "workdir", "user", "env", "args", "links"))
    .map(([one, other, field]) => [one, { ...one, [field]: other[field] }] as const);
  const hash = ({
    directive,
    env,
    args,
    links,
    ...from
  }: typeof input extends fc.Arbitrary<infer I> ? I : never) =>
    chainHash(
      {
        ...base,
        ...from,
        env: new Map(env),
        args: new Map(args.map(([name, value]) => [name, { value, isSupplied: false }])),
        staged: new Map(links.map(([path, target]) => [path, { type: "symlink", target, uid: 0, gid: 0 }])),
      },
      directive,
    );
  const sorted = (from: object) =>
    Object.entries(from).map(([field, value]) =>
      ["env", "args", "links"].includes(field) ? [field, new Map(value)] : [field, value],
    );
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.tuple(input, input), neighbours), async ([one, other]) => {
      expect((await hash(one)) === (await hash(other))).toBe(Bun.deepEquals(sorted(one), sorted(other)));
    }),
    { numRuns: runs(2000) },
  );
});

test("many files are hashed a part at a time, and come to the same as all at once", async () => {
  const paths = Array.from({ length: 2500 }, (_, index) => `/d${index % 7}/f${index}`);
  const stage: StageState = { ...base, staged: new Map(paths.map((path) => [path, file])) };
  const rows = [...paths].sort().map((path) => [path, "file", file.sha256, 0, 0, 0o644]);
  const state = { args: [], env: [], user: null, workdir: "/" };
  const whole = JSON.stringify(["parent", state, run, rows]);
  expect(await chainHash(stage, run)).toBe(new Bun.CryptoHasher("sha256").update(whole).digest("hex"));
});
