/** `bough build --no-cache-filter` on the embedded engine: what runs again, and what is cached. */
import { beforeAll, expect, test } from "bun:test";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { openLocalBough } from "../support/local-bough.ts";

const bough = await openLocalBough();

function makeContext(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, file: "text" });
  return context;
}

const build = (context: string, ...options: string[]) =>
  bough(context, "build", ".", "--progress", "plain", ...options);

/** The commands that ran, in alphabetical order. Each of these Dockerfiles prints words that say which. */
const ran = (log: string) =>
  Array.from(log.matchAll(/^(?:\[\S+ \d+\/\d+\] )?ran (\S+)$/gm), ([, word]) => word).sort();

const stages = `FROM base:1 AS One
RUN echo ran one; cat /proc/sys/kernel/random/uuid > /when
RUN echo ran one-more
FROM base:1 AS two
RUN echo ran two; cat /proc/sys/kernel/random/uuid > /when
FROM one AS on-one
RUN echo ran on-one
FROM base:1 AS equal
RUN echo ran equal; echo same > /same
FROM base:1 AS unrelated
RUN echo ran unrelated
FROM base:1 AS mounting
RUN --mount=from=one,target=/m echo ran mounting
FROM base:1
COPY --from=unrelated /bin/sh /sh
COPY --from=equal /same /
RUN echo ran after-equal
COPY --from=two /when /
RUN echo ran after-two
COPY --from=on-one /bin/sh /sh
COPY --from=mounting /bin/sh /sh
RUN echo ran last
`;

/** Each row builds it again, and leaves everything in the cache. */
const context = makeContext(stages);
beforeAll(async () => {
  expect(ran((await build(context, "--docker")).stderr)).toHaveLength(10);
});

test.each<[string, string[], string[]]>([
  ["nothing without the option", [], []],
  [
    "a stage, in any case, what starts from it and what mounts it; an equal copy stays cached",
    ["--no-cache-filter", "ONE"],
    ["mounting", "on-one", "one", "one-more"],
  ],
  [
    "a stage with another result, and what follows a copy of it",
    ["--no-cache-filter", "two"],
    ["after-two", "last", "two"],
  ],
  ["a stage with an equal result", ["--no-cache-filter", "equal"], ["equal"]],
  [
    "several stages",
    ["--no-cache-filter", "equal,unrelated", "--no-cache-filter", "3"],
    ["equal", "unrelated"],
  ],
  ["the last stage, which has no name", ["--no-cache-filter", "6"], ["after-equal", "after-two", "last"]],
  ["a stage that the target does not need", ["--target", "two", "--no-cache-filter", "one"], []],
])("runs again: %s", async (_, options, expected) => {
  const { exitCode, stderr } = await build(context, ...options, "--docker");
  expect({ exitCode, ran: ran(stderr) }).toEqual({ exitCode: 0, ran: expected });
  expect(stderr).not.toContain("WARN");
  // What was made is in the cache.
  expect(ran((await build(context, "--docker")).stderr)).toEqual([]);
});

test("the image has the files of the stage that was built again", async () => {
  const context = makeContext(
    "FROM base:1 AS a\nRUN cat /proc/sys/kernel/random/uuid > /when\nFROM a\nCOPY file /\nRUN cat /when > /seen\n",
  );
  const read = async (image: string) => (await bough("/", "cat", `${image}:/seen`)).stdout;
  const images: string[] = [];
  for (const options of [[], ["--no-cache-filter", "a"], []])
    images.push((await build(context, "--docker", "-q", ...options)).stdout.trim());
  const [first, second, third] = images;
  expect(third).toBe(second as string);
  expect(await read(second as string)).not.toBe(await read(first as string));
});

test("ONBUILD triggers of a stage that is built again run again", async () => {
  const context = makeContext("FROM base:1 AS a\nRUN echo ran a\nONBUILD RUN echo ran trigger\nFROM a\n");
  expect(ran((await build(context, "--docker")).stderr)).toEqual(["a", "trigger"]);
  expect(ran((await build(context, "--no-cache-filter", "a")).stderr)).toEqual(["a", "trigger"]);
});

test("--explain says why the steps run again", async () => {
  const { stderr } = await build(context, "--docker", "--no-cache-filter", "one", "--explain");
  expect(stderr.match(/--no-cache-filter names its stage, or a stage that it uses/g)).toHaveLength(4);
});

test("a name that no stage has is a warning", async () => {
  const { exitCode, stderr } = await build(
    makeContext("FROM base:1 AS one\nRUN true"),
    "--no-cache-filter",
    "on",
  );
  expect(exitCode).toBe(0);
  expect(stderr).toContain(
    "[WARN] --no-cache-filter on has no effect: Dockerfile has no such stage (did you mean one?)",
  );
});

test.each<[string, string[], string]>([
  ["--no-cache", ["one", "--no-cache"], "--no-cache and --no-cache-filter cannot be used together"],
  ["--no-docker", ["one", "--no-docker"], "--no-cache-filter and --no-docker cannot be used together"],
  ["no name", ["one,"], "--no-cache-filter takes the names of stages, separated by commas: one is empty"],
])("refused: %s", async (_, options, message) => {
  const { exitCode, stderr } = await build(
    makeContext("FROM base:1 AS one"),
    "--no-cache-filter",
    ...options,
  );
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
});
