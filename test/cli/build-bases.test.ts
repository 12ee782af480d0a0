/** Which image a FROM starts from, and when it is imported: once, or again with `--pull`. A fake service counts the imports. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const digest = `sha256:${"5".repeat(64)}`;
const notInRegistry = "registry.example/mine:1";

let context: string;
let state: string;
let service: FakeService;
beforeEach(() => start());
afterEach(() => service.close());

async function start(options: FakeServiceOptions = {}): Promise<void> {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService({
    ...options,
    importError: (url) => (url.includes("/mine:1") ? "manifest unknown" : undefined),
  });
}

async function build(dockerfile: string, ...options: string[]) {
  const imports = countImports();
  writeFiles(context, { Dockerfile: dockerfile });
  const ended = await boughOn(service, ["build", ".", "--format", "json", ...options], { context, state });
  return { ...ended, imports: countImports() - imports };
}

const countImports = () => service.requestsTo("POST /v1/images/import").length;

/** The image that a tag names on the service. */
const imageOf = (tag: string) => [...service.state.images.values()].find((image) => image.tag === tag)?.uuid;

describe("a base is imported once, and its layers are reused", () => {
  const references = [
    "alpine:3.20",
    `alpine@${digest}`,
    `alpine:3.20@${digest}`,
    "docker://registry.example/app:1",
    "registry.example/app:RELEASE.1",
  ];
  const services: [string, FakeServiceOptions][] = [
    ["a service", {}],
    ["a service with only the specification's calls", { sixCallsOnly: true }],
  ];
  test.each(services.flatMap(([name, options]) => references.map((each) => [name, each, options] as const)))(
    "on %s: %s",
    async (_, reference, options) => {
      await service.close();
      await start(options);
      const first = await build(`FROM ${reference}\nRUN one\n`);
      expect(first).toMatchObject({ exitCode: 0, imports: 1, runs: ["one"] });
      const second = await build(`FROM ${reference}\nRUN one\nRUN two\n`);
      expect(second).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
    },
  );

  test("an image named by digest is imported again if it is lost and needed, and its layers are reused", async () => {
    await build(`FROM alpine@${digest}\nRUN one\n`);
    const [lost = ""] = service.state.images.keys();
    service.state.images.delete(lost);
    const second = await build(`FROM alpine@${digest}\nRUN one\nRUN two\n`);
    expect(second).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
    const third = await build(`FROM alpine@${digest}\nRUN three\n`);
    expect(third).toMatchObject({ exitCode: 0, imports: 1, runs: ["three"] });
    expect(await build(`FROM alpine@${digest}\nRUN one\n`)).toMatchObject({ imports: 0, runs: [] });
  });
});

test("a tag is looked up once for all stages", async () => {
  service.state.addImage("alpine:3.20");
  const dockerfile = "FROM alpine:3.20\nRUN one\nFROM alpine:3.20\nRUN two\nFROM alpine:3.20\nRUN three\n";
  await build(dockerfile);
  expect(service.requests.filter(({ query }) => query.tag === "alpine:3.20")).toHaveLength(1);
});

describe("an image has one name in Docker, written in full or short:", () => {
  /** Sorted: both names are asked for at once. */
  const asked = () => service.requests.flatMap(({ query }) => query.tag ?? []).sort();

  test.each([
    ["docker.io/library/app:1", "app:1"],
    ["index.docker.io/app:1", "app:1"],
    ["library/app:1", "app:1"],
    ["app:1", "docker.io/library/app:1"],
    ["app", "docker.io/library/app:latest"],
    ["docker.io/team/app", "team/app:latest"],
  ])("FROM %s starts from the tag %s", async (reference, tag) => {
    const image = service.state.addImage(tag);
    const built = await build(`FROM ${reference}\nRUN one\n`);
    expect(built).toMatchObject({ exitCode: 0, imports: 0, runs: ["one"] });
    expect(built.stderr).toContain(`FROM ${reference} is image ${image}`);
    expect(asked()).toEqual([reference, tag].sort());
  });

  test("the name as it is written comes first", async () => {
    service.state.addImage("app:1");
    const image = service.state.addImage("docker.io/library/app:1");
    const { stderr } = await build("FROM docker.io/library/app:1\nRUN one\n");
    expect(stderr).toContain(`FROM docker.io/library/app:1 is image ${image}`);
  });

  test("an image that is missing under both is imported under the name as it is written", async () => {
    expect(await build("FROM docker.io/app:1\n")).toMatchObject({ exitCode: 0, imports: 1 });
    expect(imageOf("docker.io/app:1")).toBeDefined();
    expect(asked()).toEqual(["app:1", "docker.io/app:1"]);
  });

  test("--pull imports it, and tag:NAME and another registry's name mean no other tag", async () => {
    service.state.addImage("app:1");
    const pulled = await build("FROM docker.io/library/app:1\n", "--pull");
    expect(pulled).toMatchObject({ exitCode: 0, imports: 1 });
    expect(await build("FROM registry.example/app:1\n")).toMatchObject({ exitCode: 0, imports: 1 });
    expect(await build("FROM tag:library/app:1\n")).toMatchObject({ exitCode: 1, imports: 0 });
  });

  test("on a service that cannot look up tags, what was imported by one name is found by the others", async () => {
    await service.close();
    await start({ sixCallsOnly: true });
    await build("FROM app:1\nRUN one\n");
    const second = await build("FROM docker.io/library/app:1\nRUN one\nRUN two\n");
    expect(second).toMatchObject({ exitCode: 0, imports: 0, runs: ["two"] });
  });
});

describe("an image that something is copied from, and that a service which lists tagged images alone has lost", () => {
  test.each([
    [`COPY --from=tool@${digest} /etc/issue /x\nRUN `],
    [`RUN --mount=from=tool@${digest},source=/etc/issue,target=/x `],
  ])("is imported again: %s", async (instruction) => {
    service.state.addImage("alpine:3.20");
    service.state.tree.set("/etc", { type: "directory" }).set("/etc/issue", { type: "file", content: "a" });
    service.intercept = (_, { path, query }) => {
      const [, inspected] = /^\/v1\/inspect\/([^/]+)/.exec(path) ?? [];
      if (inspected !== undefined && !service.state.images.has(inspected))
        return Response.json({ error: "not found" }, { status: 404 });
      if (path !== "/v1/images") return undefined;
      const images = service.state
        .imageRecords()
        .filter(({ uuid, tag }) => tag?.startsWith(query.tag ?? "") && (query.uuid ?? uuid) === uuid);
      return Response.json({ images });
    };
    await build(`FROM alpine:3.20\n${instruction}one\n`, "--docker");
    const untagged = [...service.state.images.values()].filter(({ tag }) => tag === null);
    for (const { uuid } of untagged) service.state.forgetImage(uuid);
    service.state.files.clear();
    const second = await build(`FROM alpine:3.20\n${instruction}two\n`, "--docker");
    expect(second).toMatchObject({ exitCode: 0, imports: 1 });
    expect(second.runs).toHaveLength(1);
  });
});

describe("--pull", () => {
  test("imports a tag again, once for all stages, and moves it", async () => {
    await build("FROM alpine:3.20\nRUN one\n");
    const before = imageOf("alpine:3.20");
    const dockerfile = "FROM alpine:3.20\nRUN one\nFROM alpine:3.20\nRUN two\n";
    const pulled = await build(dockerfile, "--pull");
    expect(pulled).toMatchObject({ exitCode: 0, imports: 1 });
    expect(pulled.stderr).not.toContain("WARN");
    expect(imageOf("alpine:3.20")).not.toBe(before);
    expect(pulled.stderr).toContain(`FROM alpine:3.20 is image ${imageOf("alpine:3.20")}`);
    expect(await build(`${dockerfile}RUN three\n`)).toMatchObject({ imports: 0, runs: ["three"] });
  });

  test("imports nothing for references that cannot change", async () => {
    const uuid = service.state.addImage("base:1");
    await build(`FROM alpine@${digest}\n`);
    const dockerfile = `FROM alpine@${digest}\nFROM ${uuid}\nFROM tag:base:1\n`;
    expect(await build(dockerfile, "--pull")).toMatchObject({ exitCode: 0, imports: 0 });
  });

  test("moves the tag of an image that was not imported, and says how to move it back", async () => {
    const mine = service.state.addImage("alpine:3.20");
    const { stderr } = await build("FROM alpine:3.20\nRUN one\n", "--pull");
    expect(stderr).toContain(
      `[WARN] --pull: alpine:3.20 was image ${mine}; \`bough tag ${mine} alpine:3.20\` moves the tag back\n`,
    );
    expect(imageOf("alpine:3.20")).not.toBe(mine);
  });

  test("fails if the registry does not have the image, and names the stored one", async () => {
    const mine = service.state.addImage(notInRegistry);
    const { exitCode, stderr, runs } = await build(`FROM ${notInRegistry}\nRUN one\n`, "--pull");
    expect({ exitCode, runs }).toEqual({ exitCode: 1, runs: [] });
    const { error } = JSON.parse(stderr.slice(stderr.lastIndexOf('{"error"')));
    expect(error.message).toContain("manifest unknown");
    expect(error.hint).toEndWith(`Without --pull the build starts from image ${mine}.`);
    expect(imageOf(notInRegistry)).toBe(mine);
  });
});
