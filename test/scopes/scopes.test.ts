/** Layers that one machine has built are hits on another: the requests, the messages, and what can go wrong. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { createLayerCache } from "../../src/builder/cache/layer-cache.ts";
import { createStepMemory } from "../../src/builder/cache/step-memory.ts";
import { openScopes } from "../../src/builder/scopes/open-scopes.ts";
import { createSharedCaches } from "../../src/builder/scopes/shared-caches.ts";
import { systemClock } from "../../src/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { version } from "../../src/version.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { tarOf } from "../support/tar-bytes.ts";
import { bough, buildOn, type Machine, newMachine } from "./machines.ts";

const files = {
  Dockerfile: "FROM base:1\nRUN first\nCOPY app /app\nRUN second\n",
  "app/a.txt": "a",
  "app/b.txt": "b",
};
const both = ["first", "second"];

let service: FakeService;
let one: Machine;
let other: Machine;
beforeEach(async () => {
  service = await startFakeService();
  service.state.addImage("base:1");
  [one, other] = [newMachine(files), newMachine(files)];
});
afterEach(() => service.close());

const build = (machine: Machine, ...words: string[]) => buildOn(machine, service, words);

/** Returns the same without waiting for images that the service may not know yet. Each build begins after the one before. */
function createBuildsAtOnce() {
  const clock = createManualClock((milliseconds) => milliseconds < 5000);
  return async (machine: Machine, ...words: string[]) => {
    await clock.advance(1000);
    return buildOn(machine, service, words, { clock });
  };
}

describe("with an empty home", () => {
  test("all layers of a scope are hits: a build requests only the scope, the base image and the result", async () => {
    expect((await build(one, "--cache-to", "main")).runs).toEqual(both);
    const { stderr, runs, calls } = await build(other, "--cache-from", "main");
    expect(runs).toEqual([]);
    const index = service.state.tags.get("bough-cache/main:v1");
    expect(calls).toEqual([
      "GET /v1/images",
      `GET /v1/inspect/${index}/download`,
      "GET /v1/images",
      "GET /v1/images",
    ]);
    expect(stderr).toMatch(/^\[INFO\] cached layer:[0-9a-f]{12} RUN first \(main, \d+ s ago\)$/m);
  });

  test("a hit becomes a branch of this machine's session", async () => {
    await build(one, "--cache-to", "main");
    const { stdout } = await build(other, "--cache-from", "main");
    const session = /build:[0-9a-f]{16}/.exec(stdout)?.[0] ?? "";
    const shown = await bough(other, service, ["-S", session, "session", "show"]);
    expect(shown.stdout).toContain("RUN first");
    const { runs, stderr } = await build(other);
    expect(runs).toEqual([]);
    expect(stderr).not.toContain("ago)");
  });

  test("an index is fetched again only after it has changed", async () => {
    await build(one, "--cache-to", "main");
    await build(other, "--cache-from", "main");
    expect((await build(other, "--cache-from", "main")).calls).toEqual([
      "GET /v1/images",
      "GET /v1/images",
      "GET /v1/images",
    ]);
    writeFileSync(join(one.context, "app/a.txt"), "A");
    await build(one, "--cache-to", "main");
    writeFileSync(join(other.context, "app/a.txt"), "A");
    expect((await build(other, "--cache-from", "main")).runs).toEqual([]);
  });

  test("a build without the options reads and writes no scope", async () => {
    await build(one, "--cache-to", "main");
    const { runs, calls } = await build(other);
    expect(runs).toEqual(both);
    expect(calls.filter((call) => call.includes("/tag"))).toEqual([]);
    expect([...service.state.tags.keys()].filter((tag) => tag.includes("cache")).length).toBe(2);
  });

  test("a step that no scope has is run", async () => {
    await build(one, "--cache-to", "main");
    writeFileSync(join(other.context, "app/a.txt"), "A");
    const { runs, calls } = await build(other, "--cache-from", "main");
    expect(runs).toEqual(["second"]);
    expect(calls.filter((call) => call === "POST /v1/files")).toHaveLength(2);
  });
});

test("BOUGH_CACHE_FROM and BOUGH_CACHE_TO name scopes, and empty options override them", async () => {
  const environment = { BOUGH_CACHE_TO: "main", BOUGH_CACHE_FROM: "feature/x, main".replace(" ", "") };
  await buildOn(one, service, [], { environment });
  expect(service.state.tags.has("bough-cache/main:v1")).toBe(true);
  expect(
    (await buildOn(other, service, ["--cache-from", "", "--cache-to", ""], { environment })).runs,
  ).toEqual(both);
  const third = newMachine(files);
  const { runs, stderr } = await buildOn(third, service, [], { environment });
  expect(runs).toEqual([]);
  expect(stderr).toContain("[INFO] cache: scope feature/x is empty\n");
});

test("scopes are searched in their order", async () => {
  await build(one, "--cache-to", "main");
  await build(newMachine(files), "--cache-to", "feature");
  const { stderr } = await build(other, "--cache-from", "feature,main", "--cache-from", "main");
  expect(stderr.match(/\((main|feature), /g)).toEqual(["(feature, ", "(feature, "]);
});

test("a build writes only layers that the scope lacks, including earlier ones of this machine", async () => {
  await build(one);
  const written = await build(one, "--cache-to", "main");
  expect(written.stderr).toContain("[INFO] cache: scope main has 2 layers, 2 new\n");
  const again = await build(one, "--cache-from", "main", "--cache-to", "main");
  expect(again.calls.filter((call) => !call.startsWith("GET"))).toEqual([]);
  expect((await build(other, "--cache-from", "main", "--cache-to", "main")).runs).toEqual([]);
  expect(service.requests.filter(({ method }) => method !== "GET")).toEqual([]);
});

test("a failed build writes the layers that it has made", async () => {
  const failing = await startFakeService({
    run: ({ command }) => (command === "second" ? { exitCode: 1 } : undefined),
  });
  failing.state.addImage("base:1");
  for (const mode of [[], ["--docker"]]) {
    const [from, to] = [newMachine(files), newMachine(files)];
    expect((await buildOn(from, failing, [...mode, "--cache-to", "main"])).exitCode).toBe(1);
    const { stderr } = await buildOn(to, failing, [...mode, "--cache-from", "main"]);
    expect(stderr).toContain("RUN first (main, ");
  }
  await failing.close();
});

test("--no-cache takes no layer from a scope, and replaces the scope's layers", async () => {
  await build(one, "--cache-to", "main");
  expect((await build(other, "--cache-from", "main", "--cache-to", "main", "--no-cache")).runs).toEqual(both);
  const [first, second] = [await build(newMachine(files), "--cache-from", "main"), await build(other)];
  expect(imageIn(first.stdout)).toBe(imageIn(second.stdout));
});

test("a layer with an owner whose id the image has is found on another machine", async () => {
  service.state.tree.set("/etc/passwd", { type: "file", content: "app:x:7:8::/:/bin/sh\n" });
  service.state.tree.set("/etc/group", { type: "file", content: "app:x:8:\n" });
  const asked = { ...files, Dockerfile: "FROM base:1\nCOPY --chown=app app/a.txt /srv\nRUN first\n" };
  const [a, b] = [newMachine(asked), newMachine(asked)];
  await build(a, "--cache-to", "main");
  expect((await build(b, "--cache-from", "main")).runs).toEqual([]);
});

test("ADD of a URL finds the layer that another machine has put into the scope, as long as its content is the same", async () => {
  let version = 1;
  const source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response(`content ${version}`),
  });
  const added = { Dockerfile: `FROM base:1\nADD ${source.url.href}f /f\nRUN first\n` };
  await build(newMachine(added), "--cache-to", "main");
  expect((await build(newMachine(added), "--cache-from", "main")).runs).toEqual([]);
  version = 2;
  expect((await build(newMachine(added), "--cache-from", "main")).runs).toEqual(["first"]);
  await source.stop(true);
});

test("COPY --from reads no files again on a service without copies between images", async () => {
  service.state.tree.set("/out", { type: "directory" });
  service.state.tree.set("/out/tool", { type: "file", content: "tool" });
  const stages = {
    Dockerfile: "FROM base:1 AS build\nRUN first\nFROM base:1\nCOPY --from=build /out /in/\nRUN second\n",
  };
  const [a, b] = [newMachine(stages), newMachine(stages)];
  expect((await build(a, "--docker", "--cache-to", "main")).runs).toEqual(both);
  const { runs, calls } = await build(b, "--docker", "--cache-from", "main");
  expect(runs).toEqual([]);
  expect(calls.filter((call) => call.includes("/inspect/"))).toHaveLength(1);
});

test("an archive that ADD unpacks has the same directories on every machine", async () => {
  const archive = tarOf([{ name: "tmp/made/file", content: "x" }]);
  service.state.tree.set("/tmp", { type: "directory" });
  const [a, b] = [newMachine({ Dockerfile: "" }), newMachine({ Dockerfile: "" })];
  for (const { context } of [a, b]) {
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nADD a.tar /\nRUN first\n");
    writeFileSync(join(context, "a.tar"), archive);
  }
  expect((await build(a, "--docker", "--cache-to", "main")).runs).toEqual(["sh", "first"]);
  expect((await build(b, "--docker", "--cache-from", "main")).runs).toEqual([]);
});

describe("an image that the service has lost", () => {
  test("is a miss with a warning, and the next write drops it", async () => {
    const buildAtOnce = createBuildsAtOnce();
    await buildAtOnce(one, "--cache-to", "main");
    for (const image of imagesOf(both)) service.state.forgetImage(image);
    const again = await buildAtOnce(other, "--cache-from", "main", "--cache-to", "main");
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(both);
    expect(again.stderr).toMatch(/^\[WARN\] image \S+ of layer:\S+ is gone/m);
    const third = await buildAtOnce(newMachine(files), "--cache-from", "main");
    expect(third.runs).toEqual([]);
    expect(third.stderr).not.toContain("[WARN]");
  });

  test("is a miss on a service that does not list images without a tag, too", async () => {
    await build(one, "--cache-to", "main");
    service.intercept = (_, { method, path, query }) =>
      method === "GET" && path === "/v1/images" && query.tag === undefined
        ? Response.json({ images: [] })
        : undefined;
    for (const image of imagesOf(both)) service.state.forgetImage(image);
    const again = await createBuildsAtOnce()(other, "--cache-from", "main");
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(both);
  });
});

describe("a scope that can't be used is a warning, and all its layers are misses:", () => {
  const cases: [string, (index: string) => void, RegExp][] = [
    [
      "its index is damaged",
      (index) => change(index, (text) => text.replace("RUN first", "RUN fir5t")),
      /it is damaged/,
    ],
    ["its index is cut short", (index) => change(index, (text) => text.slice(0, -10)), /it is damaged/],
    ["its index is empty", (index) => change(index, () => ""), /it is not a bough cache index/],
    ["its index is another file", (index) => change(index, () => "hello\n"), /it is not a bough cache index/],
    [
      "a newer bough wrote it",
      (index) => change(index, (text) => text.replace("bough-cache 1", "bough-cache 2")),
      /a newer bough wrote it \(format 2\)/,
    ],
    [
      "its image has no index",
      (index) => service.state.trees.delete(index),
      /its image has no index, or no longer exists/,
    ],
    [
      "the service can't read files of an image",
      (index) => {
        service.intercept = (_, { path }) =>
          path.startsWith(`/v1/inspect/${index}`)
            ? Response.json({ error: "no" }, { status: 400 })
            : undefined;
      },
      /the service can't read files of an image/,
    ],
    [
      "the service has no list of images",
      () => {
        service.intercept = (_, { method, path, query }) =>
          method === "GET" && path === "/v1/images" && query.tag?.startsWith("bough-cache/") === true
            ? Response.json({ error: "no such route" }, { status: 404 })
            : undefined;
      },
      /does not support listing images/,
    ],
  ];
  test.each(cases)("%s", async (_, spoil, message) => {
    await build(one, "--cache-to", "main");
    spoil(service.state.tags.get("bough-cache/main:v1") ?? "");
    const { exitCode, runs, stderr } = await build(other, "--cache-from", "main", "--cache-to", "main");
    expect(exitCode).toBe(0);
    expect(runs).toEqual(both);
    expect(stderr).toMatch(message);
    expect(stderr).toMatch(/^\[WARN\] cache: /m);
  });

  test("the index of a newer bough is not replaced, a damaged one is", async () => {
    await build(one, "--cache-to", "main");
    const index = service.state.tags.get("bough-cache/main:v1") ?? "";
    change(index, (text) => text.replace("bough-cache 1", "bough-cache 2"));
    const refused = await build(other, "--cache-to", "main");
    expect(refused.stderr).toContain("nothing is written to scope main: a newer bough wrote it");
    expect(service.state.tags.get("bough-cache/main:v1")).toBe(index);
    change(index, () => "damaged");
    await build(other, "--cache-to", "main");
    expect((await build(newMachine(files), "--cache-from", "main")).runs).toEqual([]);
  });
});

describe("--explain compares with the scope, too", () => {
  const cases: [string, () => void, string][] = [
    [
      "other content",
      () => edit("app/a.txt", "A"),
      "in main this step had a different app/a.txt: sha256 ca978112ca1b, here 559aead08264",
    ],
    ["an additional file", () => edit("app/c.txt", "c"), "in main this step had no app/c.txt"],
    [
      "another ENV",
      () => edit("Dockerfile", files.Dockerfile.replace("RUN second", "ENV A=1\nRUN second")),
      'in main, ENV A is new: "1"',
    ],
    [
      "another text",
      () => edit("Dockerfile", files.Dockerfile.replace("RUN second", "RUN second --fast")),
      "in main, the instruction's text has changed; it was RUN second",
    ],
  ];
  const edit = (path: string, text: string) => writeFileSync(join(other.context, path), text);
  test.each(cases)("%s", async (_, change, message) => {
    await build(one, "--cache-to", "main");
    change();
    const { stderr } = await build(other, "--cache-from", "main", "--explain");
    expect(stderr).toContain(`first build of this context with this Dockerfile; ${message}\n`);
  });

  test("without values of secrets or their hashes", async () => {
    const secret = { Dockerfile: "FROM base:1\nARG API_TOKEN\nRUN use-it\n" };
    const value = "s3cret-value-of-it";
    const [a, b] = [newMachine(secret), newMachine(secret)];
    await build(a, "--cache-to", "main", "--build-arg", `API_TOKEN=${value}`);
    const texts = [...service.state.files.values()].map(({ content }) =>
      Buffer.from(content ?? "").toString(),
    );
    const hash = new Bun.CryptoHasher("sha256").update(value).digest("hex").slice(0, 12);
    for (const text of texts) expect(text).not.toMatch(new RegExp(`${value}|${hash}`));
    const { stderr } = await build(
      b,
      "--cache-from",
      "main",
      "--explain",
      "--build-arg",
      "API_TOKEN=other-secret",
    );
    expect(stderr).toContain("in main, the values of its variables have changed, or options");
  });
});

describe("bough cache", () => {
  const cache = (...words: string[]) => bough(other, service, ["cache", ...words]);

  test("lists the scopes, shows the layers of one, and removes it for all machines", async () => {
    await build(one, "--cache-to", "main");
    await build(one, "--cache-to", "feature/x");
    expect((await cache("list")).stdout.replace(/\d+ s ago/g, "AGE")).toBe(
      [
        "SCOPE      LAYERS  SIGNED  WRITTEN  BY",
        `feature/x  2       no      AGE  ${version}`,
        `main       2       no      AGE  ${version}`,
        "",
      ].join("\n"),
    );
    const shown = (await cache("show", "main")).stdout.replace(/\d+ s ago/g, "AGE");
    expect(shown).toMatch(
      /^IMAGE +MADE +USED +TOOK +STEP\n(?:\S+ +AGE +AGE +0\.01 s +RUN (?:first|second)\n){2}$/,
    );
    expect((await cache("remove", "main")).stdout).toBe("REMOVED\nmain\n");
    expect((await cache("list", "-q")).stdout).toBe("feature/x\n");
    expect((await build(other, "--cache-from", "main")).runs).toEqual(both);
  });

  test("suggests a scope for a misspelt name", async () => {
    await build(one, "--cache-to", "main");
    for (const command of ["show", "remove"]) {
      const { exitCode, stderr } = await cache(command, "mian");
      expect({ exitCode, stderr }).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("there is no scope mian\nDid you mean main?"),
      });
    }
    expect((await cache("show", "Main")).exitCode).toBe(2);
  });

  test("lists indexes, which `bough images` leaves out", async () => {
    await build(one, "--cache-to", "main", "--tag", "app");
    const images = (...words: string[]) => bough(one, service, ["images", ...words]);
    expect((await images()).stdout).not.toContain("bough-cache");
    expect((await images()).stdout).toContain("app:latest");
    for (const words of [["--all"], ["--tag", "bough-cache/"]])
      expect((await images(...words)).stdout).toContain("bough-cache/main:v1");
  });

  test("escapes control sequences in the texts of a scope", async () => {
    await build(one, "--cache-to", "main");
    change(service.state.tags.get("bough-cache/main:v1") ?? "", (text) => {
      const [format, header = "", signature, body = ""] = text.split("\n");
      const forged = body.replaceAll("RUN first", "RUN \\u001b[2Jfirst\\n[INFO] forged");
      const digest = new Bun.CryptoHasher("sha256").update(forged).digest("hex");
      const own = { ...JSON.parse(header), body: digest, by: "\u001b[2J" };
      return [format, JSON.stringify(own), signature, forged].join("\n");
    });
    expect((await build(other, "--cache-from", "main")).runs).toEqual([]);
    const session = /build:[0-9a-f]{16}/.exec((await bough(other, service, ["session", "list"])).stdout)?.[0];
    for (const words of [
      ["cache", "list"],
      ["cache", "show", "main"],
      ["session", "show", session ?? ""],
    ]) {
      const { stdout, stderr, exitCode } = await bough(other, service, words);
      expect(exitCode).toBe(0);
      expect(stdout + stderr).not.toContain("\u001b");
      expect(stdout).not.toMatch(/^\[INFO\] forged/m);
    }
  });
});

test("the event of a cached step names the scope and the layer's age", async () => {
  await build(one, "--cache-to", "main");
  const { stderr } = await build(other, "--cache-from", "main", "--progress", "json");
  const events = stderr
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
  expect(events.find(({ type }) => type === "cached")).toMatchObject({
    from: { scope: "main", ageSeconds: expect.any(Number) },
  });
});

test.each([
  [["--cache-from", "Main"], "--cache-from: not a scope"],
  [["--cache-to", "main,other"], "--cache-to names two scopes"],
  [["--cache-to", "a//b"], "--cache-to: not a scope"],
  [["--cache-to", "a".repeat(101)], "100 characters at most"],
  [["--cache", "always"], "--cache takes auto"],
  [["--cache", "auto", "--cache-from", "main"], "--cache auto chooses the scopes itself"],
  [["--cache-sign", "key"], "--cache-sign"],
])("%p is refused", async (words, message) => {
  const { exitCode, stderr } = await build(one, ...words);
  expect(exitCode).toBe(2);
  expect(stderr).toContain(message);
  expect(service.requests).toEqual([]);
});

test("a scope that fails in an unforeseen way costs the scope only", async () => {
  const session = "build:0123456789abcdef";
  const store = openStore(join(temporaryDirectory(), "state.db"), systemClock);
  const warnings: string[] = [];
  const failing = async () => {
    throw new TypeError("not a function");
  };
  const log = { info() {}, warn: (text: string) => void warnings.push(text) };
  using shared = createSharedCaches(log);
  const scopes = await openScopes(
    { from: ["main"], to: "main" },
    {
      service: { listImages: failing, findImage: failing } as never,
      ...{ store, session, clock: systemClock, dockerfile: "Dockerfile" },
      layers: createLayerCache(store, session),
      memory: createStepMemory(store.steps, { session, dockerfile: "Dockerfile", explains: false }),
      signal: new AbortController().signal,
      ...{ log, shared },
      openStore: failing as never,
      openScratch: failing as never,
      ...{ sign: undefined, verify: undefined, trusted: undefined },
    },
  );
  const layer = { hash: "a".repeat(64), image: crypto.randomUUID(), parent: undefined, kind: "run" } as const;
  scopes.layers.put({ ...layer, title: "RUN true", operation: undefined });
  await scopes.add([layer.image]);
  await shared.write();
  expect(warnings).toEqual([
    "cache: scope main is not used: not a function",
    "cache: nothing is written to scope main: not a function",
  ]);
});

function imageIn(stdout: string): string | undefined {
  return /[0-9a-f]{8}-[0-9a-f-]{27}/.exec(stdout)?.[0];
}

function imagesOf(commands: readonly string[]): string[] {
  return [...service.state.operations.values()].flatMap(({ request, record }) =>
    commands.includes(request?.command ?? "") ? (record.result?.image ?? []) : [],
  );
}

function change(image: string, edit: (text: string) => string): void {
  const tree = service.state.trees.get(image) ?? new Map();
  const entry = tree.get("/bough-cache/index");
  tree.set("/bough-cache/index", { ...entry, content: edit(Buffer.from(entry?.content ?? "").toString()) });
}
