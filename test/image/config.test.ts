import { describe, expect, test } from "bun:test";
import { type ImageConfig, parseImageConfig, variablesIn, withVariables } from "../../src/image/config.ts";

const whole = {
  User: "app:staff",
  ExposedPorts: { "80/tcp": {} },
  Env: ["PATH=/bin", "A=b=c"],
  Entrypoint: ["/init"],
  Cmd: ["serve", ""],
  Volumes: { "/data": {} },
  WorkingDir: "/srv",
  Labels: { "a.b": "c" },
  StopSignal: "SIGQUIT",
  Healthcheck: { Test: ["CMD", "true"], Interval: 30_000_000_000 },
  OnBuild: ["RUN make"],
  Shell: ["/bin/bash", "-c"],
  ArgsEscaped: true,
} satisfies ImageConfig;

function read(fields: Record<string, unknown>) {
  const problems: string[] = [];
  const config = parseImageConfig(fields, (problem) => problems.push(problem));
  return { config, problems };
}

test("a configuration with every field, and some of others, comes out as it went in", () => {
  const text = JSON.stringify({ ...whole, Hostname: "", Other: { deep: [null, 1] }, None: null });
  const fields = JSON.parse(text.replace("{", '{"__proto__":{"User":"root"},')) as Record<string, unknown>;
  const { config, problems } = read(fields);
  expect(JSON.stringify(config)).toBe(JSON.stringify(fields));
  expect(Object.getPrototypeOf(config)).toBe(Object.prototype);
  expect(problems).toEqual([]);
});

const list = "a list of texts";
describe.each([
  ["User", "a text", 7, ["root"], {}],
  ["ExposedPorts", "an object", ["80"], "80", 80],
  ["Env", list, "A=b", { A: "b" }, ["A=b", 1]],
  ["Entrypoint", list, {}, [["sh"]], true],
  ["Cmd", list, 0, [null], {}],
  ["Volumes", "an object", ["/data"], "/data", true],
  ["WorkingDir", "a text", 7, ["/"], {}],
  ["Labels", "an object of texts", ["a"], "a=b", { a: 1 }],
  ["StopSignal", "a text", 15, ["SIGTERM"], {}],
  ["Healthcheck", "an object", ["CMD", "true"], "true", false],
  ["OnBuild", list, "RUN make", {}, [{ RUN: "make" }]],
  ["Shell", list, {}, [1], 1],
  ["ArgsEscaped", "true or false", "true", 1, []],
] as const)("%s", (name, expected, ...wrong) => {
  test("is left out where it is missing, null or empty", () => {
    expect(read({})).toEqual({ config: {}, problems: [] });
    expect(read({ [name]: null })).toEqual({ config: {}, problems: [] });
    expect(read({ [name]: "" })).toEqual({ config: {}, problems: [] });
  });

  test(`must be ${expected}`, () => {
    const { [name]: _, ...others } = whole;
    for (const value of wrong) {
      expect(read({ ...whole, [name]: value })).toEqual({
        config: others,
        problems: [`${name} must be ${expected}`],
      });
    }
  });
});

test.each(["Entrypoint", "Cmd", "Shell"])("%s may be its one word", (name) => {
  expect(read({ [name]: "run it" })).toEqual({ config: { [name]: ["run it"] }, problems: [] });
});

describe("hostile ones", () => {
  test("a million entries, one of them wrong", () => {
    const Env: unknown[] = Array.from({ length: 1_000_000 }, () => "A=b");
    expect(read({ Env })).toEqual({ config: { Env: Env as string[] }, problems: [] });
    Env.push(7);
    expect(read({ Env })).toEqual({ config: {}, problems: ["Env must be a list of texts"] });
  });

  test.each(["Healthcheck", "Volumes", "Of others"])("%s, nested a million times", (name) => {
    const deep: unknown = JSON.parse(`{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`);
    expect(read({ [name]: deep })).toEqual({ config: {}, problems: [`${name} is nested too deeply`] });
  });
});

describe("the variables", () => {
  test.each<[string, string[] | undefined, Record<string, string>]>([
    ["none", undefined, {}],
    ["a value may hold the sign", ["A=b=c"], { A: "b=c" }],
    ["without a sign it is empty", ["A"], { A: "" }],
    ["the last counts", ["A=1", "B=2", "A=3"], { A: "3", B: "2" }],
  ])("%s", (_name, Env, expected) => {
    expect(variablesIn(Env === undefined ? {} : { Env })).toEqual(new Map(Object.entries(expected)));
  });

  test("replaced, beside all that the configuration has", () => {
    expect(withVariables(whole, Object.entries({ A: "b=c", B: "" }))).toEqual({
      ...whole,
      Env: ["A=b=c", "B="],
    });
  });
});
