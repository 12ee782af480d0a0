import { afterEach, describe, expect, test } from "bun:test";
import { NotFoundError, RefusedTokenError } from "../../src/service/http/errors.ts";
import { answerWith } from "../fake-service/answer.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { clientOf, rejection } from "./client.ts";

const fakes: FakeService[] = [];
afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.close()));
});

async function start(options: FakeServiceOptions = {}) {
  const fake = await startFakeService(options);
  fakes.push(fake);
  return { fake, service: clientOf(fake.url).service };
}

describe("finding an image", () => {
  test("by a tag: as written, then with :latest, and not by a prefix", async () => {
    const { fake, service } = await start();
    fake.state.addImage("app-two:latest");
    fake.state.addImage("app:1");
    const latest = fake.state.addImage("app:latest");
    expect(await service.findImage("app")).toEqual({ uuid: latest });
    const written = fake.state.addImage("app");
    expect(await service.findImage("app")).toEqual({ uuid: written });
    expect(await service.findImage("app:latest")).toEqual({ uuid: latest });
    expect(await service.findImage("tag:app:latest")).toEqual({ uuid: latest });
    expect(await service.findImage("app:2")).toBeUndefined();
    expect(await service.findImage("ap")).toBeUndefined();
  });

  test("reads more than one page of the list", async () => {
    const { fake, service } = await start();
    for (let number = 0; number < 1001; number++) fake.state.addImage(`app-${number}`);
    const wanted = fake.state.addImage("app:latest");
    expect(await service.findImage("app")).toEqual({ uuid: wanted });
    expect(fake.requests.map(({ query }) => query.offset)).toEqual([undefined, "1000"]);
    expect(await service.listImages()).toHaveLength(1002);
  });

  test("on a service that has fewer to a page than it is asked for", async () => {
    const { fake, service } = await start();
    fake.state.addImage("app:1");
    fake.state.addImage("app:2");
    const wanted = fake.state.addImage("app:latest");
    fake.intercept = ({ url }) => {
      const { tag = "", offset = "0" } = Object.fromEntries(new URL(url).searchParams);
      const found = fake.state.imageRecords().filter((image) => image.tag?.startsWith(tag));
      return Response.json({ images: found.slice(Number(offset), Number(offset) + 1) });
    };
    expect(await service.findImage("app")).toEqual({ uuid: wanted });
    expect(await service.findImage("app:3")).toBeUndefined();
    expect(await service.listImages()).toHaveLength(3);
  });

  test.each([400, 404, 422])(
    "on a service that responds with %d past the end of its list",
    async (status) => {
      const { fake, service } = await start();
      fake.state.addImage("app:1");
      fake.intercept = (_, { query }) =>
        query.offset === undefined ? undefined : answerWith.error(status, "no");
      expect(await service.findImage("app:2")).toBeUndefined();
      expect(await service.listImages()).toHaveLength(1);
      expect(service.capabilities.lacks("imageList")).toBe(false);
    },
  );

  test.each([{ images: null }, {}])("on a service that says %j for no images", async (none) => {
    const { service } = await start({ intercept: () => Response.json(none) });
    expect(await service.findImage("app")).toBeUndefined();
    expect(await service.listImages()).toEqual([]);
  });

  test("with a token that may not list them is left to those who can do without", async () => {
    const { fake, service } = await start({ intercept: () => new Response("no", { status: 403 }) });
    expect(await rejection(service.listImages())).toBeInstanceOf(RefusedTokenError);
    expect(await service.findImage("app")).toBe("unsupported");
    expect(await service.findImage("other")).toBe("unsupported");
    expect(fake.requests).toHaveLength(2);
  });

  test("ends on a service that ignores the offset", async () => {
    const images = Array.from({ length: 1000 }, (_, number) => ({ uuid: `i-${number}`, tag: null }));
    const { fake, service } = await start({ intercept: () => Response.json({ images }) });
    expect(await service.findImage("app")).toBeUndefined();
    expect(fake.requests).toHaveLength(2);
  });

  test("by its id", async () => {
    const { fake, service } = await start();
    const uuid = fake.state.addImage();
    expect(await service.findImage(uuid.toUpperCase())).toEqual({ uuid });
    fake.state.forgetImage(uuid);
    expect(await service.findImage(uuid)).toBeUndefined();
  });

  test("by its id in capitals, on a service that knows no other spelling", async () => {
    const uuid = "3F2504E0-4F89-11D3-9A0C-0305E82C3301";
    const { fake, service } = await start({
      intercept: ({ url }) => Response.json({ images: url.includes(uuid) ? [{ uuid, tag: null }] : [] }),
    });
    expect(await service.findImage(uuid)).toEqual({ uuid });
    expect(fake.requests).toHaveLength(1);
  });

  test("reads its configuration if the service reports it", async () => {
    const config = { Env: ["A=1"], WorkingDir: "/srv", User: 7, Labels: { a: "b" }, Cmd: null, Other: 1 };
    const images = [
      { uuid: "i-1", tag: "app:1", oci_config: config },
      { uuid: "i-2", tag: "app:2", oci_config: "none" },
      { uuid: "i-3", tag: "app:3", config: { env: { A: "of an older engine" } } },
    ];
    const { service } = await start({ intercept: () => Response.json({ images }) });
    const read = { Env: ["A=1"], WorkingDir: "/srv", Labels: { a: "b" }, Other: 1 };
    expect(await service.findImage("app:1")).toEqual({ uuid: "i-1", config: read });
    expect(await service.findImage("app:2")).toEqual({ uuid: "i-2" });
    expect(await service.findImage("app:3")).toEqual({ uuid: "i-3" });
  });

  test("by its id asks only once whether the list shows images without a tag", async () => {
    const { fake, service } = await start();
    fake.state.addImage("app:1");
    expect(await Promise.all(["i-1", "i-2"].map((uuid) => service.hasImage(uuid)))).toEqual([
      "unsupported",
      "unsupported",
    ]);
    expect(await service.hasImage("i-3")).toBe("unsupported");
    expect(fake.requests.filter(({ query }) => query.uuid === undefined && query.limit)).toHaveLength(1);
    // The image of a command has no tag: now a list can show one.
    const made = { image: "tag:app:1", command: "make", shell: true, cwd: "/", disposable: false };
    await service.follow(await service.spawn(made));
    expect(await service.hasImage("i-3")).toBe(false);
  });

  test("sends no request for an invalid tag", async () => {
    const { fake, service } = await start();
    expect(await service.findImage(`alpine@sha256:${"0".repeat(64)}`)).toBeUndefined();
    expect(fake.requests).toEqual([]);
  });

  test.each([404, 405, 501])("is unsupported on a service without a list (%d)", async (status) => {
    const { service } = await start({ intercept: () => new Response("", { status }) });
    expect(await service.findImage("app")).toBe("unsupported");
    expect(await service.listImages()).toEqual([]);
    expect(service.capabilities.lacks("imageList")).toBe(true);
    // Finding an image by its id needs no list.
    const uuid = "3f2504e0-4f89-11d3-9a0c-0305e82c3301";
    expect(await service.findImage(uuid)).toEqual({ uuid });
  });
});

describe("importing an image", () => {
  const request = { url: "docker://docker.io/library/alpine:3.20", tag: "alpine:3.20", timeoutSeconds: 600 };

  test("sends the address, the tag and the timeout", async () => {
    const { fake, service } = await start();
    const uuid = await service.importImage(request);
    expect(fake.state.images.get(uuid)?.tag).toBe("alpine:3.20");
    expect(fake.requestsTo("POST /v1/images/import")).toMatchObject([
      { json: { registry: { url: request.url }, tag: "alpine:3.20", timeout: 600 } },
    ]);
  });

  test.each(["../operations/i-1", "operations/i-1", "/v1/operations/i-1/"])(
    "is followed where the answer says it is: %s",
    async (location) => {
      const record = { uuid: "i-1", status: "SUCCESS", result: { image: "image-1" } };
      const { fake, service } = await start({
        intercept: (_, { path }) =>
          path === "/v1/images/import"
            ? new Response(null, { status: 201, headers: { location } })
            : path.includes("//")
              ? undefined
              : Response.json(record),
      });
      expect(await service.importImage({ ...request, onProgress: () => undefined })).toBe("image-1");
      expect(fake.requestsTo(/events$/).map(({ path }) => path)).toEqual(["/v1/operations/i-1/events"]);
    },
  );

  test("sends no tag if there is none", async () => {
    const { fake, service } = await start();
    await service.importImage({ url: request.url, tag: undefined, timeoutSeconds: 1 });
    const [sent] = fake.requestsTo("POST /v1/images/import");
    expect(Object.keys(sent?.json ?? {})).toEqual(["registry", "timeout"]);
  });

  test("polls the operation, and reads its events only to report progress", async () => {
    const { fake, service } = await start();
    await service.importImage(request);
    expect(fake.requestsTo(/events$/)).toEqual([]);
    await service.importImage({ ...request, onProgress: () => undefined });
    expect(fake.requestsTo(/events$/)).toHaveLength(1);
  });

  test("without events does not disable the events of commands", async () => {
    const { fake, service } = await start({
      intercept: ({ url }) =>
        url.endsWith(`${importOperation()}/events?follow=true`)
          ? new Response("", { status: 404 })
          : undefined,
    });
    const importOperation = () => [...fake.state.operations.keys()][0];
    const image = await service.importImage({ ...request, onProgress: () => undefined });
    await service.follow(
      await service.spawn({ image, command: "make", shell: true, cwd: "/", disposable: false }),
    );
    expect(fake.requestsTo(/events$/).map(({ status }) => status)).toEqual([404, 200]);
  });

  test.each(["image", "image id"] as const)(
    "works on a service that responds with the %s",
    async (importAnswers) => {
      const { fake, service } = await start({ importAnswers, sixCallsOnly: true });
      const uuid = await service.importImage(request);
      expect(fake.state.images.get(uuid)?.tag).toBe("alpine:3.20");
    },
  );

  test("reports the reason of a failure", async () => {
    const { service } = await start({ importError: () => "manifest unknown" });
    expect(await rejection(service.importImage(request))).toMatchObject({
      message: "importing docker://docker.io/library/alpine:3.20 failed: manifest unknown",
      hint: expect.stringContaining("registry"),
    });
  });

  test("fails if the operation is lost", async () => {
    const { fake } = await start();
    const { service } = clientOf(fake.url, {
      clock: createManualClock((milliseconds) => milliseconds < 5000),
    });
    fake.intercept = ({ method }) => {
      if (method === "GET") fake.state.operations.clear();
      return undefined;
    };
    expect(await rejection(service.importImage(request))).toBeInstanceOf(NotFoundError);
  });
});

describe("tagging an image", () => {
  test("moves the tag", async () => {
    const { fake, service } = await start();
    const before = fake.state.addImage("app:latest");
    const after = fake.state.addImage();
    await service.tagImage(after, "app:latest");
    expect(fake.requests).toMatchObject([
      { method: "PATCH", path: `/v1/images/${after}/tag`, json: { tag: "app:latest" } },
    ]);
    expect([before, after].map((uuid) => fake.state.images.get(uuid)?.tag)).toEqual([null, "app:latest"]);
  });

  test("fails if the image is missing", async () => {
    const { fake, service } = await start();
    const uuid = fake.state.addImage();
    fake.state.forgetImage(uuid);
    expect(await rejection(service.tagImage(uuid, "app:1"))).toBeInstanceOf(NotFoundError);
  });
});

describe("removing one of several tags keeps the others on a service that", () => {
  const answer = (status: number) => Response.json({ error: "no", status }, { status });
  test.each<[string, FakeServiceOptions]>([
    ["has ?tag=", {}],
    ["ignores it and removes all tags", { removesAllTags: true }],
    [
      "refuses it",
      {
        intercept: (_, { method, query }) =>
          method === "DELETE" && "tag" in query ? answer(400) : undefined,
      },
    ],
    [
      "has no such call with a query",
      {
        intercept: (_, { method, query }) =>
          method === "DELETE" && "tag" in query ? answer(404) : undefined,
      },
    ],
    [
      "ignores it, and the filters of a list too",
      {
        removesAllTags: true,
        intercept: ({ url }, { method, path }) => {
          if (method !== "GET" || path !== "/v1/images" || new URL(url).search === "") return undefined;
          return fakes.at(-1)?.handle(new Request(url.replace(/\?.*/, "")));
        },
      },
    ],
  ])("%s", async (_, options) => {
    const { fake, service } = await start(options);
    const image = fake.state.addImage("app:1");
    for (const tag of ["app:2", "app:3"]) fake.state.setTag(image, tag);
    const other = fake.state.addImage("other:1");
    await service.removeTag(image, "app:2");
    expect([...fake.state.tags].toSorted()).toEqual([
      ["app:1", image],
      ["app:3", image],
      ["other:1", other],
    ]);
    expect(fake.requestsTo(/^PATCH/)).toHaveLength(options.removesAllTags || options.intercept ? 2 : 0);
  });
});

describe("the list of operations", () => {
  test.each([
    [{ status: "EXECUTING" as const }, ["e3", "e1"]],
    [{ kind: "image_import" as const }, ["i2"]],
    [{ since: "2026-01-01T00:00:02Z" }, ["e3", "i2"]],
    [{ until: "2026-01-01T00:00:02Z" }, ["i2", "e1"]],
    [{}, ["e3", "i2", "e1"]],
  ])("is filtered by bough if the service ignores the filter %j", async (filter, expected) => {
    const operation = (uuid: string, second: number, kind: string, status: string) => ({
      uuid,
      kind,
      status,
      created_at: `2026-01-01T00:00:0${second}Z`,
    });
    const all = [
      operation("e3", 3, "instance", "EXECUTING"),
      operation("i2", 2, "image_import", "SUCCESS"),
      operation("e1", 1, "instance", "EXECUTING"),
    ];
    const { service } = await start({
      intercept: (_, { query }) => {
        const offset = Number(query.offset ?? 0);
        return Response.json(all.slice(offset, offset + Number(query.limit)));
      },
    });
    for (const limit of [1, 2, 50]) {
      const operations = await service.listOperations({ ...filter, limit });
      expect(operations.map(({ uuid }) => uuid)).toEqual(expected.slice(0, limit));
    }
  });

  test.each([
    ["executing", "EXECUTING"],
    ["Running", "EXECUTING"],
    ["queued", "PENDING"],
    ["assigned", "ASSIGNED"],
    ["completed", "SUCCESS"],
    ["Canceled", "CANCELLED"],
  ] as const)("finds operations of a service that writes %s for the status %s", async (status, usual) => {
    const operation = { uuid: "o", kind: "instance", status };
    const { service } = await start({
      intercept: (_, { path }) => Response.json(path === "/v1/operations" ? [operation] : operation),
    });
    const found = { uuid: "o", status: usual };
    expect(await service.listOperations({ status: usual, limit: 1 })).toMatchObject([found]);
    expect(await service.listOperations({ status: "FAILED", limit: 1 })).toEqual([]);
    expect(await service.getOperation("o")).toMatchObject(found);
  });

  test.each([200, 400, 404, 422])(
    "is read to its end on a service with two to a page and status %d past the end",
    async (status) => {
      const all = ["five", "four", "three", "two", "one"].map((uuid) => ({ uuid, kind: "instance" }));
      const { service } = await start({
        intercept: (_, { query }) => {
          const offset = Number(query.offset ?? 0);
          return Response.json(all.slice(offset, offset + Math.min(2, Number(query.limit))), {
            status: offset < all.length ? 200 : status,
          });
        },
      });
      for (const limit of [1, 3, 50]) {
        const operations = await service.listOperations({ limit });
        expect(operations.map(({ uuid }) => uuid)).toEqual(all.slice(0, limit).map(({ uuid }) => uuid));
      }
    },
  );
});

describe("reading an image", () => {
  test("returns the types of paths and the contents of files, and undefined for missing ones", async () => {
    const { fake, service } = await start();
    const image = fake.state.addImage();
    fake.state.tree.set("/etc", { type: "directory" });
    fake.state.tree.set("/etc/passwd", { type: "file", content: "root:x:0:0::/root:/bin/sh\n" });
    fake.state.tree.set("/sh", { type: "symlink" });
    const types = await Promise.all(
      ["/", "/etc", "/etc/passwd", "/sh", "/none"].map((path) => service.pathType(image, path)),
    );
    expect(types).toEqual(["directory", "directory", "file", "symlink", undefined]);
    expect(new TextDecoder().decode((await service.readFile(image, "/etc/passwd")) as Uint8Array)).toBe(
      "root:x:0:0::/root:/bin/sh\n",
    );
    expect(await service.readFile(image, "/none")).toBeUndefined();
    expect(await service.readFile(image, "/etc")).toBeUndefined();
  });

  test("is unsupported on a service without these routes", async () => {
    const { fake, service } = await start({ sixCallsOnly: true });
    const image = fake.state.addImage();
    expect(await service.pathType(image, "/etc")).toBe("unsupported");
    expect(await service.readFile(image, "/etc/passwd")).toBe("unsupported");
  });

  const missing = (status: number, isMissing: (path: string) => boolean) => ({
    intercept: (_: Request, { path }: { path: string }) =>
      isMissing(path) ? Response.json({ error: "no", status }, { status }) : undefined,
  });
  const isInspect = (path: string) => path.startsWith("/v1/inspect/");
  const noList =
    "the service cannot show files of images: it does not support GET /v1/inspect/{image_uuid}/list";
  test.each<[string, FakeServiceOptions, string]>([
    ["has it, but no such file", {}, "/none: there is no such file in image IMAGE"],
    ["has only the specification's calls", { sixCallsOnly: true }, noList],
    ["has a list of images, but no such route (404)", missing(404, isInspect), noList],
    ["has no such route (405)", missing(405, (path) => path.endsWith("/list")), noList],
    ["has no such route (501)", missing(501, isInspect), "the service cannot show files of images"],
  ])("reports what is missing on a service that %s", async (_, options, expected) => {
    for (const call of ["listFiles", "openFile", "openArchive"] as const) {
      const { fake, service } = await start(options);
      const image = fake.state.addImage("app:1");
      const error = await rejection(service[call](image, "/none"));
      expect(error).toBeInstanceOf(NotFoundError);
      expect(error).toHaveProperty("message", expect.stringContaining(expected.replace("IMAGE", image)));
    }
  });

  test("reports a missing image, and does not take it for a missing route", async () => {
    const { fake, service } = await start();
    const [listed, image] = [fake.state.addImage("app:1"), fake.state.addImage()];
    fake.state.forgetImage(image);
    for (const path of ["/", "/etc"])
      expect(await rejection(service.listFiles(image, path))).toHaveProperty(
        "message",
        `image ${image} is gone, or the service cannot show files of images`,
      );
    expect(await service.pathType(image, "/")).toBe("unsupported");
    expect(await service.pathType(listed, "/")).toBe("directory");
    fake.state.addImage();
    expect(await rejection(clientOf(fake.url).service.listFiles(image, "/"))).toHaveProperty(
      "message",
      `image ${image} is gone`,
    );
  });
});
