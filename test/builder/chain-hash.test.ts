import { describe, expect, test } from "bun:test";
import fc from "fast-check";
import { baseHash, chainHash } from "../../src/builder/cache/chain-hash.ts";
import { type StepKey, stageKey } from "../../src/builder/cache/step-key.ts";
import { declareArgument } from "../../src/builder/state/scope.ts";
import type { StagedEntry } from "../../src/builder/state/staged.ts";
import { type StageState, startStage } from "../../src/builder/state/state.ts";
import { runs } from "../support/random.ts";

const base: StageState = startStage({
  hash: "parent",
  image: "image-1",
  entry: 1,
  cached: false,
  operation: null,
  isBase: true,
  origin: [],
});
const run = ["RUN", "shell", "make"];
/** The key of a command with these words, the first of which is the instruction. */
const keyOf = (stage: StageState, [instruction = "", ...command]: readonly string[]): StepKey => ({
  ...{ ...stageKey(stage), instruction, command },
});
const hashOfRun = (stage: StageState, directive: readonly string[]) => chainHash(keyOf(stage, directive));
const file: StagedEntry = {
  type: "file",
  sha256: "a".repeat(64),
  size: 1,
  mode: 0o644,
  uid: 0,
  gid: 0,
  content: { kind: "local", absolutePath: "/somewhere/a" },
};
/** Staged files at these paths; with an inode they are names of one file. */
const named = (paths: readonly string[], inode?: symbol): [string, StagedEntry][] =>
  paths.map((path) => [path, inode === undefined ? file : { ...file, inode }]);
const withFile = (path: string, entry: Partial<StagedEntry> = {}): StageState => ({
  ...base,
  staged: new Map([[path, { ...file, ...entry } as StagedEntry]]),
});

test("the chain hash is 64 hexadecimal digits and stays the same from release to release", async () => {
  expect(await hashOfRun(base, run)).toBe("4243f31eecef282fdbcda8a216ad8b7ca3ccb89df5067e4fb1896dd12b096123");
});

test("a base image is the same by its UUID in capitals", () => {
  const [uuid, service] = ["0d0f6a54-6e0b-4b6e-9f0e-6f3a2b8f6f11", { base: "http://service.example" }];
  expect(baseHash({ uuid: uuid.toUpperCase() }, service)).toBe(baseHash({ uuid }, service));
});

describe("the chain hash depends on", () => {
  const variants: [string, StageState, readonly string[]][] = [
    ["nothing", base, run],
    ["the parent layer", { ...base, layer: { ...base.layer, hash: "other" } }, run],
    ["the directive", base, ["RUN", "shell", "make all"]],
    ["the form", base, ["RUN", "exec", "make"]],
    ["how words are divided", base, ["RUN", "exec", "make", "all"]],
    ["the working directory", { ...base, config: { WorkingDir: "/app" } }, run],
    ["the user", { ...base, config: { ...base.config, User: "app" } }, run],
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
    ["three files", { ...base, staged: new Map(named(["/a", "/b", "/c"])) }, run],
    ["three names of one file", { ...base, staged: new Map(named(["/a", "/b", "/c"], Symbol())) }, run],
    [
      "the names that are of one file",
      { ...base, staged: new Map([...named(["/a", "/b"], Symbol()), ...named(["/c"])]) },
      run,
    ],
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
    [name, await hashOfRun(stage, directive)] as const;
  test.each(variants)("%s", async (name, stage, directive) => {
    const hash = await hashOfRun(stage, directive);
    const all = await Promise.all(variants.map(hashOf));
    expect(all.filter(([, other]) => other === hash).map(([other]) => other)).toEqual([name]);
  });
});

describe("the chain hash does not depend on", () => {
  test.each<[string, StageState, StageState]>([
    ["the image's id", base, { ...base, layer: { ...base.layer, image: "image-2", entry: 7, cached: true } }],
    [
      "the source of a file",
      withFile("/a"),
      withFile("/a", { content: { kind: "local", absolutePath: "/elsewhere" } }),
    ],
    ["names of a file outside of the staged paths", withFile("/a"), withFile("/a", { inode: Symbol() })],
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
  ])("%s", async (_, one, other) => expect(await hashOfRun(one, run)).toBe(await hashOfRun(other, run)));
});

test("different inputs have different hashes, with any characters", async () => {
  const character = fc.constantFrom('"', ",", "[", "]", "\\", "A", "=", "\0");
  const text = fc.oneof(fc.string(), fc.string({ unit: character }));
  const pairs = fc.uniqueArray(fc.tuple(text, text), { maxLength: 3, selector: ([name]) => name });
  const input: fc.Arbitrary<Input> = fc.record({
    directive: fc.array(text, { maxLength: 3 }),
    workdir: text,
    user: fc.option(text, { nil: undefined }),
    env: pairs,
    args: pairs,
    links: pairs,
  });
  /** Two inputs with the same characters split at different places, which would be equal without delimiters. */
  const alike = fc
    .record({
      input,
      field: fc.constantFrom("directive", "env", "args", "links"),
      whole: fc.string({ unit: fc.constantFrom("A", "=", ",", '"'), minLength: 1, maxLength: 4 }),
      places: fc.tuple(fc.nat(4), fc.nat(4)),
      gap: fc.nat(1),
    })
    .map(({ input, field, whole, places, gap }) =>
      places.map((place) => {
        const parts = [whole.slice(0, place), whole.slice(place + gap)] as const;
        return { ...input, [field]: field === "directive" ? parts : [parts] };
      }),
    );
  await fc.assert(
    fc.asyncProperty(fc.oneof(fc.tuple(input, input), alike), async ([one = empty, other = empty]) => {
      const isSame = Bun.deepEquals(inOrder(one), inOrder(other));
      expect((await hashOf(one)) === (await hashOf(other))).toBe(isSame);
    }),
    { numRuns: runs(1000) },
  );
});

interface Input {
  directive: readonly string[];
  workdir: string;
  user: string | undefined;
  env: readonly Pair[];
  args: readonly Pair[];
  links: readonly Pair[];
}
type Pair = readonly [string, string];

const empty: Input = { directive: [], workdir: "/", user: undefined, env: [], args: [], links: [] };

function hashOf({ directive, workdir, user, env, args, links }: Input): Promise<string> {
  const stage: StageState = {
    ...base,
    config: { WorkingDir: workdir, ...(user === undefined ? {} : { User: user }) },
    env: new Map(env),
    args: new Map(args.map(([name, value]) => [name, { value, overridesEnv: false }])),
    staged: new Map(links.map(([path, target]) => [path, { type: "symlink", target, uid: 0, gid: 0 }])),
  };
  return hashOfRun(stage, directive);
}

function inOrder({ env, args, links, ...rest }: Input) {
  const byName = (pairs: readonly Pair[]) => [...pairs].sort(([one], [other]) => (one < other ? -1 : 1));
  return { ...rest, env: byName(env), args: byName(args), links: byName(links) };
}

test("hashing many files in parts gives the hash of the whole", async () => {
  const paths = Array.from({ length: 2500 }, (_, index) => `/d${index % 7}/f${index}`);
  const stage: StageState = { ...base, staged: new Map(paths.map((path) => [path, file])) };
  const rows = [...paths].sort().map((path) => [path, "file", file.sha256, 0, 0, 0o644]);
  const state = { args: [], env: [], user: null, workdir: "/" };
  const whole = JSON.stringify([3, "parent", state, run, rows]);
  expect(await hashOfRun(stage, run)).toBe(new Bun.CryptoHasher("sha256").update(whole).digest("hex"));
});
