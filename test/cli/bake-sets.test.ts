/** Large sets of targets with `bough bake`: what is built after failures, what is written about each target, and parts for several machines. */
import { beforeAll, describe, expect, test } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

const environment: Record<string, string> = { BOUGH_HOME: "" };
beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const imported = await bough(temporaryDirectory(), "images", "import", layout, "--tag", "base:1");
  expect(imported.exitCode).toBe(0);
});

const bough = (workingDirectory: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory, environment });

function makeProject(files: Record<string, FileSpec>): string {
  const directory = temporaryDirectory();
  writeFiles(directory, files);
  return directory;
}

const inline = (text: string, others: object = {}) => ({ "dockerfile-inline": text, ...others });
const bakeFile = (target: object, group: readonly string[] = Object.keys(target)) => ({
  "docker-bake.json": JSON.stringify({ group: { default: { targets: group } }, target }, undefined, 1),
});

interface Line {
  target: string;
  status: string;
  error: {
    message: string;
    hint: string | null;
    file: string | null;
    line: number | null;
    output: string | null;
  } | null;
  [key: string]: unknown;
}

function readLines(text: string): Map<string, Line> {
  const lines = text.split("\n");
  expect(lines.pop()).toBe("");
  return new Map(lines.map((line): [string, Line] => [JSON.parse(line).target, JSON.parse(line)]));
}

const resultsIn = (directory: string, name = "results.jsonl") =>
  readLines(readFileSync(join(directory, name), "utf8"));

describe("with --keep-going", () => {
  const shared = "FROM base:1\nRUN echo shared failure >&2; exit 4\n";
  const directory = makeProject({
    ...bakeFile({
      good: inline("FROM base:1\nRUN echo good > /good\n", { tags: ["keep:good"] }),
      bad: inline("FROM base:1\nRUN echo first\nRUN echo oops >&2; exit 3\n"),
      broken: inline("FROM base:1\nRNU true\n"),
      nowhere: { context: "-" },
      missing: { context: "none", dockerfile: "other" },
      child: inline("FROM bad\n", { contexts: { bad: "target:bad" } }),
      grandchild: inline("FROM child\n", { contexts: { child: "target:child" } }),
      one: inline(`${shared}RUN echo one\n`),
      two: inline(`${shared}RUN echo two\n`),
      // A failed stage ends the other stage of this target, but not the same step of another one.
      split: inline(
        "FROM base:1 AS slow\nRUN sleep 1; echo slow > /slow\nFROM base:1 AS fails\nRUN exit 5\nFROM base:1\nCOPY --from=slow /slow /\nCOPY --from=fails /etc /etc\n",
      ),
      slow: inline("FROM base:1\nRUN sleep 1; echo slow > /slow\n", { tags: ["keep:slow"] }),
    }),
  });
  const bake = (...words: string[]) => bough(directory, "bake", "--jobs", "4", "--keep-going", ...words);

  test("all targets are built that can be built, and the errors come last", async () => {
    const files = ["--results", "results.jsonl", "--metadata-file", "built.json"];
    const { exitCode, stdout, stderr } = await bake(...files, "--format", "json");
    expect(exitCode).toBe(1);
    expect(Object.keys(JSON.parse(stdout)).sort()).toEqual(["good", "slow"]);
    expect(Object.keys(JSON.parse(readFileSync(join(directory, "built.json"), "utf8")))).toEqual([
      "good",
      "slow",
    ]);
    const { error } = JSON.parse(stderr.slice(stderr.lastIndexOf('{"error"')));
    expect(error.code).toBe("failed");
    expect(error.message.split("\n").filter((line: string) => !line.startsWith(" "))).toEqual([
      "7 of 11 targets failed, 2 not built, since a target that they need is not built",
      expect.stringMatching(
        /^target bad \(docker-bake\.json:\d+\): bad \(dockerfile-inline\):3: the command failed with exit code 3/,
      ),
      expect.stringMatching(
        /^target broken \(docker-bake\.json:\d+\): broken \(dockerfile-inline\):2: unknown instruction: RNU/,
      ),
      expect.stringMatching(
        /^target nowhere \(docker-bake\.json:\d+\): a bake file can't name standard input/,
      ),
      expect.stringMatching(/^target missing \(docker-bake\.json:\d+\): /),
      expect.stringMatching(/^target one \(.*:2: the command failed with exit code 4/),
      expect.stringMatching(/^target two \(.*:2: the command failed with exit code 4/),
      expect.stringMatching(/^target split \(.*:4: the command failed with exit code 5/),
      "not built: child (needs bad), grandchild (needs child)",
    ]);
    const results = resultsIn(directory);
    const hints = [...results.values()].flatMap(({ error }) => error?.hint ?? []);
    expect(hints).not.toEqual([]);
    expect(error.hint.split("\n").toSorted()).toEqual([...new Set(hints)].toSorted());
    // A command that two targets share fails once.
    expect(stderr.match(/spawned op=\S+ RUN echo shared failure/g)).toHaveLength(1);

    expect(Object.fromEntries([...results].map(([name, { status }]) => [name, status]))).toEqual({
      ...{
        good: "built",
        slow: "built",
        bad: "failed",
        broken: "failed",
        nowhere: "failed",
        missing: "failed",
        one: "failed",
        two: "failed",
      },
      ...{ split: "failed", child: "blocked", grandchild: "blocked" },
    });
    expect(results.get("good")).toEqual({
      ...{
        target: "good",
        status: "built",
        image: expect.stringMatching(/^[0-9a-f-]{36}$/),
        tags: ["keep:good"],
      },
      ...{
        digest: null,
        key: null,
        seconds: expect.any(Number),
        cached: 0,
        run: 1,
        pushedBytes: 0,
        needs: [],
      },
      ...{ error: null, build: expect.any(String), origin: expect.stringMatching(/^docker-bake\.json:\d+$/) },
      endedAt: expect.stringMatching(/^\d{4}-.*Z$/),
    });
    expect(results.get("bad")).toMatchObject({ image: null, cached: 0, run: 2 });
    expect(results.get("bad")?.error).toMatchObject({
      ...{ code: "failed", hint: null, file: "bad (dockerfile-inline)", line: 3, output: "oops\n" },
      message: expect.stringContaining("the command failed with exit code 3"),
    });
    expect(results.get("broken")?.error).toMatchObject({ code: "usage", line: 2, output: null });
    for (const name of ["one", "two"]) expect(results.get(name)?.error?.output).toBe("shared failure\n");
    expect(results.get("grandchild")).toMatchObject({
      needs: ["child"],
      error: { line: 3, output: "oops\n" },
    });
  });

  test("the same command again takes from the cache what is built, and writes all lines again", async () => {
    const { exitCode, stderr } = await bake("--results", "results.jsonl");
    expect(exitCode).toBe(1);
    expect(stderr).not.toMatch(/spawned op=\S+ RUN (echo good|sleep 1)/);
    const results = resultsIn(directory);
    expect(results.size).toBe(11);
    expect(results.get("good")).toMatchObject({ status: "built", cached: 1, run: 0 });
  });
});

test("targets that are pushed send what they have in common once, and each is whole", async () => {
  const blobs: string[] = [];
  const requests: string[] = [];
  const upstream = await Registry.start();
  await using _upstream = { [Symbol.asyncDispose]: () => upstream.stop() };
  const proxy = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const { pathname, search, searchParams } = new URL(request.url);
      requests.push(`${request.method} ${pathname}`);
      if (request.method === "PUT" && searchParams.has("digest"))
        blobs.push(searchParams.get("digest") ?? "");
      const { method, headers } = request;
      const body = method === "PUT" || method === "PATCH" ? await request.bytes() : null;
      const sent = await fetch(`http://${upstream.host}${pathname}${search}`, { method, headers, body });
      return new Response(method === "HEAD" ? null : await sent.bytes(), {
        status: sent.status,
        headers: sent.headers,
      });
    },
  });
  await using _proxy = { [Symbol.asyncDispose]: () => proxy.stop(true) };
  const names = Array.from({ length: 12 }, (_, at) => `env-${at}`);
  const text =
    "FROM base:1\nRUN head -c 300000 /dev/urandom > /shared\nARG N\nRUN echo $N > /own\nCOPY same /same\n";
  const target = (name: string) => ({
    ...inline(text, { args: { N: name }, tags: [`127.0.0.1:${proxy.port}/set:${name}`] }),
  });
  const targets = Object.fromEntries(names.map((name) => [name, target(name)]));
  const directory = makeProject({ ...bakeFile(targets), same: "same" });
  const bake = () => bough(directory, "bake", "--push", "--results", "results.jsonl");
  const first = await bake();
  expect({ exitCode: first.exitCode, stderr: first.exitCode === 0 ? "" : first.stderr }).toEqual({
    exitCode: 0,
    stderr: "",
  });
  expect(blobs.length).toBe(new Set(blobs).size);
  // The base, the shared layer, the one that all copy, and of each target its own layer and its configuration.
  expect(blobs).toHaveLength(3 + 2 * names.length);
  const pushed = [...resultsIn(directory).values()].map(({ pushedBytes }) => Number(pushedBytes));
  expect(pushed.filter((bytes) => bytes > 300_000)).toHaveLength(1);

  requests.length = 0;
  expect((await bake()).exitCode).toBe(0);
  // The own layer of each target and its configuration are asked for, the manifest is written and read; the others are asked for once.
  expect(requests.filter((line) => line.startsWith("HEAD")).length).toBeLessThanOrEqual(3 + 2 * names.length);
  expect(requests.filter((line) => line.startsWith("POST"))).toEqual([]);
  const one = Bun.spawnSync([
    "skopeo",
    "inspect",
    "--tls-verify=false",
    `docker://${upstream.host}/set:env-7`,
  ]);
  expect(JSON.parse(one.stdout.toString()).Layers).toHaveLength(4);
});

describe("the results of a bake", () => {
  test("have what was pushed to standard output, and which targets a failure has ended", async () => {
    const directory = makeProject(
      bakeFile({
        quick: inline("FROM base:1\n"),
        bad: inline("FROM quick\nRUN exit 3\n", { contexts: { quick: "target:quick" } }),
        slow: inline("FROM quick\nRUN sleep 600\n", { contexts: { quick: "target:quick" } }),
        child: inline("FROM slow\n", { contexts: { slow: "target:slow" } }),
      }),
    );
    const { exitCode, stdout } = await bough(directory, "bake", "--jobs", "4", "--results", "-");
    expect(exitCode).toBe(1);
    const results = readLines(stdout);
    expect([...results.values()].map(({ target, status }) => [target, status])).toEqual([
      ["quick", "built"],
      ["bad", "failed"],
      ["slow", "cancelled"],
    ]);
  });

  test("are in no file that is something else", async () => {
    const directory = makeProject({
      ...bakeFile({
        one: inline("FROM scratch\nCOPY docker-bake.json /\n", { output: ["type=tar,dest=-"] }),
        file: inline("FROM scratch\nCOPY docker-bake.json /\n", { output: ["type=tar,dest=file.tar"] }),
        own: { dockerfile: "docker-bake.json", output: ["type=tar,dest=docker-bake.json"] },
      }),
    });
    const message = async (...words: string[]) => (await bough(directory, "bake", ...words)).stderr;
    expect(await message("--results", "docker-bake.json")).toContain(
      "--results docker-bake.json: this is a file of the bake",
    );
    expect(await message("--results", "a", "--metadata-file", "a")).toContain(
      "--results a: this is also the file of --metadata-file",
    );
    expect(await message("--results", "-")).toMatch(
      /target one \(docker-bake\.json:\d+\): its image goes to standard output, and so do the lines of --results -/,
    );
    for (const option of ["--results", "--metadata-file"])
      expect(await message("file", option, "./file.tar")).toMatch(
        /target file \(docker-bake\.json:\d+\): --\S+ \.\/file\.tar: --output dest=file\.tar,type=tar writes the same file/,
      );
    for (const words of [[], ["--keep-going"]])
      expect(await message("own", ...words)).toMatch(
        /target own \(.*\): --output dest=docker-bake\.json,type=tar: this is the build's docker-bake\.json/,
      );
    expect(await message("--results", "none/a")).toContain("--results none/a: there is no directory none");
  });

  test.each([
    ["an archive of an image", "type=oci"],
    ["its files", "-"],
    ["an image for docker", "type=docker,dest=-"],
  ])("are not on standard output with %s", async (_, output) => {
    const target = inline("FROM scratch\nCOPY docker-bake.json /\n", { output: [output] });
    const directory = makeProject(bakeFile({ one: target, two: target }));
    const { exitCode, stdout, stderr } = await bough(directory, "bake", "one", "--results", "-");
    expect([exitCode, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("its image goes to standard output, and so do the lines of --results -");
    const both = await bough(directory, "bake", "one", "two");
    expect([both.exitCode, both.stdout]).toEqual([2, ""]);
    expect(both.stderr).toMatch(
      /target two \(.*\): its image goes to standard output, and so does that of the target one/,
    );
  });

  test("are on standard output where a target's output is refused for itself", async () => {
    const target = (output: string) =>
      inline("FROM scratch\nCOPY docker-bake.json /\n", { output: [output] });
    const directory = makeProject(
      bakeFile({ bad: target("type=oci,compression=none-such"), good: target("type=cacheonly") }),
    );
    const failed = await bough(directory, "bake", "bad", "good", "--results", "-");
    expect([failed.exitCode, failed.stdout]).toEqual([2, ""]);
    expect(failed.stderr).toContain("compression must be gzip, zstd or uncompressed");
    const { exitCode, stdout } = await bough(directory, "bake", "bad", "good", "-k", "--results", "-");
    expect(exitCode).toBe(1);
    expect(new Map([...readLines(stdout).values()].map(({ target, status }) => [target, status]))).toEqual(
      new Map([
        ["bad", "failed"],
        ["good", "built"],
      ]),
    );
  });

  test("of an earlier bake are removed before a bake fails", async () => {
    const directory = makeProject(bakeFile({ one: inline("FORM base:1\n") }));
    writeFileSync(join(directory, "old.jsonl"), '{"target":"old"}\n');
    expect((await bough(directory, "bake", "--results", "old.jsonl")).exitCode).toBe(2);
    expect(readFileSync(join(directory, "old.jsonl"), "utf8")).toBe("");
  });
});

describe("--shard", () => {
  const names = Array.from({ length: 12 }, (_, at) => `target-${at}`);
  const directory = makeProject(
    bakeFile(
      {
        common: inline("FROM base:1\nRUN echo common > /common\n", { tags: ["shard:common"] }),
        ...Object.fromEntries(
          names.map((name) => [
            name,
            inline(`FROM common\nRUN echo ${name}\n`, {
              tags: [`shard:${name}`],
              contexts: { common: "target:common" },
            }),
          ]),
        ),
      },
      ["common", ...names],
    ),
  );
  const printed = async (...words: string[]) => {
    const { stdout } = await bough(directory, "bake", "--print", ...words);
    return JSON.parse(stdout) as { group: { default: { targets: string[] | null } }; target: object };
  };

  test("gives each target to one of several machines, whatever else is built", async () => {
    const shards = await Promise.all([1, 2, 3].map((each) => printed("--shard", `${each}/3`)));
    const members = shards.map(({ group }) => group.default.targets ?? []);
    expect(members.flat().sort()).toEqual(["common", ...names].sort());
    expect(members.every((each) => each.length > 0)).toBe(true);
    // What they are made of is built, too, but is another shard's.
    for (const { target } of shards) expect(Object.keys(target)).toContain("common");
    const [first = ""] = members[1] ?? [];
    expect((await printed(first, "--shard", "2/3")).group.default.targets).toEqual([first]);
    expect((await printed(first, "--shard", "1/3")).group.default.targets).toBeNull();
  });

  test("reports and tags only the targets of the shard", async () => {
    const { group } = await printed("--shard", "1/3");
    const asked = (group.default.targets ?? []).filter((name) => name !== "common");
    const { exitCode } = await bough(
      directory,
      "bake",
      ...asked,
      "--shard",
      "1/3",
      "--results",
      "shard.jsonl",
    );
    expect(exitCode).toBe(0);
    expect([...resultsIn(directory, "shard.jsonl").keys()].sort()).toEqual(asked.sort());
    const { stdout } = await bough(directory, "images", "--format", "json");
    const tags = JSON.parse(stdout).map(({ tag }: { tag: string | null }) => tag);
    expect(tags.filter((tag: string | null) => tag?.startsWith("shard:")).sort()).toEqual(
      asked.map((name) => `shard:${name}`).sort(),
    );
  });

  test.each(["0/3", "4/3", "1", "a/b", "1/0", ""])("refuses %j", async (given) => {
    const { exitCode, stderr } = await bough(directory, "bake", "--shard", given);
    expect(exitCode).toBe(2);
    expect(stderr).toContain("--shard");
    expect(existsSync(join(directory, "results.jsonl"))).toBe(false);
  });
});

describe("targets as JSON lines", () => {
  const printed = async (directory: string, ...words: string[]) => {
    const { exitCode, stdout, stderr } = await bough(directory, "bake", "--print", ...words);
    expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
    return JSON.parse(stdout);
  };

  test("are built with what they inherit from a bake file, in the place of its default group", async () => {
    const directory = makeProject({
      ...bakeFile({
        _base: { context: ".", args: { WHO: "nobody", WHAT: "base" } },
        other: inline("FROM base:1\n"),
      }),
      Dockerfile: "FROM base:1\nARG WHO WHAT\nRUN echo $WHO $WHAT > /who\n",
      "set.jsonl": [
        '{"name": "one", "inherits": "_base", "args": {"WHO": "one"}, "tags": ["lines:one"]}',
        "",
        '{"name": "two", "inherits": ["_base"], "args": {"WHO": "two"}, "tags": ["lines:two"], "repo": "x"}\r',
      ].join("\n"),
    });
    const files = ["-f", "docker-bake.json", "-f", "set.jsonl"];
    const { exitCode, stderr } = await bough(directory, "bake", ...files, "--results", "results.jsonl");
    expect(exitCode).toBe(0);
    expect(stderr).toContain("[WARN] set.jsonl:3: unknown field repo: it is ignored");
    expect([...resultsIn(directory)].map(([name, { origin }]) => [name, origin]).sort()).toEqual([
      ["one", "set.jsonl:1"],
      ["two", "set.jsonl:3"],
    ]);
    expect((await bough(directory, "cat", "lines:two:/who")).stdout).toBe("two base\n");
    expect((await printed(directory, ...files)).group.default.targets).toEqual(["one", "two"]);
    expect((await printed(directory, ...files, "other")).group.default.targets).toContain("other");
  });

  test("are recognized without a name that says it", async () => {
    const directory = makeProject({
      one: '{"name": "one"}',
      two: '{"name": "one"}\n{"name": "two", "context": "sub"}\n',
      compose: '{"name": "project", "services": {"web": {"build": "."}}}',
    });
    expect((await printed(directory, "-f", "one")).group.default.targets).toEqual(["one"]);
    expect(Object.keys((await printed(directory, "-f", "two")).target)).toEqual(["one", "two"]);
    expect(Object.keys((await printed(directory, "-f", "compose")).target)).toEqual(["web"]);
  });

  test.each([
    ["no JSON", '{"name": "a"}\n{"name": "b"', "bad.jsonl:2: the line is not JSON"],
    ["a list", "[]", "bad.jsonl:1: a line must be an object"],
    [
      "no name",
      '{"context": "."}',
      "bad.jsonl:1: name must be a text of letters, digits, _ and -, not missing",
    ],
    [
      "a name of other characters",
      '{"name": "a b"}',
      'bad.jsonl:1: name must be a text of letters, digits, _ and -, not "a b"',
    ],
    ["a name twice", '{"name": "a"}\n\n{"name": "a"}', "bad.jsonl:3: bad.jsonl:1 has a target a, too"],
    ["a field of another kind", '{"name": "a", "tags": 3}', "bad.jsonl:1: target a.tags: "],
    ["nothing", "\n", "bad.jsonl: there is no target in it"],
  ])("with %s are refused with their line", async (_, text, message) => {
    const directory = makeProject({ "bad.jsonl": text });
    const { exitCode, stderr } = await bough(directory, "bake", "-f", "bad.jsonl", "--print");
    expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });
});

describe("a matrix of a file", () => {
  const hcl = `
    variable "rows" { default = [] }
    target "env" {
      matrix = { row = rows }
      name = "env-\${row.id}"
      args = { WHAT = row.what }
    }`;
  const argsWith = async (files: Record<string, FileSpec>, option: string) => {
    const directory = makeProject({ "docker-bake.hcl": hcl, ...files });
    const { exitCode, stdout, stderr } = await bough(
      directory,
      "bake",
      "env",
      "--print",
      "--var-file",
      option,
    );
    if (exitCode !== 0) return { exitCode, stderr };
    const targets: [string, { args: object }][] = Object.entries(JSON.parse(stdout).target);
    return Object.fromEntries(targets.map(([name, { args }]) => [name, args]));
  };

  test.each([
    ["rows.json", '[{"id": "a", "what": "x, y"}, {"id": "b", "what": "\\"q\\""}]'],
    ["rows.jsonl", '{"id": "a", "what": "x, y"}\n\n{"id": "b", "what": "\\"q\\""}\n'],
    ["rows.csv", '\uFEFFid,what\r\na,"x, y"\r\nb,"""q"""\r\n'],
    ["rows", '{"id": "a", "what": "x, y"}\n{"id": "b", "what": "\\"q\\""}\n'],
  ])("%s has a target for each row", async (name, text) => {
    expect(await argsWith({ [name]: text }, `rows=${name}`)).toEqual({
      "env-a": { WHAT: "x, y" },
      "env-b": { WHAT: '"q"' },
    });
  });

  test.each([
    ["rows=none.csv", {}, "--var-file rows=none.csv: "],
    ["rows", {}, '--var-file takes NAME=FILE, not "rows"'],
    [
      "rows=a.csv",
      { "a.csv": "id,what\na,b\nc,d,e\n" },
      "--var-file rows=a.csv: line 3 has 3 fields, and the first line 2",
    ],
    [
      "rows=a.csv",
      { "a.csv": 'id,what\n"a\nb",c\n"d"e,f\n' },
      "--var-file rows=a.csv: line 4: a quote is not where",
    ],
    ["rows=a.csv", { "a.csv": 'id,what\na,"b\n' }, "--var-file rows=a.csv: line 2: a quote is not where"],
    ["rows=a.jsonl", { "a.jsonl": '{"id": "a"}\n{\n' }, "--var-file rows=a.jsonl: line 2: "],
    ["rows=a.csv", { "a.csv": "id,what,id\na,b,c\n" }, '--var-file rows=a.csv: line 1 has two columns "id"'],
    [
      "rows=a.csv",
      { "a.csv": notUtf8("id,what\na,Z\xfcrich\n") },
      "--var-file rows=a.csv: line 2 is not UTF-8 text",
    ],
    ["rows=a.csv", { "a.csv": notUtf8("\xff\xfei\0d\0") }, "--var-file rows=a.csv: line 1 is not UTF-8 text"],
    ["rows=a.txt", { "a.txt": "id,what\na,b\n" }, "(without a name in .csv or .jsonl it is read as JSON)"],
    ["other=a.json", { "a.json": "[]" }, "--var-file other=...: there is no variable other"],
    ["rows=a.json", { "a.json": '"text"' }, "matrix: row must be a list"],
    ["rows=a.json", { "a.json": "[]" }, "the matrix of target env (docker-bake.hcl:3) has no rows"],
  ])("%s is refused: %j", async (option, files: Record<string, FileSpec>, message) => {
    expect(await argsWith(files, option)).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
  });
});

test.each([
  ["docker-bake.hcl", 'target "default" {\n  args = { A = "\xff" }\n}\n'],
  ["docker-bake.json", '{"target":\n{"default": {"args": {"A": "\xff"}}}}'],
  ["compose.yaml", 'services:\n  web: {build: {args: {A: "\xff"}}}\n'],
  ["targets.jsonl", '{"name": "a"}\n{"name": "b", "args": {"A": "\xff"}}\n'],
])("%s that is not UTF-8 is refused with its line, not built with other texts", async (file, text) => {
  const directory = makeProject({ [file]: notUtf8(text) });
  const named = await bough(directory, "bake", "-f", file, "--print");
  expect(named).toMatchObject({ exitCode: 2, stdout: "" });
  expect(named.stderr).toContain(`-f ${file}: line 2 is not UTF-8 text`);
  if (file.endsWith(".jsonl")) return;
  const found = await bough(directory, "bake", "--print");
  expect(found).toMatchObject({ exitCode: 2, stdout: "" });
  expect(found.stderr).toContain(`cannot read ${file}: line 2 is not UTF-8 text`);
});

/** Returns the bytes of a text in Latin-1. */
function notUtf8(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}
