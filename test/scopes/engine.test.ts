/** On the engine, two homes that share a scope have the hits and misses of a single home, edit after edit. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { chmodSync, cpSync, existsSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type RunningEngine, serveEngine } from "../differential/bough.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

const dockerfile = `FROM busybox:1 AS tools
RUN echo tool > /tool
FROM busybox:1
ARG LEVEL=1
COPY app /app
RUN echo $LEVEL; cat /app/a.txt > /copied
COPY --from=tools /tool /bin/tool
ENV MODE=fast
USER 1000
WORKDIR /tmp/work
RUN date > now
`;

let engine: RunningEngine;
let source: string;
beforeAll(async () => {
  engine = await serveEngine(temporaryDirectory());
  await engine.importBase(await makeBusyboxLayout(temporaryDirectory()), "busybox:1");
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: dockerfile, "app/a.txt": "a", "app/b": { text: "b", mode: 0o755 } });
});
afterAll(() => engine.stop());

const edit = (from: string, to: string) =>
  writeFileSync(join(source, "Dockerfile"), dockerfile.replace(from, to));

test.each([[[]], [["--docker"]]])(
  "two homes with a scope and different paths have the hits of a single home, with %p",
  async (mode) => {
    const scope = `test-${crypto.randomUUID()}`;
    const shared = ["--cache-from", scope, "--cache-to", scope];
    const make = (...words: string[]) => ({
      context: temporaryDirectory(),
      home: temporaryDirectory(),
      words,
    });
    const [alone, ...machines] = [make(), make(...shared), make(...shared)];
    let turn = 0;
    let requests = 0;

    /** Returns the steps that ran, and the image. */
    async function build({ context, home, words }: ReturnType<typeof make>, options: readonly string[]) {
      rmSync(context, { recursive: true });
      cpSync(source, context, { recursive: true, preserveTimestamps: true });
      const all = [
        "--url",
        engine.url,
        "--token",
        "t",
        "-f",
        "json",
        "build",
        context,
        ...mode,
        ...words,
        ...options,
      ];
      const { stdout, stderr, exitCode } = await runBough(all, {
        workingDirectory: context,
        environment: { BOUGH_HOME: home },
        fetch: (input, init) => {
          requests += 1;
          return fetch(input, init);
        },
      });
      expect(exitCode, stderr).toBe(0);
      expect(stderr).not.toContain("[WARN] cache");
      const runs = [...stderr.matchAll(/ spawned op=\S+ (.*)$/gm)].map(([, title]) => title);
      // Stages run at once, so the order of their steps is by chance.
      return { runs: runs.toSorted(), image: JSON.parse(stdout).image as string };
    }

    const edits: [string, () => void, string[]][] = [
      ["nothing", () => {}, []],
      ["a file's content", () => writeFileSync(join(source, "app/a.txt"), `${mode}`), []],
      ["a file's mode", () => chmodSync(join(source, "app/b"), mode.length === 0 ? 0o700 : 0o600), []],
      ["an ENV", () => edit("fast", "slow"), []],
      ["a RUN of the other stage", () => edit("echo tool", "echo other"), []],
      ["the same content from another RUN of it", () => edit("echo tool >", "echo  tool >"), []],
      ["a build-arg", () => edit("", ""), ["--build-arg", "LEVEL=2"]],
      ["back to the beginning", () => {}, []],
    ];
    for (const [what, change, options] of mode.length === 0 ? edits.slice(0, 3) : edits) {
      change();
      const wanted = await build(alone, options);
      const [first, second] = [machines[turn++ % 2], machines[turn % 2]];
      if (first === undefined || second === undefined) throw new Error("no second machine");
      const made = await build(first, options);
      expect([what, made.runs]).toEqual([what, wanted.runs]);
      requests = 0;
      const found = await build(second, options);
      // Requests for the scope (3, one of them to write it), the base image, the engine's capabilities and the result.
      expect(requests).toBeLessThanOrEqual(6 + 2 * mode.length);
      expect([what, found.runs, found.image]).toEqual([what, [], made.image]);
    }
    const words = ["--url", engine.url, "--token", "t", "-f", "json", "cache", "show", scope];
    const shown = await runBough(words, {
      workingDirectory: source,
      environment: { BOUGH_HOME: temporaryDirectory() },
    });
    const layers: { title: string; bytes: number | null; seconds: number | null }[] = JSON.parse(
      shown.stdout,
    );
    const steps = layers.filter(({ title }) => title.startsWith("RUN "));
    expect(steps.length).toBeGreaterThan(2);
    expect(steps.filter(({ bytes, seconds }) => bytes === null || seconds === null)).toEqual([]);
  },
  180_000,
);

test("through a service, a registry carries a cache, and a directory does not, with a warning", async () => {
  await using stack = new AsyncDisposableStack();
  const registry = stack.adopt(await Registry.start(), (started) => started.stop());
  const directory = join(temporaryDirectory(), "cache");
  const ref = `type=registry,ref=${registry.host}/served:main`;
  const build = async (home: string, ...words: string[]) => {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: "FROM busybox:1\nRUN echo carried > /one\nRUN cat /one > /two\n" });
    const { stderr, exitCode } = await runBough(
      ["--url", engine.url, "--token", "t", "build", context, ...words],
      {
        workingDirectory: context,
        environment: { BOUGH_HOME: home },
      },
    );
    expect(exitCode, stderr).toBe(0);
    return { stderr, runs: stderr.match(/ spawned op=\S+ RUN /g)?.length ?? 0 };
  };
  const [one, other] = [temporaryDirectory(), temporaryDirectory()];
  const made = await build(
    one,
    `--cache-to=type=local,dest=${directory},mode=max`,
    `--cache-to=${ref},mode=max`,
  );
  expect(made.stderr).toContain(
    `[WARN] cache: ${directory} is not used: ${engine.url.slice(0, -1)} cannot read`,
  );
  expect(made.stderr).toContain(`cache: ${registry.host}/served:main has 2 layers, 2 new`);
  expect(existsSync(directory)).toBe(false);
  const local = await build(other, `--cache-from=type=local,src=${directory}`);
  expect([local.runs, local.stderr]).toEqual([
    2,
    expect.stringContaining(`[WARN] cache: ${directory} is not used`),
  ]);
  const found = await build(temporaryDirectory(), `--cache-from=${ref}`);
  expect([found.runs, found.stderr]).toEqual([0, expect.not.stringContaining("[WARN]")]);
}, 180_000);

test("targets of a bake write one scope once, with all that they have made", async () => {
  const scope = `bake-${crypto.randomUUID()}`;
  const directory = temporaryDirectory();
  const names = Array.from({ length: 6 }, (_, at) => `t${at}`);
  const target = Object.fromEntries(names.map((name) => [name, { context: name }]));
  writeFiles(directory, {
    "bake.json": JSON.stringify({ group: { default: { targets: names } }, target }),
    ...Object.fromEntries(
      names.map((name) => [
        `${name}/Dockerfile`,
        `FROM busybox:1\nRUN echo ${scope}\nRUN echo ${name} > /name\n`,
      ]),
    ),
  });
  const bake = async () => {
    const { stderr, exitCode } = await runBough(
      ["--url", engine.url, "--token", "t", "bake", "-f", "bake.json"],
      {
        workingDirectory: directory,
        environment: { BOUGH_HOME: temporaryDirectory(), BOUGH_CACHE_FROM: scope, BOUGH_CACHE_TO: scope },
      },
    );
    expect(exitCode, stderr).toBe(0);
    return {
      runs: stderr.match(/ spawned op=\S+ RUN /g)?.length ?? 0,
      written: stderr.match(/cache: scope \S+ has .*/g) ?? [],
    };
  };
  expect(await bake()).toEqual({ runs: 7, written: [`cache: scope ${scope} has 7 layers, 7 new`] });
  expect(await bake()).toEqual({ runs: 0, written: [] });
}, 180_000);
