/** Help, and errors of invalid command lines; `test/cases/usage/` has the help of each command. */
import { describe, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { build } from "../../src/cli/builds/build.ts";
import { parseArguments } from "../../src/cli/command-line/arguments.ts";
import type { CommandTable, Entry } from "../../src/cli/command-line/command.ts";
import { globalDefinitions } from "../../src/cli/command-line/globals.ts";
import { argumentsOf } from "../../src/cli/command-line/help.ts";
import { commands } from "../../src/cli/program/commands.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";
import { splitWords } from "../support/words.ts";

const golden = join(import.meta.dir, "../cases/usage");

describe("help", () => {
  test.each([
    ["overview", ["-h"]],
    ...screens(commands).map((path): [string, string[]] => [path.join("-"), [...path, "-h"]]),
  ])("%s", async (name, words) => {
    const { exitCode, stdout, stderr } = await runBough(words, { workingDirectory: "/" });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
    expectGolden(join(golden, `${name}.txt`), stdout);
  });
});

test("on a terminal, help is wrapped at its width, and no word is lost", async () => {
  for (const path of [[], ...screens(commands)]) {
    const [piped, shown] = await Promise.all(
      [{}, { terminalColumns: 80 }].map((options) =>
        runBough([...path, "-h"], { workingDirectory: "/", ...options }),
      ),
    );
    expect(shown?.stdout.split(/\s+/)).toEqual((piped?.stdout ?? "").split(/\s+/));
    const long = (shown?.stdout ?? "").split("\n").filter((line) => line.length > 80);
    // Command lines of examples are not wrapped, so that they can be copied.
    expect(long.filter((line) => !line.startsWith("  bough "))).toEqual([]);
  }
});

/** The names of all commands and groups. */
function screens(table: CommandTable, above: readonly string[] = []): string[][] {
  return Object.entries(table).flatMap(([name, entry]) => {
    const path = [...above, name];
    return "commands" in entry ? [path, ...screens(entry.commands, path)] : [path];
  });
}

describe("every command's help", () => {
  const all = screens(commands).flatMap((path) => {
    const entry = path.reduce<Entry | undefined>(
      (found, name) =>
        found === undefined ? commands[name] : "commands" in found ? found.commands[name] : undefined,
      undefined,
    );
    return entry !== undefined && "load" in entry ? [[path.join(" "), entry.load] as const] : [];
  });

  test.each(all)("%s has two to five valid examples, and a note for agents", async (path, load) => {
    const { examples, agentNote, trailingCommand } = await load();
    expect(examples.length).toBeGreaterThanOrEqual(2);
    expect(examples.length).toBeLessThanOrEqual(5);
    expect(agentNote).toMatch(/\.$/);
    for (const [line] of examples) {
      // Pipes, redirections and substitutions are the shell's. bough has to accept everything else.
      const words = splitWords(line.replace(/ [|<>].*$/, "").replace(/"?\$\(.*?\)"?/g, "OP"));
      const separator = words.indexOf("--");
      const own = separator < 0 ? words : words.slice(0, separator);
      // Words after an image belong to another command.
      const end = trailingCommand === "behind-place" ? own.indexOf(path) + 1 : own.length;
      const checked = own.toSpliced(end, 0, "-h");
      const { exitCode, stderr } = await runBough(checked, { workingDirectory: "/" });
      expect({ line, exitCode, stderr }).toEqual({ line, exitCode: 0, stderr: "" });
    }
  });

  test.each(all)("%s takes each global option behind its name", async (path) => {
    const given = Object.entries(globalDefinitions).flatMap(([name, { type }]) =>
      type === "boolean" ? [] : [`--${name}`, name === "format" ? "json" : "warn"],
    );
    const words = [...path.split(" "), ...given, "--local", "--wide", "--quiet", "-h"];
    const { exitCode, stderr } = await runBough(words, { workingDirectory: "/" });
    expect({ exitCode, stderr }).toEqual({ exitCode: 0, stderr: "" });
  });
});

test("every golden file belongs to a command", () => {
  const names = ["overview", "build-all", ...screens(commands).map((path) => path.join("-"))];
  expect(readdirSync(golden).sort()).toEqual(names.map((name) => `${name}.txt`).sort());
});

test("bough -h names every command once, and a page of the manual the global options", async () => {
  const [{ stdout: overview }, { stdout: page }] = await Promise.all([
    runBough(["-h"], { workingDirectory: "/" }),
    runBough(["help", "commands"], { workingDirectory: "/" }),
  ]);
  const [, common = "", more = ""] =
    /Common commands:\n(.*)\nMore commands:\n(.*)\nOptions:/s.exec(overview) ?? [];
  const named = [
    ...[...common.matchAll(/^ {2}(\S+)/gm)].map(([, name]) => name),
    ...[...more.matchAll(/^ {2}\S.*? {2,}(.*)$/gm)].flatMap(([, names = ""]) => names.split(", ")),
  ];
  expect(named.sort()).toEqual(Object.keys(commands).sort());
  for (const name of Object.keys(globalDefinitions)) expect(page).toContain(`--${name}`);
});

test("all ways to ask for the list of commands print the same", async () => {
  const [first, ...others] = await Promise.all(
    [["-h"], ["--help"], ["-q", "-h"]].map((words) => runBough(words, { workingDirectory: "/" })),
  );
  for (const other of others) expect(other).toEqual(first as typeof other);
});

test.each(["exec", "login", "system", "container", "stop", "constructor"])(
  "bough %s, which may be a command of docker, is unknown",
  async (name) => {
    const { exitCode, stderr } = await runBough([name, "x"], { workingDirectory: "/" });
    const [error, hint = ""] = stderr.split("\n");
    expect({ exitCode, error }).toEqual({ exitCode: 2, error: `[ERROR] unknown command "${name}"` });
    // The commands that it names exist.
    for (const [, word = ""] of hint.matchAll(/`bough ([a-z]+)/g))
      expect(Object.keys(commands)).toContain(word);
    expect(hint.includes("`bough -h`")).toBe(name === "constructor");
  },
);

describe("an invalid command line is refused with exit code 2", () => {
  test.each<[string, string]>([
    ["", "[ERROR] bough: no command given\n`bough -h` lists the commands.\n"],
    ["halp", '[ERROR] unknown command "halp"\nDid you mean help?\n'],
    [
      "exec -it app sh",
      '[ERROR] unknown command "exec"\nbough has no containers: each `bough run` starts from an image. `bough run app COMMAND` runs a command in an image, `bough shell app` opens a shell; `bough -S KEY run -- COMMAND` goes on with a session.\n',
    ],
    ["buidl", '[ERROR] unknown command "buidl"\nDid you mean build?\n'],
    ["--tga x build", "[ERROR] bough: unknown option --tga\nA command's own options go after its name.\n"],
    ["-v", "[ERROR] bough: unknown option -v\n--version prints the version.\n"],
    ["build --tga x", "[ERROR] bough build: unknown option --tga\nDid you mean --tag?\n"],
    ["build --nocache", "[ERROR] bough build: unknown option --nocache\nDid you mean --no-cache?\n"],
    ["build -x", "[ERROR] bough build: unknown option -x\n`bough build -h` lists the options.\n"],
    ["build a b", '[ERROR] bough build: unexpected argument "b"\n`bough build -h` shows how it is used.\n'],
    [
      "build . -- x",
      '[ERROR] bough build: unexpected argument "x"\n`bough build -h` shows how it is used.\n',
    ],
    ["build --docker --label =A", '[ERROR] --label takes KEY=VALUE or KEY, not "=A"\nThe name is missing.\n'],
    [
      "build --no-docker --label a=b",
      "[ERROR] --label needs --docker\nWithout --docker an image has no labels, not even those of the Dockerfile.\n",
    ],
    ["build --build-arg =A", '[ERROR] --build-arg takes KEY=VALUE or KEY, not "=A"\nThe name is missing.\n'],
    [
      "build --no-cache=yes",
      '[ERROR] bough build: --no-cache takes no value but true or false, not "yes"\n`bough build -h` shows how it is used.\n',
    ],
    [
      "build --tag",
      "[ERROR] bough build: --tag needs a value: NAME[:TAG]\n`bough build -h` shows how it is used.\n",
    ],
    ...["00", "-1", "1.5", "1e3"].map((value): [string, string] => [
      `build --timeout=${value}`,
      `[ERROR] --timeout takes a positive whole number, not "${value}"\nIt takes seconds, as in --timeout 1800. To tag the image, use --tag NAME:TAG.\n`,
    ]),
    [
      "build -t app:dev .",
      '[ERROR] --timeout takes a positive whole number, not "app:dev"\nIt takes seconds, as in --timeout 1800. To tag the image, use --tag app:dev.\n',
    ],
    [
      "build -f Dockerfile",
      '[ERROR] --format takes table, json, csv or tsv, not "Dockerfile"\nFor a Dockerfile, write: --dockerfile Dockerfile\n',
    ],
    [
      "images -f dangling=true",
      '[ERROR] --format takes table, json, csv or tsv, not "dangling=true"\n`bough images NAME`, --tag PREFIX, --tagged, --since and --until choose images.\n',
    ],
    [
      "inspect -f '{{.Config.Cmd}}' app",
      '[ERROR] --format takes table, json, csv or tsv, not "{{.Config.Cmd}}"\nThere are no templates: -f json prints everything, for example for jq: bough inspect -f json ... | jq .config.Cmd\n',
    ],
    [
      "images --format '{{.ID}}'",
      '[ERROR] --format takes table, json, csv or tsv, not "{{.ID}}"\nThere are no templates: -f json prints everything, for example for jq: bough images -f json ... | jq .\n',
    ],
    [
      "images export app",
      "[ERROR] bough images export: DESTINATION is missing\nAs docker save: bough images export IMAGE docker-archive:- > FILE; as docker export: bough images export IMAGE tar:- > FILE\n",
    ],
    [
      "images app b",
      '[ERROR] bough images: unexpected argument "b"\n`bough images -h` shows how it is used.\n',
    ],
    ["rmi -f", "[ERROR] bough rmi: IMAGE is missing\n`bough rmi -h` shows how it is used.\n"],
    ["images -f yaml", '[ERROR] --format takes table, json, csv or tsv, not "yaml"\n'],
    [
      "build --timeout 1 --timeout 2",
      "[ERROR] bough build: --timeout is given twice, but takes one value\n`bough build -h` shows how it is used.\n",
    ],
    [
      "build --docker --dockerfile ci.Dockerfile -f ci.Dockerfile",
      "[ERROR] bough build: --dockerfile and -f are the same option, which takes one value\n`bough build -h` shows how it is used.\n",
    ],
    [
      "build -L info --log-level=debug",
      "[ERROR] bough build: -L and --log-level are the same option, which takes one value\n`bough build -h` shows how it is used.\n",
    ],
    [
      "build --docker . -f json",
      "[ERROR] cannot read the Dockerfile json: no such file\nWith --docker, -f is the Dockerfile, as in docker build: write --format json.\n",
    ],
    [
      "build --file ci.Dockerfile -- .",
      "[ERROR] cannot read the Dockerfile ci.Dockerfile: no such file\nGive its path with --dockerfile PATH, or the context directory that contains it.\n",
    ],
    [
      "build --platform linux/amd64,",
      '[ERROR] invalid platform ""\nGive a platform such as linux/amd64 or linux/arm64.\n',
    ],
    [
      "pull alpine:3.20",
      '[ERROR] unknown command "pull"\n`bough images import alpine:3.20` imports an image from a registry; FROM does so automatically.\n',
    ],
    [
      "save -o app.tar app:dev",
      '[ERROR] unknown command "save"\n`bough images export app:dev docker-archive:app.tar` writes an archive for docker load.\n',
    ],
    [
      "load --input $(app).tar",
      "[ERROR] unknown command \"load\"\n`bough images import 'docker-archive:$(app).tar'` reads an archive of docker save.\n",
    ],
    [
      "history app:dev",
      '[ERROR] unknown command "bough history app:dev"\n`bough inspect app:dev` shows its layers, and what made each.\n',
    ],
    ["image ls", '[ERROR] unknown command "image"\n`bough images` lists them.\n'],
    [
      "images pull alpine",
      '[ERROR] unknown command "bough images pull"\n`bough images import alpine` imports an image from a registry; FROM does so automatically.\n',
    ],
    [
      "commit app x",
      '[ERROR] unknown command "commit"\n`bough -S KEY run IMAGE COMMAND` keeps what a command changes, and says the resulting image; `bough tag ID NAME` names it.\n',
    ],
    [
      "buildx bake",
      '[ERROR] unknown command "buildx"\n`bough bake` builds the targets of bake files and compose files.\n',
    ],
    ["image rm a b", '[ERROR] unknown command "image"\n`bough images remove a b` removes it.\n'],
    ["image inspect a", '[ERROR] unknown command "image"\nWrite `bough inspect a`.\n'],
    [
      "images images",
      '[ERROR] unknown command "bough images images"\n`bough images` takes list, import, export or remove.\n',
    ],
    [
      "session ls",
      '[ERROR] unknown command "bough session ls"\n`bough session` takes list, show, branch, checkout, rollback or delete.\n',
    ],
    [
      "prune",
      '[ERROR] unknown command "prune"\n`bough engine df` shows what the embedded engine stores, `bough engine prune` frees space.\n',
    ],
    ["help buidl", '[ERROR] there is neither a command nor a topic "buidl"\nDid you mean build?\n'],
    [
      "-L inof images",
      '[ERROR] --log-level takes debug, info, warn or error, not "inof"\nDid you mean info?\n',
    ],
    ["images lits", '[ERROR] unknown command "bough images lits"\nDid you mean list?\n'],
    [
      "images import",
      "[ERROR] bough images import: REFERENCE is missing\n`bough images import -h` shows how it is used.\n",
    ],
    [
      "completion bash zsh",
      '[ERROR] bough completion: unexpected argument "zsh"\n`bough completion -h` shows how it is used.\n',
    ],
    [
      "build --dockerfile '' .",
      "[ERROR] bough build: --dockerfile needs a value: PATH\n`bough build -h` shows how it is used.\n",
    ],
    [
      "images import host/app:1 --username ''",
      "[ERROR] bough images import: --username needs a value: NAME\n`bough images import -h` shows how it is used.\n",
    ],
    [
      "run -e '' app:dev env",
      "[ERROR] bough run: -e needs a value: KEY[=VALUE]\n`bough run -h` shows how it is used.\n",
    ],
    ["--url '' images", "[ERROR] bough: --url needs a value: URL\n`bough -h` shows how it is used.\n"],
    ["cp '' .", "[ERROR] bough cp: SOURCE is empty\n`bough cp -h` shows how it is used.\n"],
    ["rmi a ''", "[ERROR] bough rmi: IMAGE is empty\n`bough rmi -h` shows how it is used.\n"],
    ["run -- ''", "[ERROR] bough run: COMMAND is empty\n`bough run -h` shows how it is used.\n"],
    [
      "-S '' use",
      '[ERROR] --session takes the key of a session, not ""\nLeave it out for the session `default`.\n',
    ],
    [
      "--url unix:/run/bough.sock images",
      "[ERROR] not a service address: unix:/run/bough.sock\nbough can't connect to a Unix socket: start the server with `bough serve --listen 127.0.0.1:PORT`.\n",
    ],
    [
      "cp notes app:dev:/srv/",
      "[ERROR] files are copied out of an image, not into one\nTo run a command with local files: `bough run -F FILE:PATH IMAGE COMMAND`.\n",
    ],
    [
      "session",
      "[ERROR] bough session: no command given\nIt takes list, show, branch, checkout, rollback or delete.\n",
    ],
    [
      "build nowhere",
      "[ERROR] the build context nowhere does not exist\nCONTEXT is the directory whose files COPY and ADD can copy; the current directory is `.`.\n",
    ],
    [
      "build file",
      "[ERROR] the build context file is not a directory\nCONTEXT is a file: did you mean --dockerfile file?\n",
    ],
    [
      "build .",
      "[ERROR] cannot read the Dockerfile Dockerfile: no such file\nGive its path with --dockerfile PATH, or the context directory that contains it.\n",
    ],
    [
      "build . --dockerfile ..",
      "[ERROR] cannot read the Dockerfile ..: it is a directory\nGive its path with --dockerfile PATH, or the context directory that contains it.\n",
    ],
    [
      "build . --dockerfile other",
      "[ERROR] cannot read the Dockerfile other: no such file\nGive its path with --dockerfile PATH, or the context directory that contains it.\n",
    ],
  ])("bough %s", async (line, message) => {
    const workingDirectory = temporaryDirectory();
    writeFiles(workingDirectory, { file: "" });
    expect(await runBough(splitWords(line), { workingDirectory })).toEqual({
      exitCode: 2,
      stdout: "",
      stderr: message,
    });
  });
});

test("an empty value of an option of build is refused, except for those that override a variable", async () => {
  const { definition } = build;
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM scratch\n" });
  const accepted: string[] = [];
  for (const [name, { type }] of Object.entries(argumentsOf(definition))) {
    if (type !== "string") continue;
    // A check can't write a trace.
    const words = ["--local", "build", `--${name}=`, ...(name === "trace" ? [] : ["--check"])];
    const { exitCode, stderr } = await runBough(words, { workingDirectory });
    if (exitCode === 0) accepted.push(name);
    else expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(`--${name}`) });
  }
  expect(accepted).toEqual(["cache-from", "cache-to"]);
});

test("an invalid tag is refused before anything is done", async () => {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base\n" });
  const ended = await runBough(["build", "--tag", "My App"], { workingDirectory });
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain('not a tag: "My App"');
});

test("all problems of a Dockerfile are shown at once, before any request to the service", async () => {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base\nRNU make\nCOPY a\n" });
  const ended = await runBough(["--url", "http://127.0.0.1:1", "--token", "t", "build"], {
    workingDirectory,
  });
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain("Dockerfile:2: ");
  expect(ended.stderr).toContain("Dockerfile:3: ");
  expect(ended.stderr).toContain("RUN?");
  expect(ended.stderr).not.toContain("service:");
});

test("on other systems than Linux a service has to be given", async () => {
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, { Dockerfile: "FROM base\n" });
  const ended = await runBough(["build"], { workingDirectory, platform: "darwin" });
  expect(ended.exitCode).toBe(2);
  expect(ended.stderr).toContain("the embedded engine needs Linux");
});

test.each([
  ["build-all", ["help", "build"]],
  ["images-import", ["help", "images", "import"]],
])("the help of %s by the command help", async (name, words) => {
  const { stdout, exitCode } = await runBough(words, { workingDirectory: "/" });
  expect({ stdout, exitCode }).toEqual({
    stdout: expect.any(String),
    exitCode: 0,
  });
  expectGolden(join(golden, `${name}.txt`), stdout);
});

test.each([
  ["-f json images --nonsense"],
  ["images --nonsense --format=json"],
  ["images -fjson --nonsense"],
  ["images -qfjson --nonsense"],
])("bough %s: the error is JSON", async (line) => {
  const { stderr } = await runBough(line.split(" "), { workingDirectory: "/" });
  expect(JSON.parse(stderr)).toMatchObject({ error: { code: "usage" } });
});

test.each([
  ["--check", true],
  ["--check=true", true],
  ["--check=1", true],
  ["--check=false", false],
  ["--check --check=false", false],
  ["--check=false --check", true],
])("build %s: as docker reads it", (words, isSet) => {
  const values = parseArguments(words.split(" "), { check: { type: "boolean" } }, "bough build");
  expect(values.flag("check")).toBe(isSet);
});

test("words after -- are not options of bough", async () => {
  const { stderr } = await runBough(["images", "--nonsense", "--", "-f", "json"], { workingDirectory: "/" });
  expect(stderr).toStartWith("[ERROR] bough images: unknown option --nonsense\n");
});

test.each(["--version", "version"])("%s", async (word) => {
  const { version } = await Bun.file(join(import.meta.dir, "../../package.json")).json();
  expect(await runBough([word], { workingDirectory: "/" })).toEqual({
    exitCode: 0,
    stdout: `${version}\n`,
    stderr: "",
  });
});
