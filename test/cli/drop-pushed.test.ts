/** `--drop-pushed`: a home that keeps nothing that a registry has, and all that other targets need. */
import { afterAll, beforeAll, beforeEach, expect, test } from "bun:test";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

let registry: Registry;
beforeAll(async () => {
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
});
afterAll(() => registry.stop());

let directory: string;
let home: string;
let place: string;
let count = 0;
beforeEach(() => {
  directory = temporaryDirectory();
  home = temporaryDirectory();
  place = `${registry.host}/test${++count}`;
});

async function bough(...words: string[]) {
  const ended = await runBough(["--local", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: home },
  });
  const runs = [...ended.stderr.matchAll(/RUN spawned op=\S+ RUN (.*)/g)].map(([, title = ""]) => title);
  return { ...ended, runs: runs.sort() };
}

/** Returns the images and layers that are left. */
async function left(): Promise<{ tags: string[]; layers: number }> {
  const listed = JSON.parse((await bough("images", "--format", "json")).stdout);
  const usage = JSON.parse((await bough("engine", "df", "--format", "json")).stdout);
  return { tags: listed.flatMap(({ tag }: { tag: string | null }) => tag ?? []), layers: usage.layers.count };
}

const envs = (names: readonly string[], command = (name: string) => `echo ${name} > /own`) =>
  Object.fromEntries(
    names.map((name) => [
      name,
      {
        "dockerfile-inline": `FROM ${registry.host}/base:1\nRUN echo shared > /shared\nRUN ${command(name)}\n`,
        tags: [`${place}/${name}:1`],
      },
    ]),
  );

function writeBake(target: Record<string, object>): void {
  writeFiles(directory, { "docker-bake.json": JSON.stringify({ target }) });
}

test("leaves the bases only, and runs steps that targets share once", async () => {
  const names = ["a", "b", "c", "d"];
  const plain = {
    "dockerfile-inline": `FROM ${registry.host}/base:1\nRUN true\n`,
    tags: [`${place}/plain:1`],
  };
  writeBake({ ...envs(names), plain });
  const before = await bough("images", "import", `docker://${registry.host}/base:1`);
  expect(before.exitCode).toBe(0);
  const base = await left();
  const results = ["--results", "results.jsonl"];
  const eachPrints = async () => {
    const ran = await bough("run", "--each", "results.jsonl", "--", "cat", "/own");
    return ran.stdout
      .split("\n")
      .flatMap((line) => (line === "" ? [] : [JSON.parse(line).stdout]))
      .sort();
  };
  const first = await bough("bake", ...names, "--push", "--drop-pushed", ...results);
  expect(first).toMatchObject({
    exitCode: 0,
    runs: [...names.map((name) => `echo ${name} > /own`), "echo shared > /shared"],
  });
  const printed = first.stdout.split("\n").slice(1, -1);
  expect(printed.map((line) => line.split(/\s+/).slice(0, 3))).toEqual(
    names.map((name) => [name, "-", `${place}/${name}:1`]),
  );
  // A RUN that changes nothing has the image of the base.
  expect((await bough("bake", "plain", "--push", "--drop-pushed")).exitCode).toBe(0);
  expect((await left()).layers).toBe(base.layers);
  expect((await left()).tags.filter((tag) => tag.startsWith(place))).toEqual([]);
  // The lines name what is in the registry, and nothing that is removed.
  expect(await eachPrints()).toEqual(names.map((name) => `${name}\n`));
  for (const name of names) {
    const run = await bough("run", `${place}/${name}:1`, "cat", "/shared", "/own");
    expect(run).toMatchObject({ exitCode: 0, stdout: `shared\n${name}\n` });
  }
  // What is gone is made again, unless the registry is asked.
  expect((await bough("bake", ...names, "--push", "--drop-pushed")).runs).toEqual(first.runs);
  expect((await bough("bake", ...names, "--push", "--skip-existing", "--drop-pushed")).exitCode).toBe(0);
  const skipping = ["--push", "--skip-existing", "--drop-pushed", ...results];
  expect((await bough("bake", ...names, ...skipping)).runs).toEqual([]);
  expect(await eachPrints()).toEqual(names.map((name) => `${name}\n`));
});

test("keeps a base without a tag that a target only copies to another repository", async () => {
  const imported = await bough("images", "import", `docker://${registry.host}/base:1`, "--format", "json");
  const { image } = JSON.parse(imported.stdout);
  await bough("untag", `${registry.host}/base:1`);
  const dockerfile = (instruction: string) => ({ "dockerfile-inline": `FROM ${image}\n${instruction}\n` });
  writeBake({
    mirror: { ...dockerfile(""), tags: [`${place}/mirror:1`] },
    plain: { ...dockerfile("RUN true"), tags: [`${place}/plain:1`] },
    made: { ...dockerfile("RUN echo made > /made"), tags: [`${place}/made:1`] },
  });
  const before = await left();
  const baked = await bough("bake", "mirror", "plain", "made", "--push", "--drop-pushed");
  expect(baked.exitCode, baked.stderr).toBe(0);
  expect(await left()).toEqual(before);
  expect((await bough("run", image, "true")).exitCode).toBe(0);
});

test("keeps what a target that failed was made of, for the next bake", async () => {
  writeBake(envs(["a", "b"], (name) => (name === "b" ? "exit 3" : `echo ${name}`)));
  const failed = await bough("bake", "a", "b", "--push", "--drop-pushed", "--keep-going");
  expect(failed).toMatchObject({ exitCode: 1, runs: ["echo a", "echo shared > /shared", "exit 3"] });
  expect((await left()).tags.filter((tag) => tag.startsWith(place))).toEqual([]);
  writeBake(envs(["b"]));
  expect((await bough("bake", "b", "--push", "--drop-pushed")).runs).toEqual(["echo b > /own"]);
});

test("keeps what others are made of until they are built, and what is not only pushed", async () => {
  writeBake({
    lower: envs(["lower"]).lower ?? {},
    hidden: { "dockerfile-inline": `FROM ${registry.host}/base:1\nRUN echo hidden > /hidden\n` },
    upper: {
      contexts: { low: "target:lower", hid: "target:hidden" },
      "dockerfile-inline": "FROM low\nCOPY --from=hid /hidden /\nRUN cat /shared /own /hidden > /all\n",
      tags: [`${place}/upper:1`],
    },
    stays: { ...envs(["stays"]).stays, output: ["type=registry", "type=oci,dest=stays.tar"] },
  });
  const names = ["lower", "upper", "stays"];
  const { exitCode, stderr, runs } = await bough("bake", ...names, "--push", "--drop-pushed");
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(runs.filter((title) => title.includes("shared >"))).toHaveLength(1);
  expect((await left()).tags.filter((tag) => tag.startsWith(place))).toEqual([`${place}/stays:1`]);
  const run = await bough("run", `${place}/upper:1`, "cat", "/all");
  expect(run).toMatchObject({ exitCode: 0, stdout: "shared\nlower\nhidden\n" });
});

test("--jobs bounds how many targets are there at a time", async () => {
  const names = ["a", "b", "c", "d", "e", "f"];
  writeBake(envs(names));
  const { exitCode, stderr } = await bough("bake", ...names, "--push", "--drop-pushed", "--jobs", "1");
  expect(exitCode).toBe(0);
  const events = stderr.split("\n").flatMap((line) => {
    if (/RUN spawned op=\S+ RUN echo \w > /.test(line)) return "run";
    return line.includes(" exported to ") ? "pushed" : [];
  });
  const count = (kind: string, end: number) => events.slice(0, end).filter((each) => each === kind).length;
  expect(count("pushed", events.length)).toBe(names.length);
  for (const end of events.keys())
    expect(count("run", end + 1) - count("pushed", end + 1)).toBeLessThanOrEqual(2);
});

test("keeps images and layers that another command has tagged, or a session works on", async () => {
  writeBake(envs(["a", "b"]));
  writeFiles(directory, { Dockerfile: `FROM ${registry.host}/base:1\nRUN echo shared > /shared\n` });
  const other = ["--set", "a.tags=mine:a", "--set", "b.tags=mine:b", "--results", "-"];
  const lines = (await bough("bake", "a", "b", ...other)).stdout.trim().split("\n");
  const image = lines.map((line) => JSON.parse(line)).find(({ target }) => target === "b").image;
  expect((await bough("-S", "work", "use", image)).exitCode).toBe(0);
  expect((await bough("untag", "mine:b")).exitCode).toBe(0);
  expect((await bough("build", "--tag", "mine:shared")).exitCode).toBe(0);
  const pushed = await bough("bake", "a", "b", "--push", "--drop-pushed");
  expect({ ...pushed, runs: [] }).toMatchObject({ exitCode: 0 });
  expect((await left()).tags.toSorted()).toEqual([`${registry.host}/base:1`, "mine:a", "mine:shared"]);
  for (const [words, stdout] of [
    [["run", "mine:a", "cat", "/own"], "a\n"],
    [["run", "mine:shared", "cat", "/shared"], "shared\n"],
    [["-S", "work", "run", "-D", "--", "cat", "/own"], "b\n"],
  ] as const)
    expect(await bough(...words)).toMatchObject({ exitCode: 0, stdout });
});

test("wants images that are pushed", async () => {
  writeBake(envs(["a"]));
  const { exitCode, stderr } = await bough("bake", "a", "--drop-pushed");
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining("--drop-pushed: no target is pushed, or not only"),
  });
});
