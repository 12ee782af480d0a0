/** A build of which nothing has changed is told again: when it is, and when it must not be. */
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
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { serveEngine } from "../differential/bough.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

/** Some time after all that was just written: nothing has to be waited for until a change of it would show. */
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

/** A database that another process has open. */
let other: Database | undefined;
afterEach(() => {
  other?.close();
  other = undefined;
});

interface Told {
  exitCode: number;
  stdout: string;
  stderr: string;
  /** It was told again. */
  isRepeated: boolean;
}

async function build(words: readonly string[] = [], options: Partial<BoughOptions> = {}): Promise<Told> {
  const all = ["--url", service.url, "--token", "t", "build", ".", ...words];
  return told(all, { workingDirectory: context, ...options });
}

const again = "told again";

/** Marks what is remembered, so that it can be told from what is found. */
async function told(words: readonly string[], options: BoughOptions): Promise<Told> {
  const environment = { BOUGH_HOME: home, ...options.environment };
  const ended = await runBough(words, { clock, ...options, environment });
  for (const path of remembered()) {
    const build = JSON.parse(readFileSync(path, "utf8"));
    if (Array.isArray(build.output) && build.output[0]?.info !== again) build.output.unshift({ info: again });
    writeFileSync(path, JSON.stringify(build));
  }
  return { ...ended, isRepeated: ended.stderr.includes(again) };
}

function remembered(): string[] {
  const directory = join(home, "builds");
  return existsSync(directory) ? readdirSync(directory).map((name) => join(directory, name)) : [];
}

/** The second one may still learn something of the service. */
const maxBuilds = 4;

/** Builds until there is nothing to do, and nothing to be learnt, and a build is told again. */
async function buildUntilRepeated(words: readonly string[] = []): Promise<void> {
  await repeat(() => build(words));
}

async function repeat(once: () => Promise<Told>): Promise<void> {
  for (let count = 1; ; count++) {
    const { exitCode, stderr, isRepeated } = await once();
    expect(exitCode === 0 ? "" : stderr).toBe("");
    if (isRepeated && count > 2) return;
    expect({ count, isRepeated }).toEqual({ count: Math.min(count, maxBuilds - 1), isRepeated: false });
  }
}

/** Writes what takes as many bytes, and sets the time back: only the change time tells. */
function rewrite(path: string, text: string): void {
  const { atime, mtime } = statSync(join(context, path));
  writeFileSync(join(context, path), text);
  utimesSync(join(context, path), atime, mtime);
}

function replace(path: string, text: string): void {
  writeFileSync(join(context, `${path}.new`), text);
  renameSync(join(context, `${path}.new`), join(context, path));
}

describe("built, not told again, after a change of", () => {
  test.each<[string, () => void]>([
    ["a file, its size and time as before", () => rewrite("app/a.txt", "A")],
    ["a file that another one replaces", () => replace("app/a.txt", "A")],
    ["a file's mode", () => chmodSync(join(context, "app/b/c.sh"), 0o644)],
    ["a file that is new", () => writeFiles(context, { "app/b/new.txt": "" })],
    ["a file that is gone", () => unlinkSync(join(context, "app/a.txt"))],
    ["a file's name", () => renameSync(join(context, "app/a.txt"), join(context, "app/z.txt"))],
    [
      "a file that becomes a link",
      () => {
        unlinkSync(join(context, "app/a.txt"));
        symlinkSync("b/c.sh", join(context, "app/a.txt"));
      },
    ],
    [
      "a directory that another one replaces",
      () => {
        renameSync(join(context, "app/b"), join(context, "other/b"));
        writeFiles(context, { "app/b/c.sh": { text: "d", mode: 0o755 } });
      },
    ],
    ["a file that matches a pattern only now", () => writeFiles(context, { "missing.txt": "there" })],
    ["what a link leads to", () => rewrite("other/far.txt", "FAR")],
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
    ["the image that FROM means", () => void service.state.addImage("base:1")],
    [
      "the image of a layer, which is gone",
      () => {
        for (const [, image] of service.state.tags)
          if (image !== service.state.tags.get("base:1")) service.state.images.delete(image);
      },
    ],
    ["what bough knows", () => rmSync(join(home, "sessions"), { recursive: true })],
    [
      "what another process has bough know",
      () => {
        const [name = ""] = readdirSync(join(home, "sessions")).filter((each) => each.endsWith(".db"));
        // Its write-ahead log is there for as long as it is open.
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
    // And is remembered anew.
    await build(["--tag", "app"]);
    expect(await build(["--tag", "app"])).toMatchObject({ exitCode: 0, isRepeated: true });
  });

  /** Looks at nothing of the context but a directory. */
  const narrow = "FROM base:1\nCOPY app /app\nRUN first\n";

  test.each<[string, string]>([
    ["the ignore file", ".dockerignore"],
    ["the Dockerfile's own ignore file", "dockerfile.dockerignore"],
    ["the Dockerfile that comes before the one that was taken", "Dockerfile"],
  ])("%s, which there was not", async (_, name) => {
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
    const once = () => told(words, { workingDirectory: "/" });
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
    ["the words", ["--tag", "more"], {}],
    ["a build argument", ["--build-arg", "LEVEL=2"], {}],
    ["a variable", [], { environment: { BOUGH_DOCKER: "1" } }],
    ["the program", [], { program: "newer" }],
  ])("%s", async (_, words, options) => {
    await buildUntilRepeated();
    expect((await build(words, options)).isRepeated).toBe(false);
  });
});

test("a change so shortly before a build that the next one would not show keeps that from being remembered", async () => {
  await buildUntilRepeated();
  rewrite("app/a.txt", "A");
  const soon = { ...clock, now: () => Math.floor(statSync(join(context, "app/a.txt")).ctimeMs) + 50 };
  for (let count = 0; count < 3; count++)
    expect(await build([], { clock: soon })).toMatchObject({ exitCode: 0, isRepeated: false });
});

test("after an hour a build is done again, so that what it uses counts as used", async () => {
  await buildUntilRepeated();
  const later = (milliseconds: number) => ({ clock: { ...clock, now: () => clock.now() + milliseconds } });
  expect((await build([], later(3_500_000))).isRepeated).toBe(true);
  expect((await build([], later(3_600_000))).isRepeated).toBe(false);
});

test("what is found in order meanwhile makes no build's use newer than it is", async () => {
  await buildUntilRepeated();
  for (const path of remembered()) unlinkSync(path);
  const later = (milliseconds: number) => ({ clock: { ...clock, now: () => clock.now() + milliseconds } });
  expect((await build([], later(3_400_000))).isRepeated).toBe(false);
  expect((await build([], later(3_500_000))).isRepeated).toBe(true);
  expect((await build([], later(3_700_000))).isRepeated).toBe(false);
});

test.each(["PWD", "SHLVL", "COLUMNS"])(
  "--build-arg %s takes what a shell changes by itself",
  async (name) => {
    writeFileSync(join(context, "Dockerfile"), `FROM base:1\nARG ${name}\nRUN first\n`);
    const value = (text: string) => build(["--build-arg", name], { environment: { [name]: text } });
    await repeat(() => value("1"));
    expect((await value("2")).isRepeated).toBe(false);
  },
);

test.each(["tty", "nonsense"])("--progress %s, which can't be had, sets no tag", async (mode) => {
  await buildUntilRepeated(["--tag", "app"]);
  service.clearRequests();
  expect(await build(["--tag", "app", "--progress", mode])).toMatchObject({ exitCode: 2 });
  expect(service.requests).toEqual([]);
});

describe("told again whatever becomes of", () => {
  test.each<[string, () => void]>([
    ["files that no COPY takes", () => writeFiles(context, { "elsewhere/new.txt": "new" })],
    ["what the files' times of access say", () => void readFileSync(join(context, "app/a.txt"))],
    ["images that FROM does not mean", () => void service.state.addImage("other:1")],
  ])("%s", async (_, change) => {
    await buildUntilRepeated();
    change();
    expect((await build()).isRepeated).toBe(true);
  });

  test("variables that a shell changes by itself", async () => {
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
  ])("what has %s", async (_, words) => {
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

  test("a build that fails", async () => {
    writeFileSync(join(context, "Dockerfile"), `${dockerfile}COPY nothing /\n`);
    for (let count = 0; count < 3; count++) expect((await build()).exitCode).toBe(1);
    expect(remembered()).toEqual([]);
  });

  test("one by a program that is run from its source", async () => {
    for (let count = 0; count < 3; count++) await build([], { program: undefined });
    expect(remembered()).toEqual([]);
  });
});

describe("what is told again is what was told:", () => {
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
      "a warning of a line, and one of none",
      ["--build-arg", "UNUSED=1", "--progress", "json"],
      `${dockerfile}COPY nothin[g] /\nRUN third\n`,
    ],
    ["what is left out", ["--progress", "json"], `${dockerfile}COPY . /all/\nRUN third\n`],
    ["JSON", ["--format", "json"], dockerfile],
    ["an id", ["--quiet"], dockerfile],
    ["a COPY at the end", ["--progress", "json"], `${dockerfile}COPY app /end\n`],
  ])("%s", async (_, words, text) => {
    writeFiles(context, { Dockerfile: text, "node_modules/x/index.js": "x" });
    // Which stage is ahead is chance: it is compared with the very build that is remembered, by the file that one has made.
    const made = () => remembered().map((path) => statSync(path).ino);
    let idle: Told | undefined;
    let repeated = await build(words);
    for (let count = 1; count < maxBuilds; count++) {
      const before = made();
      repeated = await build(words);
      if (!Bun.deepEquals(made(), before)) idle = repeated;
    }
    if (idle === undefined) throw new Error("nothing is remembered");
    expect(repeated).not.toBe(idle);
    const comparable = ({ exitCode, stdout, stderr }: Told) => ({
      ...{ exitCode, stdout },
      stderr: stderr
        .replaceAll(/"time":"[^"]*"/g, "")
        .replaceAll(/"seconds":[\d.]+/g, "")
        .replace(/in [\d.]+ s\n/, "")
        .replace(new RegExp(`.*${again}.*\n`), ""),
    });
    expect(comparable(repeated)).toEqual(comparable(idle));
  });
});

describe("the service", () => {
  const requests = () =>
    service.requests.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, "ID")}`);

  test("is asked what it was asked, and the tag is set", async () => {
    await buildUntilRepeated(["--tag", "app"]);
    const image = service.state.tags.get("app:latest");
    service.state.tags.delete("app:latest");
    service.clearRequests();
    expect((await build(["--tag", "app"])).isRepeated).toBe(true);
    expect(requests()).toEqual(["GET /v1/images", "PATCH /v1/images/ID/tag"]);
    expect(service.state.tags.get("app:latest")).toBe(image);
  });

  test("that does not answer at once is asked by the build", async () => {
    await buildUntilRepeated();
    const sleep: Clock["sleep"] = (milliseconds, signal) =>
      milliseconds === 1000 ? Promise.resolve() : clock.sleep(milliseconds, signal);
    const { exitCode, isRepeated } = await build([], { clock: { ...clock, sleep } });
    expect({ exitCode, isRepeated }).toEqual({ exitCode: 0, isRepeated: false });
  });

  test("that is slow is asked by the build alone", async () => {
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

  test("may compress its answers", async () => {
    const other = await startFakeService({ gzip: true });
    other.state.addImage("base:1");
    await repeat(() =>
      told(["--url", other.url, "build", ".", "--tag", "app"], { workingDirectory: context }),
    );
    await other.close();
  });

  test("may be bough's own, which tells of configurations", async () => {
    const engine = await serveEngine(temporaryDirectory());
    await engine.importBase(await makeBusyboxLayout(temporaryDirectory()), "base:1");
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    const words = ["--url", engine.url, "--token", engine.token, "build", ".", "--docker", "--tag", "app"];
    const once = () => told(words, { workingDirectory: context });
    await repeat(once);
    await engine.importBase(
      await makeBusyboxLayout(temporaryDirectory(), { environment: ["NEW=1"] }),
      "base:1",
    );
    expect(await once()).toMatchObject({ exitCode: 0, isRepeated: false });
    await engine.stop();
  });

  test("fails as it would without", async () => {
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

describe("what is remembered", () => {
  test.each<[string, string]>([
    ["nothing", ""],
    ["half of it", '{"key":'],
    ["something else", "[]"],
    ["somebody else's", '{"key":"x","output":[]}'],
  ])("may be %s", async (_, text) => {
    await buildUntilRepeated();
    for (const path of remembered()) writeFileSync(path, text);
    expect(await build()).toMatchObject({ exitCode: 0, isRepeated: false });
    expect((await build()).isRepeated).toBe(true);
  });

  test("is not taken where others may write", async () => {
    await buildUntilRepeated();
    chmodSync(join(home, "builds"), 0o777);
    expect(await build()).toMatchObject({ exitCode: 0, isRepeated: false });
  });

  test("is that of the last hundred builds", async () => {
    await buildUntilRepeated();
    for (let count = 0; count < 150; count++) writeFileSync(join(home, "builds", `${count}.json`), "{}");
    const [kept] = remembered().filter((path) => path.length > 60);
    await build(["--tag", "app"]);
    await build(["--tag", "app"]);
    expect(kept).toBeDefined();
    expect(remembered()).toHaveLength(100);
  });

  test("is nobody else's to read", async () => {
    await buildUntilRepeated();
    expect(statSync(join(home, "builds")).mode & 0o777).toBe(0o700);
    for (const path of remembered()) expect(statSync(path).mode & 0o777).toBe(0o600);
  });
});

describe("on the engine: built, not told again, after", () => {
  let layout: string;
  beforeAll(async () => {
    layout = await makeBusyboxLayout(temporaryDirectory());
  });

  const onEngine = (...words: string[]) => told(["--local", ...words], { workingDirectory: context });
  const buildThere = () => onEngine("build", ".", "--docker", "--tag", "app");

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
    ["all is pruned", () => onEngine("engine", "prune", "--all", "--yes")],
    [
      "FROM's image is another one",
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
        return told(["--local", "build", "."], { workingDirectory: other });
      },
    ],
  ])("%s", async (_, change) => {
    expect(await importBase()).toMatchObject({ exitCode: 0 });
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildThere);
    expect(await change()).toMatchObject({ exitCode: 0 });
    expect((await buildThere()).isRepeated).toBe(false);
  });

  test.each(["sessions", "engine"])("others may write into %s", async (name) => {
    await importBase();
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildThere);
    chmodSync(join(home, name), 0o777);
    expect(await buildThere()).toMatchObject({ exitCode: 1, isRepeated: false });
  });

  test("told again, nothing of it is written", async () => {
    await importBase();
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY app /app\nRUN true\n");
    await repeat(buildThere);
    const states = () =>
      ["sessions/embedded.db", "engine/engine.db", "engine/scratch", "builds"].map(
        (name) => statSync(join(home, name)).ctimeMs,
      );
    const before = states();
    expect((await buildThere()).isRepeated).toBe(true);
    expect(states()).toEqual(before);
  });
});
