/** Hostile and broken files: each ends with an error that has a message, and takes little time and memory. */
import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readBakeSources } from "../../src/cli/bake/hcl/read-files.ts";
import { BoughError } from "../../src/errors.ts";
import { EvalBudget } from "../../src/hcl/evaluate/budget.ts";
import { HclError } from "../../src/hcl/hcl-error.ts";
import { runs, seededRandom } from "../support/random.ts";
import { evaluateText } from "./evaluate-text.ts";

const nested = (open: string, close: string, count = 100_000) => open.repeat(count) + close.repeat(count);

describe("what is nested too deeply, or would take too long, is refused", () => {
  test.each<[string, string, RegExp]>([
    ["brackets", nested("[", "]"), /nested more than 200 levels deep/],
    ["parentheses", `1${" + (1".repeat(50_000)}`, /nested more than 200 levels deep/],
    ["texts in texts", nested('"${', '}"'), /nested more than 200 levels deep/],
    ["minus signs", `${"-".repeat(100_000)}1`, /nested more than 200 levels deep/],
    ["conditions", `${"true ? ".repeat(50_000)}1`, /nested more than 200 levels deep/],
    ["accesses", `a${"[b]".repeat(50_000)}`, /more than 200 accesses in a row/],
    ["directives", `"${"%{ if true }".repeat(50_000)}"`, /nested more than 200 levels deep|endif is missing/],
    [
      "loops in loops",
      `length([${Array.from({ length: 8 }, (_, at) => `for x${at} in range(1000) : [`).join("")}1${"]".repeat(8)}])`,
      /takes too long/,
    ],
    ["products", `setproduct(${Array(10).fill("range(1000)").join()})`, /takes too long/],
    [
      "regular expressions",
      `regexall("(${"(x{100}){100}"}){10}", "${"x".repeat(10_000)}")`,
      /takes too long|too large|invalid/,
    ],
    ["numbers", "1e999999999", /too large or too small/],
    ["powers", `${"1e9999 * ".repeat(100)}1`, /too large or too small/],
    ["widths", 'format("%999999999d", 1)', /too wide/],
    ["hashes", 'bcrypt("x", 31)', /takes too long/],
  ])("%s", (_, text, message) => {
    // What takes a second of these takes as many more times as long as the limit is higher.
    expect(() => evaluateText(text, {}, new EvalBudget(1_000_000))).toThrow(message);
  });

  test("thousands of operators in a row are no nesting", () => {
    expect(evaluateText(`${"1 + ".repeat(20_000)}1`)).toBe("20001");
    expect(evaluateText(`${"false || ".repeat(20_000)}true`)).toBe("true");
  });

  const file = (text: string) => () => read("docker-bake.hcl", text);

  test("values that double each time", () => {
    const doubled = Array.from({ length: 40 }, (_, at) => `v${at + 1} = [v${at}, v${at}]\n`).join("");
    expect(file(`v0 = ["x"]\n${doubled}target "a" { tags = [jsonencode(v40)] }\n`)).toThrow(/takes too long/);
    const tenfold = functionText("f", `"${"${x}".repeat(10)}"`);
    const texts = Array.from({ length: 20 }, (_, at) => `t${at + 1} = f(t${at})\n`).join("");
    expect(file(`${tenfold}t0 = "x"\n${texts}`)).toThrow(/takes too long/);
  });

  test("functions and variables that need themselves, with their way", () => {
    expect(file(functionText("a", "b(x)") + functionText("b", "x > 0 ? a(x - 1) : 0"))).toThrow(
      "the function a calls itself: a -> b -> a",
    );
    expect(file('variable "A" {\n default = try(B, 1)\n}\nvariable "B" {\n default = A\n}\n')).toThrow(
      "the variable A depends on itself: A -> B -> A",
    );
    expect(
      file('target "a" {\n tags = [target.b.tags[0]]\n}\ntarget "b" {\n tags = target.a.tags\n}\n'),
    ).toThrow("target.a.tags depends on itself: target.a.tags -> target.b.tags -> target.a.tags");
  });

  test("a matrix with too many targets", () => {
    const axes = Array.from({ length: 5 }, (_, at) => `a${at} = range(100)`).join("\n");
    expect(file(`target "a" {\n name = "x"\n matrix = {\n${axes}\n}\n}\n`)).toThrow(
      "the matrix makes more than 100000 targets",
    );
  });
});

test("tens of thousands of targets that name each other are read", () => {
  const target = (at: number) =>
    `target "t${at}" {\n tags = ["${at}-${"${length(target.t"}${at}.args)}"]\n args = { N = ${at} }\n}\n`;
  const { targets } = read("docker-bake.hcl", Array.from({ length: 30_000 }, (_, at) => target(at)).join(""));
  expect(targets).toHaveLength(30_000);
  expect(targets.at(-1)).toMatchObject({ origin: "docker-bake.hcl:119997", fields: { tags: ["29999-1"] } });
});

const cases = join(import.meta.dir, "../cases/bake");
const texts = readdirSync(cases, { recursive: true, encoding: "utf8" })
  .filter((path) => /\.(hcl|json)$/.test(path) && !path.endsWith("print.json"))
  .map((path) => ({ name: path, text: readFileSync(join(cases, path), "utf8") }));

describe("broken files", () => {
  test("files of which parts are removed, doubled or swapped end with an error, or are read", () => {
    const random = seededRandom(1);
    const below = (count: number) => Math.floor(random() * count);
    for (let run = 0; run < runs(400); run++) {
      const { name, text } = texts[below(texts.length)] ?? { name: "", text: "" };
      let mutated = text;
      for (let count = 1 + below(4); count > 0; count--) {
        const [from, length, to] = [below(mutated.length), below(20), below(mutated.length)];
        const part = mutated.slice(from, from + length);
        const without = mutated.slice(0, from) + mutated.slice(from + length);
        mutated =
          below(3) === 0
            ? without
            : (below(2) === 0 ? mutated : without).slice(0, to) + part + mutated.slice(to);
      }
      requireError(name, mutated);
    }
  });

  test("random words end with an error, or are read", () => {
    const words =
      'target "a" { } [ ] ( ) ${ %{ ~} " \\ << <<-E\n E\n # // /* */ = == => ? : . ... , * [*] .* for in if else endif endfor null true 1 1.5 1e9 - ! && || x variable function default matrix name params result upper( format( \n \r\n é 😀 \u0000 \uFEFF'.split(
        " ",
      );
    const random = seededRandom(2);
    for (let run = 0; run < runs(1500); run++) {
      const text = Array.from(
        { length: 1 + Math.floor(random() * 40) },
        () => words[Math.floor(random() * words.length)],
      );
      requireError("a.hcl", text.join(random() < 0.5 ? " " : ""));
    }
  });
});

function functionText(name: string, result: string): string {
  return `function "${name}" {\n params = [x]\n result = ${result}\n}\n`;
}

function read(name: string, text: string) {
  return readBakeSources([{ name, text, isJson: name.endsWith(".json") }], {
    valueOf: () => undefined,
    tables: new Map(),
    warn: () => undefined,
    builtIn: {},
    now: () => new Date(0),
    homeDirectory: "/",
  });
}

/** Reads a text, which is either read, or refused for a reason. */
function requireError(name: string, text: string): void {
  try {
    read(name, text);
  } catch (error) {
    if (error instanceof HclError || !(error instanceof BoughError))
      throw new Error(`${text}\n---\n${error}`);
    expect(error.message).not.toBe("");
  }
}
