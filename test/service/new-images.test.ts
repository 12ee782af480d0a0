/** A service that reads from a copy of its database knows an image or a file only a moment after it has made it. */
import { describe, expect, onTestFinished, test } from "bun:test";
import { NotFoundError } from "../../src/service/http/errors.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf, rejection } from "./client.ts";

/** `misses`: the number of requests with a new id that the service does not find. */
async function start(misses: number) {
  const fake = await startFakeService();
  onTestFinished(() => fake.close());
  fake.state.addImage();
  const base = fake.state.addImage("base:1");
  fake.state.tree.set("/dest", { type: "directory" });
  fake.state.tree.set("/dest/a.txt", { type: "file", content: "a" });
  const clock = createManualClock((milliseconds) => milliseconds < 5000);
  const { service } = clientOf(fake.url, { clock });
  const request = { command: "make", shell: true, cwd: "/", disposable: false };
  const make = async () =>
    (await service.follow(await service.spawn({ ...request, image: base }))).image ?? "";
  const counts = { asked: 0 };
  const hide = (id: string) => {
    fake.intercept = async (sent, { path, query }) => {
      const isAbout = sent.url.includes(id) || (await sent.clone().text()).includes(id);
      if (!isAbout || counts.asked++ >= misses) return undefined;
      if (path !== "/v1/images") return Response.json({ error: `no image or file ${id}` }, { status: 404 });
      const isShown = (uuid: string) => uuid !== id && uuid === (query.uuid ?? uuid);
      return Response.json({ images: fake.state.imageRecords().filter(({ uuid }) => isShown(uuid)) });
    };
  };
  return { fake, base, clock, service, request, make, hide, counts };
}

type Started = Awaited<ReturnType<typeof start>>;

const uses: [string, (started: Started, image: string) => Promise<unknown>, unknown][] = [
  [
    "POST /v1/instances",
    ({ service, request }, image) => service.spawn({ ...request, image }),
    expect.any(String),
  ],
  ["PATCH /v1/images/{uuid}/tag", ({ service }, image) => service.tagImage(image, "app:1"), undefined],
  ["hasImage", ({ service }, image) => service.hasImage(image), true],
  ["findImage", ({ service }, image) => service.findImage(image), expect.any(Object)],
  ["listFiles", async ({ service }, image) => (await service.listFiles(image, "/dest")).length, 1],
  ["pathType", ({ service }, image) => service.pathType(image, "/dest"), "directory"],
  ["readFile", ({ service }, image) => service.readFile(image, "/dest/a.txt"), Buffer.from("a")],
  [
    "openFile",
    async ({ service }, image) => new Response(await service.openFile(image, "/dest/a.txt")).text(),
    "a",
  ],
];

describe.each(uses)("%s", (_, use, result) => {
  test.each([1, 3])("finds a new image after %p misses", async (misses) => {
    const started = await start(misses);
    const image = await started.make();
    started.hide(image);
    expect(await use(started, image)).toEqual(result);
    expect(started.counts.asked).toBeGreaterThan(misses);
  });

  test("with one miss, after the service has shown files of another image", async () => {
    const started = await start(1);
    await started.service.pathType(started.base, "/dest");
    const image = await started.make();
    started.hide(image);
    expect(await use(started, image)).toEqual(result);
  });
});

test("an imported image is new, too", async () => {
  const { service, request, hide } = await start(2);
  const image = await service.importImage({ url: "docker://docker.io/library/app:1", timeoutSeconds: 60 });
  hide(image);
  expect(await service.spawn({ ...request, image })).toBeString();
});

test("a new file is awaited", async () => {
  const { service, request, base, hide, fake } = await start(2);
  const { uuid } = await service.uploadStream(new Blob(["content"]).stream());
  hide(uuid);
  const file = { uuid, uid: 0, gid: 0, mode: "0644" };
  expect(await service.spawn({ ...request, image: base, files: { "/a.txt": file } })).toBeString();
  expect(fake.requestsTo("POST /v1/instances")).toHaveLength(3);
});

describe("an image that stays unknown", () => {
  test("is missing after five seconds if it is new", async () => {
    const { service, request, make, hide, clock } = await start(100);
    const image = await make();
    hide(image);
    const before = clock.now();
    expect(await rejection(service.spawn({ ...request, image }))).toBeInstanceOf(NotFoundError);
    expect(clock.now() - before).toBeWithin(5000, 6001);
  });

  test("is missing at once if a user has named it", async () => {
    const { service, request, base, hide, counts } = await start(100);
    hide(base);
    expect(await rejection(service.spawn({ ...request, image: base }))).toBeInstanceOf(NotFoundError);
    expect(await rejection(service.tagImage(base, "app:1"))).toBeInstanceOf(NotFoundError);
    expect(counts.asked).toBe(2);
  });

  test("is missing at once if a command without changes has returned it", async () => {
    const { fake, service, request, base, hide, counts } = await start(100);
    const operation = await service.spawn({ ...request, image: base });
    const { record, events } = fake.state.operations.get(operation) ?? {};
    for (const result of [record, events?.at(-1)?.data])
      Object.assign(result ?? {}, { result_image_uuid: base, result: { image: base } });
    const { image } = await service.follow(operation);
    expect(image).toBe(base);
    hide(base);
    expect(await rejection(service.tagImage(base, "app:1"))).toBeInstanceOf(NotFoundError);
    expect(counts.asked).toBe(1);
  });
});

describe("the type of a path in a new image is asked for again if the service", () => {
  const missing = (id: string) => ({ error: `image ${id} not found` });
  const unnamed = () => ({ error: "Not Found" });
  test.each<[string, { hasShown: boolean; refusal: (id: string) => object; list: () => Response }]>([
    [
      "may not list images",
      { hasShown: false, refusal: missing, list: () => Response.json({ error: "no" }, { status: 403 }) },
    ],
    [
      "lists only tagged images",
      { hasShown: false, refusal: missing, list: () => Response.json({ images: [] }) },
    ],
    [
      "does not say what is missing",
      { hasShown: true, refusal: unnamed, list: () => Response.json({ images: [] }) },
    ],
  ])("%s", async (_, { hasShown, refusal, list }) => {
    const { fake, service, base, make } = await start(0);
    const image = await make();
    if (hasShown) await service.pathType(base, "/dest");
    let misses = 2;
    fake.intercept = (sent, { path }) => {
      if (path === "/v1/images") return list();
      if (!sent.url.includes(image) || misses-- <= 0) return undefined;
      return Response.json(refusal(image), { status: 404 });
    };
    expect(await service.pathType(image, "/dest")).toBe("directory");
    expect(service.capabilities.lacks("inspect")).toBe(false);
  });
});

test("a missing path of a new image is missing at once", async () => {
  const { service, make, clock } = await start(0);
  const image = await make();
  const before = clock.now();
  expect(await service.pathType(image, "/missing")).toBeUndefined();
  expect(clock.now()).toBe(before);
});
