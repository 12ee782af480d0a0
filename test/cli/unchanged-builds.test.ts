/** Repeating the output of a build if nothing has changed: when bough does it, and when it must not. */
import { Database } from "bun:sqlite";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  unlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { serveEngine } from "../differential/bough.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

/** Ten seconds ahead, so that a change of files that were just written would be visible. */
const clock: Clock = { ...systemClock, now: () => systemClock.now() + 10_000 };

let service: FakeService;
let context: string;
let home: string;

beforeAll(async () => {
  service = await startFakeService();
});
afterAll(() => service.close());

const dockerfile = `FROM base:1
ARG LEVEL
COPY app /app
RUN first
COPY --exclude=*.md docs* missing* lin[k] /docs/
RUN second
`;

beforeEach(() => {
  service.state.addImage("base:1");
  home = temporaryDirectory();
  const parent = temporaryDirectory();
  context = join(parent, "context");
  mkdirSync(context);
  writeFiles(context, {
    Dockerfile: dockerfile,
    "app/a.txt": "a",
    "app/b/c.sh": { text: "c", mode: 0o755 },
    "docs/index.html": "docs",
    "docs/notes.md": "notes",
    "other/far.txt": "far",
    "elsewhere/old.txt": "old",
  });
  symlinkSync("other/far.txt", join(context, "link"));
});

/** The database, open as in another process. */
let other: Database | undefined;
afterEach(() => {
  other?.close();
  other = undefined;
});

interface BuildResult {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** True if the output of an earlier build was repeated. */
  isRepeated: boolean;
}

async function build(
  words: readonly string[] = [],
  options: Partial<BoughOptions> = {},
): Promise<BuildResult> {
  const all = ["--url", service.url, "--token", "t", "build", ".", ...words];
  return runAndMark(all, { workingDirectory: context, ...options });
}

/** A log line that is added to every remembered output. */
const repetitionMark = "told again";

/** Runs bough, and marks remembered outputs, so that a repetition can be recognized. */
async function runAndMark(words: readonly string[], options: BoughOptions): Promise<BuildResult> {
  const environment = { BOUGH_HOME: home, ...options.environment };
  const ended = await runBough(words, { clock, ...options, environment });
  for (const path of remembered()) {
    const build = JSON.parse(readFileSync(path, "utf8"));
    if (Array.isArray(build.output) && build.output[0]?.info !== repetitionMark)
      build.output.unshift({ info: repetitionMark });
    writeFileSync(path, JSON.stringify(build));
  }
  return { ...ended, isRepeated: ended.stderr.includes(repetitionMark) };
}

function remembered(): string[] {
  const directory = join(home, "builds");
  return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : [];
}

/** The number of builds of which the last is repeated: the second one may still learn something about the service. */
const maxBuilds = 4;

/** Builds until the output of a build is repeated. */
async function buildUntilRepeated(words: readonly string[] = []): Promise<void> {
  await repeat(() => build(words));
}

async function repeat(once: () => Promise<BuildResult>): Promise<void> {
  for (let count = 1; ; count++) {
    const { exitCode, stderr, isRepeated } = await once();
    expect(exitCode === 0 ? "" : stderr).toBe("");
    if (isRepeated && count > 2) return;
    expect({ count, isRepeated }).toEqual({ count: Math.min(count, maxBuilds - 1), isRepeated: false });
  }
}

/** Writes text of the same length and restores the modification time, so that only the change time differs. */
function rewrite(path: string, text: string): void {
  const { atime, mtime } = statSync(join(context, path));
  writeFileSync(join(context, path), text);
  utimesSync(join(context, path), atime, mtime);
}

function replace(path: string, text: string): void {
  writeFileSync(join(context, `${path}.new`), text);
  renameSync(join(context, `${path}.new`), join(context, path));
}

describe("builds again after a change of", () => {
  test.each<[string, () => void]>([
    ["a file with the same size and time", () => rewrite("app/a.txt", "A")],
    ["a file that is replaced", () => replace("app/a.txt", "A")],
    ["a file's mode", () => chmodSync(join(context, "app/b/c.sh"), 0o644)],
    ["a new file", () => writeFiles(context, { "app/b/new.txt": "" })],
    ["a removed file", () => unlinkSync(join(context, "app/a.txt"))],
    ["a file's name", () => renameSync(join(context, "app/a.txt"), join(context, "app/z.txt"))],
    [
      "a file that becomes a link",
      () => {
        unlinkSync(join(context, "app/a.txt"));
        symlinkSync("b/c.sh", join(context, "app/a.txt"));
      },
    ],
    [
      "a directory that is replaced",
      () => {
        renameSync(join(context, "app/b"), join(context, "other/b"));
        writeFiles(context, { "app/b/c.sh": { text: "d", mode: 0o755 } });
      },
    ],
    ["a new file that matches a pattern", () => writeFiles(context, { "missing.txt": "there" })],
    ["the target of a link", () => rewrite("other/far.txt", "FAR")],
    [
      "a link",
      () => {
        unlinkSync(join(context, "link"));
        symlinkSync("app/a.txt", join(context, "link"));
      },
    ],
    ["the Dockerfile", () => rewrite("Dockerfile", dockerfile.replace("second", "secund"))],
    [
      "the whole context",
      () => {
        renameSync(context, `${context}-old`);
        writeFiles(context, {
          Dockerfile: dockerfile,
          "app/a.txt": "a",
          "docs/index.html": "docs",
          link: "",
        });
      },
    ],
    ["the image of FROM", () => void service.state.addImage("base:1")],
    [
      "the image of a layer, which is removed",
      () => {
        for (const [, image] of service.state.tags)
          if (image !== service.state.tags.get("base:1")) service.state.images.delete(image);
      },
    ],
    ["bough's state, which is removed", () => rmSync(join(home, "sessions"), { recursive: true })],
    [
      "bough's state by another process",
      () => {
        const [name = ""] = readdirSync(join(home, "sessions")).filter((each) => each.endsWith(".db"));
        // The write-ahead log exists while the database is open.
        other = new Database(join(home, "sessions", name));
        other.run("UPDATE session SET updated_at = updated_at + 1");
      },
    ],
  ])("%s", async (_, change) => {
    await buildUntilRepeated(["--tag", "app"]);
    change();
    const changed = await build(["--tag", "app"]);
    expect(changed).toMatchObject({ exitCode: 0, isRepeated: false });
    other?.close();
    // The new build is remembered, too.
    await build(["--tag", "app"]);
    expect(await build(["--tag", "app"])).toMatchObject({ exitCode: 0, isRepeated: true });
  });

  /** Reads only a directory of the context. */
  const narrow = "FROM base:1\nCOPY app /app\nRUN first\n";

  test.each<[string, string]>([
    ["the ignore file", ".dockerignore"],
    ["the Dockerfile's own ignore file", "dockerfile.dockerignore"],
    ["a Dockerfile that takes precedence", "Dockerfile"],
  ])("%s, which did not exist", async (_, name) => {
    unlinkSync(join(context, "Dockerfile"));
    writeFiles(context, { dockerfile: narrow });
    await buildUntilRepeated();
    writeFiles(context, { [name]: name === "Dockerfile" ? narrow : "app/a.txt\n" });
    expect((await build()).isRepeated).toBe(false);
  });

  test("the link that leads to the context", async () => {
    const link = `${context}-link`;
    symlinkSync(join(context, "app"), link);
    writeFiles(context, { Dockerfile: "FROM base:1\nCOPY . /app\nRUN first\n" });
    const words = ["--url", service.url, "build", link, "--dockerfile", join(context, "Dockerfile")];
    const once = () => runAndMark(words, { workingDirectory: "/" });
    await repeat(once);
    unlinkSync(link);
    symlinkSync(join(context, "other"), link);
    const { stderr, isRepeated } = await once();
    expect({ stderr, isRepeated }).toEqual({
      stderr: expect.stringContaining("staged 1 file"),
      isRepeated: false,
    });
  });

  test.each<[string, readonly string[], Partial<BoughOptions>]>([
    ["the options", ["--tag", "more"], {}],
    ["a build argument", ["--build-arg", "LEVEL=2"], {}],
    ["a variable", [], { environment: { BOUGH_DOCKER: "1" } }],
    ["the program", [], { program: "newer" }],
  ])("%s", async (_, words, options) => {
    await buildUntilRepeated();
    expect((await build(words, options)).isRepeated).toBe(false);
  });
});

test("a build right after a change is not remembered, because the next change might not be visible", async () => {
  await buildUntilRepeated();
  rewrite("app/a.txt", "A");
  const soon = { ...clock, now: () => Math.floor(statSync(join(context, "app/a.txt")).ctimeMs) + 50 };
  for (let count = 0; count < 3; count++)
    expect(await build([], { clock: soon })).toMatchObject({ exitCode: 0, isRepeated: false });
});

test("builds again after an hour, so that its images count as used", async () => {
  await buildUntilRepeated();
  const later = (milliseconds: number) => ({ clock: { ...clock, now: () => clock.now() + milliseconds } });
  expect((await build([], later(3_500_000))).isRepeated).toBe(true);
  expect((await build([], later(3_600_000))).isRepeated).toBe(false);
});

test("a cached build does not extend the hour", async () => {
  await buildUntilRepeated();
  for (const path of remembered()) unlinkSync(path);
  const later = (milliseconds: number) => ({ clock: { ...clock, now: () => clock.now() + milliseconds } });
  expect((await build([], later(3_400_000))).isRepeated).toBe(false);
  expect((await build([], later(3_500_000))).isRepeated).toBe(true);
  expect((await build([], later(3_700_000))).isRepeated).toBe(false);
});

test.each(["PWD", "SHLVL", "COLUMNS"])(
  "--build-arg %s makes a variable count that a shell changes",
  async (name) => {
    writeFileSync(join(context, "Dockerfile"), `FROM base:1\nARG ${name}\nRUN first\n`);
    const value = (text: string) => build(["--build-arg", name], { environment: { [name]: text } });
    await repeat(() => value("1"));
    expect((await value("2")).isRepeated).toBe(false);
  },
);

test.each(["tty", "nonsense"])("--progress %s is refused without setting a tag", async (mode) => {
  await buildUntilRepeated(["--tag", "app"]);
  service.clearRequests();
  expect(await build(["--tag", "app", "--progress", mode])).toMatchObject({ exitCode: 2 });
  expect(service.requests).toEqual([]);
});

describe("with --build-context", () => {
  const words = ["--build-context", "lib=../lib"];
  let library: string;

  beforeEach(() => {
    library = join(dirname(context), "lib");
    writeFiles(library, { "used/a.txt": "a", "unused/b.txt": "b", ".dockerignore": "none.txt\n" });
    writeFiles(context, {
      Dockerfile: "FROM base:1\nCOPY app /app\nCOPY --from=lib used /used\nRUN first\n",
    });
  });

  test.each<[string, () => void]>([
    ["a file of the directory", () => rewrite("../lib/used/a.txt", "A")],
    ["a new file of the directory", () => writeFiles(library, { "used/new.txt": "" })],
    ["its ignore file", () => rewrite("../lib/.dockerignore", "used/a.*\n")],
    ["the build context", () => rewrite("app/a.txt", "A")],
    [
      "the link that leads to it",
      () => {
        renameSync(library, `${library}-old`);
        symlinkSync(`${library}-old`, library);
      },
    ],
    ["the directory, which is removed", () => rmSync(library, { recursive: true })],
  ])("builds again after a change of %s", async (_, change) => {
    await buildUntilRepeated(words);
    change();
    expect((await build(words)).isRepeated).toBe(false);
  });

  test("repeats the output after a change of files that no COPY copies", async () => {
    await buildUntilRepeated(words);
    rewrite("../lib/unused/b.txt", "B");
    expect((await build(words)).isRepeated).toBe(true);
  });

  test("builds again with another directory", async () => {
    await buildUntilRepeated(words);
    expect((await build(["--build-context", "lib=."])).isRepeated).toBe(false);
  });
});

describe("repeats the output after a change of", () => {
  test.each<[string, () => void]>([
    ["files that no COPY copies", () => writeFiles(context, { "elsewhere/new.txt": "new" })],
    ["access times of files", () => void readFileSync(join(context, "app/a.txt"))],
    ["images that FROM does not use", () => void service.state.addImage("other:1")],
  ])("%s", async (_, change) => {
    await buildUntilRepeated();
    change();
    expect((await build()).isRepeated).toBe(true);
  });

  test("variables that a shell changes", async () => {
    const environment = (level: string) => ({ environment: { SHLVL: level, OLDPWD: level } });
    for (const level of ["1", "2", "3"]) await build([], environment(level));
    expect((await build([], environment("4"))).isRepeated).toBe(true);
  });
});

describe("never remembered", () => {
  test.each<[string, readonly string[]]>([
    ["--no-cache", ["--no-cache"]],
    ["--iidfile", ["--iidfile", "id"]],
    ["--metadata-file", ["--metadata-file", "meta"]],
    ["--timings", ["--timings"]],
    ["--trace", ["--trace", "trace"]],
    ["--explain", ["--explain"]],
    ["--cache-to", ["--cache-to", "scope"]],
    ["--secret", ["--secret", "id=a,src=app/a.txt"]],
    ["--output", ["--output", "type=tar,dest=image.tar"]],
  ])("a build with %s", async (_, words) => {
    for (let count = 0; count < 3; count++) await build(words);
    expect(remembered()).toEqual([]);
  });

  test.each<[string, string]>([
    ["checks that are errors", `# check=error=true\n${dockerfile}`],
    ["an ADD from an address", `${dockerfile}ADD URL/v1/files?x /x\nRUN third\n`],
  ])("a Dockerfile with %s", async (_, text) => {
    writeFileSync(join(context, "Dockerfile"), text.replace("URL", service.url));
    for (let count = 0; count < 3; count++) await build();
    expect(remembered()).toEqual([]);
  });

  test("a build with the address of a file as a --build-context", async () => {
    let requests = 0;
    using server = Bun.serve({ port: 0, fetch: () => new Response(`${++requests}`) });
    writeFileSync(join(context, "Dockerfile"), `${dockerfile}COPY --from=src context /x\nRUN third\n`);
    for (let count = 0; count < 3; count++) await build(["--build-context", `src=${server.url}a`]);
    expect(requests).toBe(3);
    expect(remembered()).toEqual([]);
  });

  test("a build that fails", async () => {
    writeFileSync(join(context, "Dockerfile"), `${dockerfile}COPY nothing /\n`);
    for (let count = 0; count < 3; count++) expect((await build()).exitCode).toBe(1);
    expect(remembered()).toEqual([]);
  });

  test("a build by a bough that is run from its source", async () => {
    for (let count = 0; count < 3; count++) await build([], { program: undefined });
    expect(remembered()).toEqual([]);
  });
});

describe("repeats the same output:", () => {
  const stages = `FROM base:1 AS one
RUN first
FROM base:1 AS two
COPY app /app
RUN second
FROM one
COPY --from=two /app /app
WORKDIR /app
RUN third
`;
  test.each<[string, readonly string[], string]>([
    ["log lines", [], dockerfile],
    ["a table", ["--tag", "app", "--tag", "more:2"], dockerfile],
    ["events", ["--progress", "json"], dockerfile],
    ["events of stages", ["--progress", "json", "--jobs", "1", "--docker"], stages],
    [
      "a warning of a line, and one without a line",
      ["--build-arg", "UNUSED=1", "--progress", "json"],
      `${dockerfile}COPY nothin[g] /\nRUN third\n`,
    ],
    ["excluded files", ["--progress", "json"], `${dockerfile}COPY . /all/\nRUN third\n`],
    ["JSON", ["--format", "json"], dockerfile],
    ["an id", ["--quiet"], dockerfile],
    ["a COPY at the end", ["--progress", "json"], `${dockerfile}COPY app /end\n`],
  ])("%s", async (_, words, text) => {
    writeFiles(context, { Dockerfile: text, "node_modules/x/index.js": "x" });
    // The order of stages varies, so the output is compared with that of the remembered build, the one that made a new file.
    const inodes = () => remembered().map((path) => statSync(path).ino);
    let original: BuildResult | undefined;
    let repeated = await build(words);
    for (let count = 1; count < maxBuilds; count++) {
      const before = inodes();
      repeated = await build(words);
      if (!Bun.deepEquals(inodes(), before)) original = repeated;
    }
    if (original === undefined) throw new Error("nothing is remembered");
    expect(repeated).not.toBe(original);
    const comparable = ({ exitCode, stdout, stderr }: BuildResult) => ({
      ...{ exitCode, stdout },
      stderr: stderr
        .replaceAll(/"time":"[^"]*"/g, "")
        .replaceAll(/"seconds":[\d.]+/g, "")
        .replace(/in [\d.]+ s\n/, "")
        .replace(new RegExp(`.*${repetitionMark}.*\n`), ""),
    });
    expect(comparable(repeated)).toEqual(comparable(original));
  });
});

describe("the service", () => {
  const requests = () =>
    service.requests.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, "ID")}`);

  test("gets the same requests, and the tag is set", async () => {
    await buildUntilRepeated(["--tag", "app"]);
    const image = service.state.tags.get("app:latest");
    service.state.tags.delete("app:latest");
    service.clearRequests();
    expect((await build(["--tag", "app"])).isRepeated).toBe(true);
    expect(requests()).toEqual(["GET /v1/images", "PATCH /v1/images/ID/tag"]);
    expect(service.state.tags.get("app:latest")).toBe(image);
  });

  test("makes bough build again if it does not respond at once", async () => {
    await buildUntilRepeated();
    const sleep: Clock["sleep"] = (milliseconds, signal) =>
      milliseconds === 1000 ? Promise.resolve() : clock.sleep(milliseconds, signal);
    const { exitCode, isRepeated } = await build([], { clock: { ...clock, sleep } });
    expect({ exitCode, isRepeated }).toEqual({ exitCode: 0, isRepeated: false });
  });

  test("keeps bough from remembering builds if it is slow", async () => {
    let now = clock.now();
    const fetchSlowly: BoughOptions["fetch"] = async (input, init) => {
      const response = await fetch(input, init);
      now += 600;
      return response;
    };
    for (let count = 0; count < 4; count++)
      await build([], { clock: { ...clock, now: () => now }, fetch: fetchSlowly });
    expect(remembered()).toEqual([]);
  });

  test("may compress its responses", async () => {
    const other = await startFakeService({ gzip: true });
    other.state.addImage("base:1");
    await repeat(() =>
      runAndMark(["--url", other.url, "build", ".", "--tag", "app"], { workingDirectory: context }),
    );
    await other.close();
  });

  test("may answer a tag without a body", async () => {
    service.overrule = ({ method }) => (method === "PATCH" ? new Response(null, { status: 204 }) : undefined);
    try {
      await buildUntilRepeated(["--tag", "app"]);
    } finally {
      service.overrule = undefined;
    }
  });

  test("may be bough's engine, which reports configurations of images", async () => {
    const engine = await serveEngine(temporaryDirectory());
    await engine.importBase(await makeBusyboxLayout(temporaryDirectory()), "base:1");
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    const words = ["--url", engine.url, "--token", engine.token, "build", ".", "--docker", "--tag", "app"];
    const once = () => runAndMark(words, { workingDirectory: context });
    await repeat(once);
    await engine.importBase(
      await makeBusyboxLayout(temporaryDirectory(), { environment: ["NEW=1"] }),
      "base:1",
    );
    expect(await once()).toMatchObject({ exitCode: 0, isRepeated: false });
    await engine.stop();
  });

  test("causes the same error as in any build", async () => {
    await buildUntilRepeated();
    service.overrule = () => new Response("no", { status: 401 });
    try {
      const { exitCode, stderr } = await build();
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("token") });
    } finally {
      service.overrule = undefined;
    }
  });
});

describe("a remembered build", () => {
  test.each<[string, string]>([
    ["empty", ""],
    ["cut off", '{"key":'],
    ["of another type", "[]"],
    ["that of another build", '{"key":"x","output":[]}'],
  ])("may be %s", async (_, text) => {
    await buildUntilRepeated();
    for (const path of remembered()) writeFileSync(path, text);
    expect(await build()).toMatchObject({ exitCode: 0, isRepeated: false });
    expect((await build()).isRepeated).toBe(true);
  });

  test("is not used if others may write to its directory", async () => {
    await buildUntilRepeated();
    chmodSync(join(home, "builds"), 0o777);
    expect(await build()).toMatchObject({ exitCode: 0, isRepeated: false });
  });

  test("is one of the last hundred", async () => {
    await buildUntilRepeated();
    for (let count = 0; count < 150; count++) writeFileSync(join(home, "builds", `${count}.json`), "{}");
    const [kept] = remembered().filter((path) => path.length > 60);
    await build(["--tag", "app"]);
    await build(["--tag", "app"]);
    expect(kept).toBeDefined();
    expect(remembered()).toHaveLength(100);
  });

  test("can be read only by its owner", async () => {
    await buildUntilRepeated();
    expect(statSync(join(home, "builds")).mode & 0o777).toBe(0o700);
    for (const path of remembered()) expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});

describe("on the engine", () => {
  let layout: string;
  beforeAll(async () => {
    layout = await makeBusyboxLayout(temporaryDirectory());
  });

  const onEngine = (...words: string[]) => runAndMark(["--local", ...words], { workingDirectory: context });
  const buildOnEngine = () => onEngine("build", ".", "--docker", "--tag", "app");

  const importBase = () => onEngine("images", "import", layout, "--tag", "base:1");

  test.each<[string, () => Promise<unknown>]>([
    ["a layer is removed", () => onEngine("rmi", "app")],
    [
      "a layer's directory is gone",
      async () => {
        const layers = join(home, "engine/layers");
        const [last = ""] = readdirSync(layers).sort((one, other) => Number(other) - Number(one));
        rmSync(join(layers, last), { recursive: true });
        return { exitCode: 0 };
      },
    ],
    ["its tag is moved", () => onEngine("tag", "base:1", "app:latest")],
    ["everything is pruned", () => onEngine("engine", "prune", "--all", "--yes")],
    [
      "the image of FROM is replaced",
      async () => {
        layout = await makeBusyboxLayout(temporaryDirectory(), { environment: ["NEW=1"] });
        return importBase();
      },
    ],
    [
      "another build has made a layer",
      async () => {
        const other = temporaryDirectory();
        writeFiles(other, { Dockerfile: "FROM base:1\nRUN echo other\n" });
        return runAndMark(["--local", "build", "."], { workingDirectory: other });
      },
    ],
  ])("builds again after %s", async (_, change) => {
    expect(await importBase()).toMatchObject({ exitCode: 0 });
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildOnEngine);
    expect(await change()).toMatchObject({ exitCode: 0 });
    expect((await buildOnEngine()).isRepeated).toBe(false);
  });

  test.each(["sessions", "engine"])("refuses %s if others may write to it", async (name) => {
    await importBase();
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildOnEngine);
    chmodSync(join(home, name), 0o777);
    expect(await buildOnEngine()).toMatchObject({ exitCode: 1, isRepeated: false });
  });

  test("writes nothing if it repeats the output", async () => {
    await importBase();
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildOnEngine);
    const states = () =>
      ["sessions/embedded.db", "engine/engine.db", "engine/scratch", "builds"].map(
        (name) => statSync(join(home, name)).ctimeMs,
      );
    const before = states();
    expect((await buildOnEngine()).isRepeated).toBe(true);
    expect(states()).toEqual(before);
  });
});
