/** Two homes that share a cache in a registry have the misses of a single home, edit after edit, and fetch what they need. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import { Registry } from "../../support/registry.ts";
import { buildIn, type Home, newHome } from "./homes.ts";

const dockerfile = (base: string) => `FROM ${base} AS tools
RUN echo tool > /tool
FROM ${base}
ARG LEVEL=1
COPY --chown=nobody app /app
RUN echo $LEVEL; cat /app/a.txt > /copied
COPY --from=tools /tool /bin/tool
ENV MODE=fast
USER 1000
WORKDIR /tmp/work
RUN date > now
`;

let registry: Registry;
let source: string;
let text: string;
beforeAll(async () => {
  registry = await Registry.start();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  registry.push(layout, "base:1");
  text = dockerfile(`${registry.host}/base:1`);
  source = temporaryDirectory();
  writeFiles(source, { Dockerfile: text, "app/a.txt": "a", "app/b": { text: "b", mode: 0o755 } });
});
afterAll(() => registry.stop());

const cacheOf = (name: string, fields = "") => {
  const ref = `type=registry,ref=${registry.host}/${name}`;
  return ["--docker", `--cache-from=${ref}`, `--cache-to=${ref}${fields}`];
};
const edit = (from: string, to: string) => writeFileSync(join(source, "Dockerfile"), text.replace(from, to));
const writesIn = (requests: readonly string[]) => requests.filter((request) => !/^(GET|HEAD) /.test(request));
/** Bytes that are not needed to find a cached build: layers have more. */
const smallBytes = 64 * 1024;

test("two homes have the misses of a single home", async () => {
  const shared = cacheOf("cache:main", ",mode=max");
  const alone = newHome();
  const machines: [Home, Home] = [newHome(), newHome()];
  const edits: [string, () => void][] = [
    ["nothing", () => {}],
    ["a file's content", () => writeFileSync(join(source, "app/a.txt"), "another")],
    ["a RUN of the other stage", () => edit("echo tool", "echo other")],
    ["the same content from another RUN of it", () => edit("echo tool >", "echo  tool >")],
    ["back to the beginning", () => edit("", "")],
  ];
  let turn = 0;
  for (const [what, change] of edits) {
    change();
    const wanted = await buildIn(alone, source, ["--docker"]);
    expect(wanted.exitCode, wanted.stderr).toBe(0);
    const [first, second] = [machines[turn++ % 2] ?? alone, machines[turn % 2] ?? alone];
    const made = await buildIn(first, source, shared);
    expect([what, made.exitCode, made.runs], made.stderr).toEqual([what, 0, wanted.runs]);
    const found = await buildIn(second, source, shared);
    expect([what, found.exitCode, found.runs], found.stderr).toEqual([what, 0, []]);
    expect(`${made.stderr}${found.stderr}`).not.toContain("[WARN] cache");
    expect(found.receivedBytes).toBeLessThan(smallBytes);
    // Nothing has changed, so nothing is written.
    expect(writesIn(found.requests), found.stderr).toEqual([]);
    expect(found.requests.length).toBeLessThanOrEqual(8);
  }
}, 120_000);

test.each(["max", "min"])(
  "an unchanged build of the home that wrote a cache in mode=%s writes nothing",
  async (mode) => {
    const shared = cacheOf(`cache:again-${mode}`, `,mode=${mode}`);
    const home = newHome();
    await buildIn(home, source, shared);
    const again = await buildIn(home, source, shared);
    expect([again.exitCode, again.runs, writesIn(again.requests)], again.stderr).toEqual([0, [], []]);
    expect(again.requests.length).toBeLessThanOrEqual(5);
  },
  180_000,
);

test("a cached image is fetched when it is run", async () => {
  const shared = cacheOf("cache:run", ",mode=max");
  await buildIn(newHome(), source, shared);
  const cold = newHome();
  const found = await buildIn(cold, source, shared);
  expect(found.runs, found.stderr).toEqual([]);
  const words = ["--local", "run", found.image ?? "", "--", "cat", "/bin/tool", "/copied"];
  const ran = await runBough(words, {
    workingDirectory: cold.context,
    environment: { BOUGH_HOME: cold.home },
  });
  expect(ran.stdout, ran.stderr).toContain("tool\n");
}, 180_000);

test("mode=min has all steps, and the layers of the result", async () => {
  const shared = cacheOf("cache:min");
  await buildIn(newHome(), source, shared);
  const cold = newHome();
  const found = await buildIn(cold, source, shared);
  expect(found.runs, found.stderr).toEqual([]);
  edit("date > now", "date  > now");
  const last = await buildIn(cold, source, shared);
  expect(last.runs, last.stderr).toEqual(["RUN date  > now"]);
  // The layer of the other stage was not sent: it is made again.
  writeFileSync(
    join(source, "Dockerfile"),
    text.replace("echo tool > /tool", "echo tool > /tool\nRUN ls /tool > /list"),
  );
  const other = await buildIn(cold, source, shared);
  expect(other.exitCode, other.stderr).toBe(0);
  expect(other.runs).toContain("RUN echo tool > /tool");
  edit("", "");
}, 180_000);

test("an image that is pushed beside its cache takes the layers from there, and the other way round", async () => {
  const blobsSentTo = (name: string, requests: readonly string[]) =>
    requests.filter((request) => request.startsWith(`PUT /v2/${name}/blobs/`)).length;
  const push = ["--tag", `${registry.host}/pushed:1`, "--push"];
  const home = newHome();
  const built = await buildIn(home, source, [...cacheOf("cache-beside:1", ",mode=max"), ...push]);
  expect(built.exitCode, built.stderr).toBe(0);
  // The configuration.
  expect(blobsSentTo("pushed", built.requests), built.stderr).toBe(1);
  const again = await buildIn(home, source, [
    "--docker",
    `--cache-to=type=registry,ref=${registry.host}/later`,
  ]);
  expect(again.stderr).toContain("/later:latest has ");
  // The configuration of the cache, its index, and the inputs of its steps.
  expect(blobsSentTo("later", again.requests), again.stderr).toBeLessThanOrEqual(3);
}, 180_000);

test.each([["with", ["--docker"]] as const, ["without", []] as const])(
  "a directory carries a cache, %s --docker",
  async (_, dialect) => {
    const directory = temporaryDirectory();
    const to = [...dialect, `--cache-to=type=local,dest=${directory},mode=max`];
    const from = [...to, `--cache-from=type=local,src=${directory}`];
    const writer = newHome();
    const made = await buildIn(writer, source, to);
    expect(made.stderr).toContain(`cache: ${directory} has `);
    for (const [home, words] of [[writer, to] as const, [newHome(), from] as const]) {
      const found = await buildIn(home, source, words);
      expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
    }
  },
  180_000,
);

test("what writers overwrite of each other's is added by their next build", async () => {
  const shared = cacheOf("cache:writers", ",mode=max");
  const homes = [newHome(), newHome(), newHome()];
  const build = (home: Home, at: number) => {
    const words = ["--build-arg", `LEVEL=${at}`, ...shared];
    return buildIn(home, source, words);
  };
  await Promise.all(homes.map(build));
  // A registry can't set a tag on a condition, so that a slow writer may win over one that has looked again already.
  for (const [at, home] of homes.entries()) expect((await build(home, at)).runs).toEqual([]);
  const cold = newHome();
  for (const at of homes.keys()) {
    const found = await build(cold, at);
    expect([found.exitCode, found.runs], found.stderr).toEqual([0, []]);
  }
}, 120_000);
