/**
 * `bough bake --print` and `--list`. Each folder of `test/cases/bake` has the files of a project, the command line in `arguments`,
 * variables in `environment`, and in `print.json` what docker buildx 0.29 prints. In which order a matrix of several lists makes its
 * targets is open there.
 */
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { splitPair } from "../../src/cli/command-line/option-values.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const cases = join(import.meta.dir, "../cases/bake");

const bake = (workingDirectory: string, words: readonly string[], environment: Record<string, string> = {}) =>
  runBough(["bake", ...words], {
    workingDirectory,
    environment,
    ...(words.includes("-") && { stdin: readFileSync(join(workingDirectory, "bake.json")) }),
  });

describe("--print is that of docker buildx", () => {
  test.each(readdirSync(cases))("%s", async (name) => {
    const directory = join(cases, name);
    const given = (file: string, separator: string) => {
      const path = join(directory, file);
      return existsSync(path) ? readFileSync(path, "utf8").trim().split(separator) : [];
    };
    const environment = Object.fromEntries(given("environment", "\n").map((line) => splitPair(line)));
    const words = given("arguments", " ");
    const { exitCode, stdout, stderr } = await bake(directory, ["--print", ...words], {
      HOME: "/root",
      ...environment,
    });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expect(stdout).toBe(readFileSync(join(directory, "print.json"), "utf8"));
  });

  test("what it prints means the same again", async () => {
    const printed = join(cases, "matrix", "print.json");
    const { stdout } = await bake(temporaryDirectory(), ["-f", printed, "--print"]);
    expect(stdout).toBe(readFileSync(printed, "utf8"));
  });

  test("variables of the environment come before .env, and --var before both", async () => {
    const print = async (words: readonly string[], environment: Record<string, string>) => {
      const { stdout } = await bake(join(cases, "anchors"), ["--print", "api", ...words], environment);
      return JSON.parse(stdout).target.api.tags;
    };
    expect(await print([], { TAG: "env" })).toEqual(["localhost:5000/api:env"]);
    expect(await print(["--var", "TAG=var"], { TAG: "env" })).toEqual(["localhost:5000/api:var"]);
    const { stdout } = await bake(join(cases, "monorepo"), ["--print", "api"], { WORKERS: "7", TAG: "v2" });
    const { api } = JSON.parse(stdout).target;
    expect([api.args.WORKERS, api.tags[0]]).toEqual(["7", "ghcr.io/example/app-api:v2"]);
    const large = await bake(join(cases, "monorepo"), ["--print", "api"], { WORKERS: "9007199254740993" });
    expect(JSON.parse(large.stdout).target.api.args.WORKERS).toBe("9007199254740993");
  });

  test("the env_file of a service that is included or extended is beside its file", async () => {
    const directory = temporaryDirectory();
    const service = (env: string) => `services: {base: {build: {context: ., args: [A]}, env_file: ${env}}}\n`;
    writeFiles(directory, {
      "compose.yaml":
        "include: [lib/compose.yaml]\nservices: {app: {extends: {file: sub/base.yaml, service: base}, build: .}}\n",
      "lib/compose.yaml": service("[{path: own.env}]"),
      "lib/own.env": "A=lib\n",
      "sub/base.yaml": service("own.env"),
      "sub/own.env": "A=sub\n",
      "own.env": "A=wrong\n",
    });
    const { stdout } = await bake(directory, ["--print"]);
    const { target } = JSON.parse(stdout);
    expect([target.app.args.A, target.base.args.A]).toEqual(["sub", "lib"]);
  });
});

test("--list has the targets and groups, but not those that only others inherit", async () => {
  const list = async (...words: string[]) => (await bake(join(cases, "monorepo"), words)).stdout;
  expect(await list("--list", "targets")).toBe(
    [
      "TARGET\t\tDESCRIPTION",
      "api\t\t",
      "default\t\tdocs, services",
      "docs\t\tThe manual",
      "services\tWhat runs (api, web)",
      "web\t\t",
      "",
    ].join("\n"),
  );
  expect(await list("--list=type=variables,format=json")).toBe(
    `${JSON.stringify(
      [
        { name: "IMAGE", value: "ghcr.io/example/app" },
        { name: "REGISTRY", description: "Where images go", value: "ghcr.io/example" },
        { name: "TAG", value: "latest" },
        { name: "WORKERS", type: "number", value: "2" },
      ],
      undefined,
      2,
    )}\n`,
  );
});

test("--list=variables has the types and values that docker buildx names", async () => {
  const { stdout } = await bake(join(cases, "hcl-variables"), ["--list", "variables"]);
  expect(stdout).toBe(readFileSync(join(cases, "hcl-variables", "variables.txt"), "utf8"));
});

describe("a file that can't be used is refused with its place", () => {
  const bakeFile = (text: string) => ({ "docker-bake.json": text });
  const target = (fields: string) => bakeFile(`{"target": {\n"app": {${fields}}}}`);
  const compose = (text: string) => ({ "compose.yaml": `services:\n  app:\n    ${text}\n` });

  test.each<[string, Record<string, string>, string]>([
    ["no file", {}, "no bake file or compose file here"],
    ["invalid JSON", bakeFile("{"), "docker-bake.json:1:2: a key in quotes is required here"],
    ["invalid YAML", { "compose.yaml": "services: [\n" }, "compose.yaml:2: invalid YAML: bad indent"],
    ["a key twice", compose("build: .\n    build: x"), "compose.yaml:4: invalid YAML: duplicate key"],
    [
      "a text for a list",
      target('"tags": "a"'),
      'docker-bake.json:2:17: list of string required, but have string\n  2 | "app": {"tags": "a"}}}\n    |                 ^^^\n',
    ],
    [
      "a list for a text",
      target('"args": {"A": ["b"]}'),
      'docker-bake.json:2:17: element "A": string required, but have tuple',
    ],
    [
      "an unknown variable",
      target('"tags": ["${TAG}"]'),
      'docker-bake.json:2:21: there is no variable TAG\n  2 | "app": {"tags": ["${TAG}"]}}}\n    |                     ^^^\n',
    ],
    [
      "an unknown variable in HCL",
      { "docker-bake.hcl": 'variable "TAG" {}\ntarget "app" {\n  tags = ["app:${TGA}"]\n}\n' },
      'docker-bake.hcl:3:18: there is no variable TGA\n  3 |   tags = ["app:${TGA}"]\n    |                  ^^^\nDid you mean TAG?\n',
    ],
    [
      "an unknown function",
      { "docker-bake.hcl": 'target "app" {\n  tags = [uper("a")]\n}\n' },
      'docker-bake.hcl:2:11: there is no function uper\n  2 |   tags = [uper("a")]\n    |           ^^^^\nDid you mean upper?\n',
    ],
    [
      "a type",
      { "docker-bake.hcl": 'target "app" {\n  tags = ["a"]\n  args = ["A"]\n}\n' },
      'docker-bake.hcl:3:10: map of string required, but have tuple\n  3 |   args = ["A"]\n    |          ^^^^^\n',
    ],
    [
      "a circle in HCL",
      {
        "docker-bake.hcl":
          'A = "${B}-a"\nvariable "B" {\n  default = upper(C)\n}\nC = A\ntarget "app" {\n  tags = [C]\n}\n',
      },
      'docker-bake.hcl:1:8: the variable B depends on itself: B -> C -> A -> B\n  1 | A = "${B}-a"\n    |        ^\n',
    ],
    ...Object.entries({
      '"shm-size": "1ki"': 'shm-size: invalid size "1ki"\nAs in 128m or 1g.',
      '"ulimits": ["nofile=5:3"]': "ulimits: --ulimit nofile=5:3: the soft limit is above the hard limit",
      '"annotations": ["a"]': 'annotations: --annotation takes KEY=VALUE, not "a"',
      '"annotations": ["nope:a=b"]': 'annotations: --annotation nope:a=b: unknown type "nope"',
      '"secret": ["src=x"]': "secret: an id is missing\nAs in id=token,src=token.txt.",
      '"output": ["type=local"]':
        "output: type=local needs the path of a directory\nAs in type=local,dest=out.",
      '"output": ["type=tar", "type=oci"]': "output: several outputs write to standard output",
    }).map(([fields, message]): [string, Record<string, string>, string] => [
      fields,
      target(fields),
      `target app (docker-bake.json:2): ${message}`,
    ]),
    [
      "an attestation that may be one",
      target('"attest": ["type=sbom,disabled=x"]'),
      'docker-bake.json:2:19: target.app.attest.0: disabled: true or false is required, not "x"',
    ],
    ["a call", target('"tags": ["${upper(x)}"]'), "docker-bake.json:2:27: there is no variable x"],
    [
      "an integer of a compose file that would change",
      compose("build: {context: ., args: {A: 9007199254740993}}"),
      "compose.yaml:3: services.app.build.args.A: the number is too large to be read as it is written\nPut it in quotes.",
    ],
    [
      "a field with the name of an object's own",
      compose("build: {toString: x}"),
      "compose.yaml:3: services.app.build.toString: unknown field of build",
    ],
    [
      "a field of x-bake with the name of an object's own",
      compose("build: {x-bake: {constructor: x}}"),
      "compose.yaml:3: services.app.build.x-bake.constructor: unknown field of x-bake",
    ],
    [
      "the id of an SSH agent that names a socket",
      target('"ssh": [{"id": "default=/socket"}]'),
      'docker-bake.json:2:16: target.app.ssh.0: invalid id "default=/socket"',
    ],
    ["an invalid name", bakeFile('{"target": {"a/b": {}}}'), 'docker-bake.json:1:13: invalid name "a/b"'],
    [
      "a group of nothing",
      bakeFile('{"group": {"app": {"targets": ["none"]}, "none": {"targets": []}}, "target": {}}'),
      "there is no target none\nThe group none has no targets, or is in a group that it contains.",
    ],
    [
      "a group without its field",
      bakeFile('{"group": {"app": {}}}'),
      "docker-bake.json:1:12: the group app needs targets",
    ],
    [
      "a matrix without a name",
      target('"matrix": {"a": ["1", "2"]}'),
      "docker-bake.json:2:1: the matrix makes two targets with the name app",
    ],
    [
      "an unknown parent",
      target('"inherits": ["base"]'),
      "docker-bake.json:2: target.app.inherits: there is no target base",
    ],
    [
      "an entry without a type",
      target('"output": ["dest=x,a=b"]'),
      "docker-bake.json:2:19: target.app.output.0: type is missing",
    ],
    [
      "a variable of itself",
      bakeFile(
        '{"variable": {"A": {"default": "${B}"}, "B": {"default": "${A}"}}, "target": {"app": {"tags": ["${A}"]}}}',
      ),
      "docker-bake.json:1:61: the variable A depends on itself: A -> B -> A",
    ],
    [
      "an unknown field of build",
      compose("build: {contxt: .}"),
      "compose.yaml:3: services.app.build.contxt: unknown field of build\nDid you mean context?",
    ],
    [
      "an unknown secret",
      compose("build: {secrets: [s]}"),
      "compose.yaml:3: services.app.build.secrets: there is no secret s under secrets",
    ],
    [
      "an alias of itself",
      compose("build: &x\n      args: *x"),
      "compose.yaml: it is nested too deeply, or too large",
    ],
    [
      "aliases that stand for too much",
      {
        "compose.yaml": `${Array.from({ length: 12 }, (_, at) => `x-${at}: &a${at} [${`*a${at - 1}, `.repeat(at && 9)}1]`).join("\n")}\nservices: {app: {build: .}}\n`,
      },
      "compose.yaml: invalid YAML: an alias without its anchor, or too many",
    ],
    [
      "a missing variable",
      compose("image: a:${TAG:?set it}"),
      "compose.yaml:3: services.app.image: required variable TAG is missing a value: set it",
    ],
    [
      "an invalid variable",
      compose('image: "a:${T-"'),
      "compose.yaml:3: services.app.image: invalid variable: its closing brace is missing",
    ],
    [
      "merge keys that double each time",
      {
        "compose.yaml": `x-0: &a0 {a: 1}\n${Array.from({ length: 40 }, (_, at) => `x-${at + 1}: &a${at + 1} {<<: [*a${at}, *a${at}]}`).join("\n")}\n`,
      },
      "compose.yaml: invalid YAML: an alias without its anchor, or too many",
    ],
    [
      "an unknown parent",
      compose("extends: base"),
      "compose.yaml:3: services.app.extends: there is no service base",
    ],
    [
      "a circle of services",
      compose("extends: b\n  b: {extends: app}"),
      "compose.yaml:3: services.app.extends: services extend each other in a circle: compose.yaml: b, compose.yaml: app, compose.yaml: b",
    ],
    [
      "a missing file",
      { "compose.yaml": "include: [nope.yaml]\n" },
      "compose.yaml:1: include: there is no file nope.yaml",
    ],
    [
      "a circle of contexts",
      bakeFile(
        '{"target": {"app": {"contexts": {"x": "target:b"}}, "b": {"contexts": {"x": "target:app"}}}}',
      ),
      "targets depend on each other in a cycle: app needs b needs app",
    ],
    [
      "a context for other platforms",
      bakeFile(
        '{"target": {"app": {"contexts": {"x": "target:b"}, "platforms": ["linux/s390x"]}, "b": {"platforms": ["linux/amd64", "arm64"]}}}',
      ),
      "docker-bake.json:1: target.app.contexts: b is built for linux/amd64, linux/arm64, and app for linux/s390x",
    ],
    [
      "an unknown target",
      target('"contexts": {"x": "target:lib"}'),
      "there is no target lib, which app needs",
    ],
  ])("%s", async (_, files, message) => {
    const directory = temporaryDirectory();
    writeFiles(directory, files);
    const words = "compose.yaml" in files ? [] : ["app"];
    const { exitCode, stdout, stderr } = await bake(directory, ["--print", ...words]);
    expect({ exitCode, stdout, isShown: stderr.includes(`[ERROR] ${message}`), stderr }).toEqual({
      exitCode: 2,
      stdout: "",
      isShown: true,
      stderr,
    });
  });

  test("what compose knows, but bough does not use, is no mistake; what nobody knows is", async () => {
    const directory = temporaryDirectory();
    writeFiles(directory, compose("build: .\n    container_name: x\n    biuld: .\n    x-own: 1"));
    const { stderr } = await bake(directory, ["--print"]);
    expect(stderr).toBe(
      "[WARN] compose.yaml:5: services.app.biuld: unknown field: it is ignored. Did you mean build?\n",
    );
  });
});

describe("an invalid command line is refused", () => {
  test.each<[string, string]>([
    ["nope", "there is no target nope"],
    ["--set app.nope=1", 'unknown field "nope"'],
    ["--set nope.target=x", 'could not find any target matching "nope"'],
    ["--set [z-a].target=x", 'could not find any target matching "[z-a]"'],
    ["--set api.args=x", "args needs a name: TARGET.args.NAME=VALUE"],
    ["--set api.tags", "a value is missing"],
    ["--set api.context+=x", "context is not a list: += cannot be used"],
    ["--list nope", '--list takes targets or variables, not "nope"'],
    ["--list targets --print", "--print and --list cannot be used together"],
    ["-f nope.json", "-f nope.json: no such file"],
  ])("bough bake %s", async (line, message) => {
    const print = line.startsWith("--list") ? [] : ["--print"];
    const { exitCode, stderr } = await bake(join(cases, "monorepo"), [...print, ...line.split(" ")]);
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
  });
});
