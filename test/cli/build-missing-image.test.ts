/** Images and files that bough remembers and the service has lost: the same build notices, says so and makes them again. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
  writeFiles(context, {
    Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /\nRUN second\nRUN third\n",
    "a.txt": "a",
  });
});
afterEach(async () => {
  await service.close();
});

const build = (...options: string[]) => {
  const clock = createManualClock((milliseconds) => milliseconds < 5000);
  return boughOn(service, ["build", ".", ...options], { context, state, clock });
};

const imageOf = (command: string) => {
  const operation = [...service.state.operations.values()].find(
    ({ request }) => request?.command === command,
  );
  return operation?.record.result?.image ?? "";
};

test("a misspelt stage name: the failed import suggests the stage", async () => {
  const registry = await startFakeService({ importError: () => "manifest unknown" });
  registry.state.addImage("base:1");
  writeFiles(context, { Dockerfile: "FROM base:1 AS build\nFROM biuld\nRUN make\n" });
  const { exitCode, stderr } = await boughOn(registry, ["build"], { context, state });
  await registry.close();
  expect(exitCode).toBe(1);
  expect(stderr).toContain("Dockerfile:2: importing docker://docker.io/library/biuld:latest failed");
  expect(stderr).toContain("\nDid you mean the stage build? ");
});

describe("the service has lost the image", () => {
  test.each([
    ["of the last layer, with a tag to set", "third", ["--tag", "app"], ["third"]],
    ["of the last layer, without a tag", "third", [], ["third"]],
    ["of an earlier layer that nothing needs", "first", [], []],
  ])("%s", async (_, lost, options, runs) => {
    await build(...options);
    service.state.forgetImage(imageOf(lost));
    const again = await build(...options);
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(runs);
    expect(/image \S+ of layer:\S+ is gone/.test(again.stderr)).toBe(runs.length > 0);
  });

  test("of every layer: one build makes all of them again", async () => {
    await build();
    // Here the service lists the image. An image that was never listed does not count as gone.
    await build();
    for (const command of ["first", "second", "third"]) service.state.forgetImage(imageOf(command));
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(["first", "second", "third"]);
    expect((await build()).runs).toEqual([]);
  });
});

describe("the service loses an image of the running build", () => {
  beforeEach(async () => {
    await service.close();
    service = await startFakeService({ extensions: ["image-list"] });
    service.state.addImage("base:1");
  });

  const loseFirst = (times: number) => {
    let left = times;
    service.intercept = ({ method, url }) => {
      const made = [...service.state.images.values()].filter(({ tag }) => tag === null);
      if (method === "POST" && url.endsWith("/instances") && made.length === 1 && left-- > 0)
        for (const { uuid } of made) service.state.forgetImage(uuid);
      return undefined;
    };
  };

  test("once: the build makes it again", async () => {
    loseFirst(1);
    const { exitCode, runs, stderr } = await build();
    expect([exitCode, runs]).toEqual([0, ["first", "first", "second", "third"]]);
    expect(stderr).toMatch(/image \S+ of layer:\S+ is gone: building it again/);
    expect((await build()).runs).toEqual([]);
  });

  test("again and again: the build gives up", async () => {
    loseFirst(10);
    const { exitCode, runs, stderr } = await build();
    expect([exitCode, runs]).toEqual([1, ["first", "first", "first"]]);
    expect(stderr).toMatch(/the service keeps losing the image of layer:\w{12}: image \S+ is gone, too/);
  });
});

describe.each<[string, number | "failed operation"]>([
  ["404", 404],
  ["410", 410],
  ["422 and a message", 422],
  ["a failed operation", "failed operation"],
])("a service that reports it with %s", (_, missing) => {
  beforeEach(async () => {
    await service.close();
    service = await startFakeService({ missing });
    service.state.addImage("base:1");
  });

  test("the image of a layer that the next RUN needs is lost", async () => {
    await build();
    service.state.forgetImage(imageOf("second"));
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /\nRUN second\nRUN other\n" });
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(["second", "other"]);
    expect(again.stderr).toMatch(/image \S+ of layer:\S+ is gone/);
  });

  test("an uploaded file is lost", async () => {
    await build();
    const [sha256 = ""] = service.state.files.keys();
    service.state.forgetFile(sha256);
    const again = await build("--no-cache");
    expect(again.exitCode).toBe(0);
    expect(again.stderr).toContain("1 uploaded file is gone: sending again");
    expect(again.runs).toEqual(["first", "second", "third"]);
  });
});

describe("the service has lost an image that a COPY reads", () => {
  test("to find out whether its destination is a directory", async () => {
    service.state.tree.set("/dest", { type: "directory" });
    await build();
    service.state.forgetImage(imageOf("first"));
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /dest\nRUN other\n" });
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(["first", "other"]);
    // Not as the file /dest, as if the destination did not exist.
    expect(Object.keys(service.state.instances.at(-1)?.files ?? {})).toEqual(["/dest/a.txt"]);
  });

  test("to look up the number of a user", async () => {
    service.state.tree.set("/etc/passwd", { type: "file", content: "app:x:7:8::/:/bin/sh\n" });
    await build();
    service.state.forgetImage(imageOf("first"));
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN first\nCOPY --chown=app a.txt /\nRUN other\n" });
    const again = await build();
    expect(again.exitCode).toBe(0);
    expect(again.runs).toEqual(["first", "other"]);
    expect(service.state.instances.at(-1)?.files).toMatchObject({ "/a.txt": { uid: 7, gid: 8 } });
  });
});

test("a lost file of a URL is fetched again", async () => {
  let gets = 0;
  const source = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch(request) {
      if (request.method === "GET") gets++;
      return new Response("content", { headers: { etag: '"1"' } });
    },
  });
  writeFiles(context, { Dockerfile: `FROM base:1\nADD ${source.url}file /file\nRUN use it\n` });
  await build();
  const [sha256 = ""] = service.state.files.keys();
  service.state.forgetFile(sha256);
  const again = await build("--no-cache");
  await source.stop(true);
  expect(again.exitCode).toBe(0);
  expect(again.stderr).toContain("URL cache hit");
  expect(again.stderr).toContain("1 uploaded file is gone: sending again");
  expect({ gets, runs: again.runs }).toEqual({ gets: 2, runs: ["use it"] });
  expect(service.state.files.has(sha256)).toBe(true);
});

test("a lost file is sent again without making its directories twice", async () => {
  writeFiles(context, {
    Dockerfile: "FROM base:1\nCOPY tree /tree\nRUN use it\n",
    "tree/a.txt": "a",
    "tree/empty": "directory/",
  });
  await build();
  const [sha256 = ""] = service.state.files.keys();
  service.state.forgetFile(sha256);
  writeFiles(context, { Dockerfile: "FROM base:1\nCOPY tree /tree\nRUN use it otherwise\n" });
  const again = await build();
  expect(again.exitCode).toBe(0);
  expect(again.runs).toEqual(["sh", "use it otherwise"]);
});

test("the command of a lost operation is not run again automatically", async () => {
  await service.close();
  service = await startFakeService({ run: () => ({ until: new Promise(() => {}) }), events: false });
  service.state.addImage("base:1");
  service.intercept = ({ url }) => {
    if (url.includes("/operations/")) service.state.operations.clear();
    return undefined;
  };
  const ended = await build();
  expect(ended.exitCode).toBe(1);
  expect(ended.runs).toEqual(["first"]);
  expect(ended.stderr).toMatch(
    /the service no longer knows operation \S+: the result of its command is unknown/,
  );
});

test("a request that is refused for another reason makes nothing run again", async () => {
  await build();
  writeFiles(context, { Dockerfile: "FROM base:1\nRUN first\nCOPY a.txt /\nRUN second\nRUN other\n" });
  service.intercept = ({ method, url }) =>
    method === "POST" && url.endsWith("/instances")
      ? Response.json({ error: "env: unknown variable" }, { status: 422 })
      : undefined;
  const ended = await build();
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("422 Unprocessable Entity: env: unknown variable");
  expect(ended.stderr).not.toContain("no longer has");
});
