import { describe, expect, test } from "bun:test";
import { type ImageConfig, parseImageConfig, variablesIn, withEnv } from "../../src/image/config.ts";

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

test("a configuration with every field, and some unknown ones, is returned unchanged", () => {
  const text = JSON.stringify({ ...whole, Hostname: "", Other: { deep: [null, 1] }, None: null });
  const fields = JSON.parse(text.replace("{", '{"__proto__":{"User":"root"},')) as Record<string, unknown>;
  const { config, problems } = read(fields);
  expect(JSON.stringify(config)).toBe(JSON.stringify(fields));
  expect(Object.getPrototypeOf(config)).toBe(Object.prototype);
  expect(problems).toEqual([]);
});

const list = "a list of strings";
describe.each([
  ["User", "a string", 7, ["root"], {}],
  ["ExposedPorts", "an object", ["80"], "80", 80],
  ["Env", list, "A=b", { A: "b" }, ["A=b", 1]],
  ["Entrypoint", list, {}, [["sh"]], true],
  ["Cmd", list, 0, [null], {}],
  ["Volumes", "an object", ["/data"], "/data", true],
  ["WorkingDir", "a string", 7, ["/"], {}],
  ["Labels", "an object whose values are strings", ["a"], "a=b", { a: 1 }],
  ["StopSignal", "a string", 15, ["SIGTERM"], {}],
  ["Healthcheck", "an object", ["CMD", "true"], "true", false],
  ["OnBuild", list, "RUN make", {}, [{ RUN: "make" }]],
  ["Shell", list, {}, [1], 1],
  ["ArgsEscaped", "true or false", "true", 1, []],
] as const)("%s", (name, expected, ...wrong) => {
  test("is left out if it is missing, null or empty", () => {
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

test.each(["Entrypoint", "Cmd", "Shell"])("%s may be a text instead of a list of one", (name) => {
  expect(read({ [name]: "run it" })).toEqual({ config: { [name]: ["run it"] }, problems: [] });
});

describe("a hostile configuration", () => {
  test("with a million entries is read, and is refused if one of them is invalid", () => {
    const Env: unknown[] = Array.from({ length: 1_000_000 }, () => "A=b");
    expect(read({ Env })).toEqual({ config: { Env: Env as string[] }, problems: [] });
    Env.push(7);
    expect(read({ Env })).toEqual({ config: {}, problems: ["Env must be a list of strings"] });
  });

  test.each(["Healthcheck", "Volumes", "Of others"])("with %s nested a million times is refused", (name) => {
    const deep: unknown = JSON.parse(`{"a":${"[".repeat(1_000_000)}${"]".repeat(1_000_000)}}`);
    expect(read({ [name]: deep })).toEqual({ config: {}, problems: [`${name} is nested too deeply`] });
  });
});

describe("the environment variables", () => {
  test.each<[string, string[] | undefined, Record<string, string>]>([
    ["a missing list has none", undefined, {}],
    ["a value may contain an equals sign", ["A=b=c"], { A: "b=c" }],
    ["a name without an equals sign has an empty value", ["A"], { A: "" }],
    ["the last value of a name counts", ["A=1", "B=2", "A=3"], { A: "3", B: "2" }],
  ])("%s", (_name, Env, expected) => {
    expect(variablesIn(Env === undefined ? {} : { Env })).toEqual(new Map(Object.entries(expected)));
  });

  test("can be replaced without changing the rest of the configuration", () => {
    expect(withEnv(whole, Object.entries({ A: "b=c", B: "" }))).toEqual({
      ...whole,
      Env: ["A=b=c", "B="],
    });
  });
});
