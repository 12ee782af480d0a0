/** Results of other builders are kept, and made again when they may have changed. */
import { afterEach, beforeEach, expect, test } from "bun:test";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { asItIs, digestOfFiles, keepResults } from "../support/kept-results.ts";

const { TEST_CACHE, FAST_CHECK_TIMES } = process.env;
let source: string;
let version: string;
let made: number;
beforeEach(() => {
  process.env.TEST_CACHE = temporaryDirectory();
  delete process.env.FAST_CHECK_TIMES;
  source = join(temporaryDirectory(), "some.test.ts");
  const imported = { "imported.ts": "export const value = 1;\n", "bough.ts": "export const own = 1;\n" };
  writeFiles(join(source, ".."), imported);
  writeFileSync(
    source,
    'import { value } from "./imported.ts";\nimport { own } from "./bough.ts";\nvalue + own;\n',
  );
  version = "1.0";
  made = 0;
});
afterEach(() => {
  for (const [name, value] of Object.entries({ TEST_CACHE, FAST_CHECK_TIMES }))
    if (value === undefined) delete process.env[name];
    else process.env[name] = value;
});

/** Checks a result once, as a run of the tests does: the builder makes `value`, and the check expects `expected`. */
function run(given: { input?: string; value?: string; expected?: string } = {}): Promise<void> {
  const { input = "input", value = "a", expected = value } = given;
  const kept = keepResults({ test: source, versions: [["echo", version]] });
  const make = async () => {
    made++;
    return value;
  };
  return kept.check({ inputs: input }, asItIs<string>(), make, (result) => expect(result).toBe(expected));
}

test("a result is made once", async () => {
  for (let count = 0; count < 3; count++) await run();
  expect(made).toBe(1);
});

test.each<[string, () => unknown]>([
  ["another input", () => run({ input: "other" })],
  [
    "another version of the program",
    () => {
      version = "2.0";
      return run();
    },
  ],
  [
    "other code",
    () => {
      writeFileSync(source, "export const code = 2;\n");
      return run();
    },
  ],
  [
    "another file that the code imports",
    () => {
      writeFileSync(join(source, "../imported.ts"), "export const value = 2;\n");
      return run();
    },
  ],
  [
    "more tries",
    () => {
      process.env.FAST_CHECK_TIMES = "10";
      return run();
    },
  ],
])("a result is made again with %s", async (_, again) => {
  await run();
  await again();
  expect(made).toBe(2);
});

test("a result is not made again if only bough's code changes", async () => {
  await run();
  writeFileSync(join(source, "../bough.ts"), "export const own = 2;\n");
  await run();
  expect(made).toBe(1);
});

test("a kept result that fails the check is made again; if it fails again, it is an error and is not kept", async () => {
  await run();
  await run({ value: "b" });
  expect(made).toBe(2);
  await expect(run({ expected: "c" })).rejects.toThrow();
  await run({ value: "b" });
  expect(made).toBe(3);
});

test("a recorded result is used on any machine, and made again if it fails the check", async () => {
  writeFileSync(source.replace(".test.ts", ".recorded"), '["input","a"]\n["other","b"]\n');
  version = "2.0";
  await run();
  await run({ input: "other", value: "b" });
  expect(made).toBe(0);
  await run({ value: "c" });
  expect(made).toBe(1);
});

test("a digest depends on names, modes, links and contents", () => {
  const directory = temporaryDirectory();
  const digests = new Set([digestOfFiles(directory)]);
  const add = () => digests.add(digestOfFiles(directory));
  writeFiles(directory, { "a/b": "1" });
  add();
  writeFiles(directory, { "a/b": "2" });
  add();
  chmodSync(join(directory, "a/b"), 0o600);
  add();
  writeFiles(directory, { "a/c": { link: "gone" } });
  add();
  expect(digests.size).toBe(5);
});
