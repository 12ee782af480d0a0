import { describe, expect, test } from "bun:test";
import {
  type Arguments,
  declareArgument,
  environmentOf,
  predefinedArguments,
  variableLookup,
} from "../../src/builder/state/scope.ts";
import { changeUser, changeWorkdir, startStage, withLayer } from "../../src/builder/state/state.ts";

const base = {
  hash: "base",
  image: "base",
  entry: 1,
  cached: false,
  operation: null,
  isBase: true,
  origin: [],
};
const start = startStage(base);
const none: Arguments = new Map();

describe("a name's value comes from the first source that has it", () => {
  const supplied = new Map([["GIVEN", "from --build-arg"]]);
  let args = declareArgument(none, "GIVEN", "default", supplied);
  args = declareArgument(args, "DEFAULTED", "default", supplied);
  args = declareArgument(args, "EMPTY", "", supplied);
  args = declareArgument(args, "BARE", undefined, supplied);
  const env = new Map([
    ["GIVEN", "from ENV"],
    ["DEFAULTED", "from ENV"],
    ["ONLY_ENV", "from ENV"],
  ]);
  test.each([
    ["GIVEN", "from --build-arg"],
    ["DEFAULTED", "from ENV"],
    ["ONLY_ENV", "from ENV"],
    ["EMPTY", ""],
    ["BARE", undefined],
    ["UNKNOWN", undefined],
  ])("%s", (name, value) => expect(variableLookup({ env, args })(name)).toBe(value));
});

test("a --build-arg that no ARG declares has no value", () => {
  expect(variableLookup({ args: none })("GIVEN")).toBeUndefined();
});

describe("an ARG inside a stage", () => {
  const globals = declareArgument(none, "VERSION", "1", new Map());
  test.each([
    ["takes over the value from before FROM", undefined, new Map(), "1"],
    ["prefers its own default", "2", new Map(), "2"],
    ["prefers --build-arg to both", "2", new Map([["VERSION", "3"]]), "3"],
  ])("%s", (_, own, supplied, value) => {
    const args = declareArgument(none, "VERSION", own, supplied, globals);
    expect(args.get("VERSION")?.value).toBe(value);
  });
});

test.each([
  ["/app", "/app"],
  ["app", "/srv/app"],
  ["../app/", "/app"],
  [".", "/srv"],
])("WORKDIR %s below /srv", (given, workdir) => {
  const { config } = changeWorkdir({ ...start, config: { WorkingDir: "/srv", User: "app" } }, given);
  expect(config).toEqual({ WorkingDir: workdir, User: "app" });
});

describe("a stage inherits its base's configuration", () => {
  const config = {
    User: "app",
    WorkingDir: "srv/./app",
    Cmd: ["serve"],
    Labels: { a: "b" },
    Hostname: "of others",
  };

  test("completely", () => {
    const stage = withLayer(changeWorkdir(changeUser(startStage(base, config), "root"), "new"), base);
    expect<unknown>(stage.config).toEqual({ ...config, User: "root", WorkingDir: "/srv/app/new" });
  });

  test("which may be empty", () => {
    expect(start.config).toEqual({ WorkingDir: "/" });
  });
});

test("a RUN's environment has the values of ARG and ENV, which take precedence over proxies", () => {
  const supplied = new Map([
    ["http_proxy", "http://proxy"],
    ["SUPPLIED", "--build-arg"],
  ]);
  let args = declareArgument(none, "SUPPLIED", undefined, supplied);
  args = declareArgument(args, "DEFAULTED", "default", supplied);
  args = declareArgument(args, "UNSET", undefined, supplied);
  const env = new Map([
    ["SUPPLIED", "environment"],
    ["DEFAULTED", "environment"],
    ["PATH", "/bin"],
  ]);
  expect(environmentOf({ env, args }, predefinedArguments(supplied))).toEqual({
    http_proxy: "http://proxy",
    SUPPLIED: "--build-arg",
    DEFAULTED: "environment",
    PATH: "/bin",
  });
});
