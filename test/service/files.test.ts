import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "bun:test";
import { appendFileSync, mkdtempSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { LocalFile, UploadProgress } from "../../src/service/files/upload.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { saying } from "../support/saying.ts";
import { clientOf, rejection } from "./client.ts";

const megabyte = 1024 * 1024;
let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "bough-files-"));
});
afterEach(() => rmSync(directory, { recursive: true, force: true }));

async function start(options: FakeServiceOptions = {}): Promise<FakeService> {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  return fake;
}

function write(name: string, content: string | Uint8Array): LocalFile {
  const absolutePath = join(directory, name);
  writeFileSync(absolutePath, content);
  const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  return { absolutePath, sha256, size: Buffer.byteLength(content) };
}

function knownFiles(entries: [string, string][] = []): Map<string, string> {
  return new Map(entries);
}

const posts = (fake: FakeService) => fake.requestsTo("POST /v1/files");
const lookups = (fake: FakeService) => fake.requestsTo(/^(GET|HEAD) \/v1\/files\//);

describe("a file's content is sent", () => {
  test("once for several files with the same content", async () => {
    const fake = await start();
    const files = [write("a", "same"), write("b", "same"), write("c", "other")];
    const ids = await clientOf(fake.url).service.uploadFiles(files);
    expect(
      posts(fake)
        .map(({ bytes }) => bytes?.size)
        .sort(),
    ).toEqual([4, 5]);
    expect(ids).toEqual(new Map(files.map(({ sha256 }) => [sha256, fake.state.fileId(sha256)])));
  });

  test("with its length, as bytes", async () => {
    const fake = await start();
    const files = [write("small", "hi"), write("large", new Uint8Array(2 * megabyte))];
    await clientOf(fake.url).service.uploadFiles(files);
    const sent = posts(fake).map(({ headers }) => [headers["content-type"], headers["content-length"]]);
    expect(sent.sort()).toEqual([
      ["application/octet-stream", "2"],
      ["application/octet-stream", String(2 * megabyte)],
    ]);
  });

  test("even if it is empty", async () => {
    const fake = await start();
    const file = write("empty", "");
    await clientOf(fake.url).service.uploadFiles([file]);
    expect(posts(fake)).toMatchObject([{ bytes: { sha256: file.sha256, size: 0 } }]);
  });

  test("not at all if it was sent before", async () => {
    const fake = await start();
    const file = write("a", "same");
    const known = knownFiles([[file.sha256, "file-1"]]);
    const ids = await clientOf(fake.url, { knownFiles: known }).service.uploadFiles([file]);
    expect(ids).toEqual(new Map([[file.sha256, "file-1"]]));
    expect(fake.requests).toEqual([]);
  });

  test("and its id is remembered", async () => {
    const fake = await start();
    const file = write("a", "same");
    const known = knownFiles();
    const ids = await clientOf(fake.url, { knownFiles: known }).service.uploadFiles([file]);
    expect(known).toEqual(ids);
  });

  test("from memory if the hashed bytes are still there", async () => {
    const fake = await start();
    const { sha256, size } = write("a", "same");
    const gone: LocalFile = { absolutePath: join(directory, "gone"), sha256, size };
    await clientOf(fake.url).service.uploadFiles([{ ...gone, content: new TextEncoder().encode("same") }]);
    expect(posts(fake)).toMatchObject([{ bytes: { sha256, size: 4 } }]);
  });
});

describe("concurrent requests:", () => {
  interface Line {
    calls?: number;
    count?: number;
    bytes?: number;
    /** The time of the client's clock that each response takes: all those under way at once, or one after the other. */
    milliseconds?: number;
    isSerial?: boolean;
  }

  /** Returns the number of concurrent requests at each request. */
  async function concurrent(
    { calls = 1, count = 200, bytes = 10, milliseconds = 0, isSerial = false }: Line,
    answer: (number: number) => Response | undefined = () => undefined,
  ): Promise<number[]> {
    // A wait for the first response ends with time, a wait before a repeat at once.
    const clock = createManualClock((wait) => wait < 10_000 && wait !== 20 && wait !== 40);
    let number = 0;
    let tick: Promise<void> | undefined;
    let queue = Promise.resolve();
    /** All requests that the client sends at once have arrived when none does in several turns of the event loop. */
    const settle = async () => {
      for (let [seen, calm] = [-1, 0]; calm < 3; seen = number) {
        await Bun.sleep(2);
        calm = seen === number ? calm + 1 : 0;
      }
    };
    const pass = async () => {
      await (isSerial ? Bun.sleep(1) : settle());
      await clock.advance(milliseconds);
      tick = undefined;
    };
    const fake = await start({
      intercept: async () => {
        const own = number++;
        if (isSerial) queue = queue.then(pass);
        else tick ??= pass();
        await (isSerial ? queue : tick);
        return answer(own);
      },
    });
    const { service } = clientOf(fake.url, { clock });
    for (let call = 0; call < calls; call++) {
      fake.clearRequests();
      const files = Array.from({ length: count }, (_, index) =>
        write(`f${index}`, `content ${call} ${index}`.padEnd(bytes, ".")),
      );
      expect((await service.uploadFiles(files)).size).toBe(count);
    }
    return posts(fake).map(({ inFlight }) => inFlight);
  }

  test("eight to a service that responds at once", async () => {
    expect(Math.max(...(await concurrent({})))).toBe(8);
  });

  test("up to 240 for small files if the service is far away", async () => {
    expect(Math.max(...(await concurrent({ milliseconds: 30, count: 1000 })))).toBe(240);
  });

  test("the next upload starts with as many as the previous one reached", async () => {
    expect(Math.max(...(await concurrent({ milliseconds: 30, count: 60 })))).toBeLessThan(55);
    expect(Math.max(...(await concurrent({ milliseconds: 30, count: 60, calls: 6 })))).toBeGreaterThan(55);
  });

  test("no more if responses take longer the more there are", async () => {
    const numbers = await concurrent({ milliseconds: 30, isSerial: true, count: 400 });
    expect(Math.max(...numbers)).toBeLessThan(100);
  });

  test("eight for larger files, even if the service is far away", async () => {
    const numbers = await concurrent({ milliseconds: 30, bytes: 65 * 1024, count: 40 });
    expect(Math.max(...numbers)).toBe(8);
  });

  test("eight to a service that refused some", async () => {
    const refuse = (number: number) =>
      number < 8 ? Response.json({ error: "busy" }, { status: 429 }) : undefined;
    const numbers = await concurrent({ milliseconds: 30 }, refuse);
    expect(Math.max(...numbers.slice(-60))).toBe(8);
  });
});

describe("a file over 1 MiB", () => {
  test("is looked up first, and not sent if the service has it", async () => {
    const fake = await start();
    const file = write("large", new Uint8Array(megabyte + 1));
    await clientOf(fake.url).service.uploadFiles([file]);
    fake.clearRequests();
    const progress: UploadProgress[] = [];
    await clientOf(fake.url).service.uploadFiles([file], (done) => progress.push(done));
    expect(fake.requests.map(({ method, path }) => `${method} ${path}`)).toEqual([
      `GET /v1/files/${file.sha256}`,
    ]);
    expect(progress).toEqual([{ files: 1, sentBytes: 0, reused: 1 }]);
  });

  test("of exactly 1 MiB is not looked up, because sending is cheaper", async () => {
    const fake = await start();
    await clientOf(fake.url).service.uploadFiles([write("small", new Uint8Array(megabyte))]);
    expect(lookups(fake)).toEqual([]);
  });

  test.each([404, 405, 500, 501])("is sent if the lookup responds with %d", async (status) => {
    const fake = await start({
      intercept: ({ method }) => (method === "GET" ? new Response("", { status }) : undefined),
    });
    const files = [1, 2, 3].map((seed) => write(`large${seed}`, new Uint8Array(megabyte + seed)));
    await clientOf(fake.url).service.uploadFiles(files);
    expect(posts(fake)).toHaveLength(3);
  });
});

describe("a file that has changed since it was hashed is an error", () => {
  test.each([
    ["small", 10],
    ["large", 2 * megabyte],
  ])("if it is %s and changed before it was sent", async (name, size) => {
    const fake = await start();
    const file = write(name, new Uint8Array(size));
    writeFileSync(file.absolutePath, new Uint8Array(size).fill(1));
    const error = await rejection(clientOf(fake.url).service.uploadFiles([file]));
    expect(error).toMatchObject({
      message: `${file.absolutePath} changed while it was being read`,
      hint: expect.stringContaining("If this command writes a log"),
    });
  });

  test("without a request if it grew", async () => {
    const fake = await start();
    const files = [write("small", "abc"), write("large", new Uint8Array(2 * megabyte))];
    for (const file of files) {
      appendFileSync(file.absolutePath, "x");
      const error = await rejection(clientOf(fake.url).service.uploadFiles([file]));
      expect(error).toMatchObject({ message: `${file.absolutePath} changed while it was being read` });
    }
    expect(posts(fake)).toEqual([]);
  });

  test("if the service does not report the hash of what it got", async () => {
    const fake = await start({ reportsHashes: false });
    const file = write("large", new Uint8Array(2 * megabyte));
    expect((await clientOf(fake.url).service.uploadFiles([file])).size).toBe(1);
    fake.state.forgetFile(file.sha256);
    writeFileSync(file.absolutePath, new Uint8Array(2 * megabyte).fill(1));
    const error = await rejection(clientOf(fake.url).service.uploadFiles([file]));
    expect(error).toMatchObject({ message: expect.stringContaining("changed while it was being read") });
  });

  test("if it was changed and restored before the service responds", async () => {
    let file: LocalFile;
    const fake = await start({
      reportsHashes: false,
      intercept: async ({ method }) => {
        if (method !== "POST") return undefined;
        writeFileSync(file.absolutePath, new Uint8Array(2 * megabyte).fill(1));
        writeFileSync(file.absolutePath, new Uint8Array(2 * megabyte));
        return undefined;
      },
    });
    file = write("large", new Uint8Array(2 * megabyte));
    const error = await rejection(clientOf(fake.url).service.uploadFiles([file]));
    expect(error).toMatchObject({ message: expect.stringContaining("changed while it was being read") });
  });

  test("if it shrinks while it is sent, when the request would wait forever for the rest", async () => {
    const fake = await start({
      intercept: ({ method }) => (method === "POST" ? new Promise(() => {}) : undefined),
    });
    const file = write("large", new Uint8Array(2 * megabyte));
    const clock = createManualClock();
    const failed = rejection(clientOf(fake.url, { clock }).service.uploadFiles([file]));
    while (posts(fake).length === 0) await Bun.sleep(1);
    truncateSync(file.absolutePath, megabyte);
    await clock.advance(1000);
    expect(await failed).toMatchObject({ message: `${file.absolutePath} changed while it was being read` });
  });

  test("if it is missing", async () => {
    const fake = await start();
    const file = write("small", "abc");
    rmSync(file.absolutePath);
    const error = await rejection(clientOf(fake.url).service.uploadFiles([file]));
    expect(error).toMatchObject({ message: expect.stringContaining(`cannot read ${file.absolutePath}`) });
  });
});

test("progress counts files, sent bytes, and files that the service already had", async () => {
  const fake = await start();
  const known = write("known", "known");
  const progress: UploadProgress[] = [];
  const { service } = clientOf(fake.url, { knownFiles: knownFiles([[known.sha256, "f"]]) });
  await service.uploadFiles([known, write("new", "12345"), write("again", "12345")], (done) =>
    progress.push(done),
  );
  expect(progress).toEqual([
    { files: 1, sentBytes: 0, reused: 1 },
    { files: 2, sentBytes: 5, reused: 1 },
  ]);
});

test("progress of a large file counts the bytes sent so far", async () => {
  const fake = await start();
  const file = write("large", new Uint8Array(5 * megabyte).fill(3));
  const progress: UploadProgress[] = [];
  await clientOf(fake.url).service.uploadFiles([file], (done) => progress.push(done));
  const amounts = progress.map(({ sentBytes }) => sentBytes);
  expect(amounts).toEqual([0, 1, 2, 3, 4, 5, 5].map((count) => count * megabyte));
  expect(progress.map(({ files }) => files)).toEqual([0, 0, 0, 0, 0, 0, 1]);
  expect(posts(fake)[0]?.headers["content-length"]).toBe(String(file.size));
});

test("an upload is repeated after a fault, with the same bytes", async () => {
  let left = 2;
  const fake = await start({
    intercept: async (request) => {
      if (request.method !== "POST" || left-- <= 0) return undefined;
      await request.arrayBuffer();
      return new Response("", { status: 503 });
    },
  });
  const clock = createManualClock((milliseconds) => milliseconds < 1000);
  const files = [write("large", new Uint8Array(2 * megabyte).fill(7))];
  await clientOf(fake.url, { clock }).service.uploadFiles(files);
  expect(posts(fake)).toHaveLength(3);
  expect(fake.state.files.get(files[0]?.sha256 ?? "")?.size).toBe(2 * megabyte);
});

test("a small file that gets no response in three minutes is sent again, also on a used connection", async () => {
  let hangs = 1;
  const fake = await start({
    intercept: ({ headers }) =>
      headers.get("content-length") === "3" && hangs-- > 0 ? new Promise(() => {}) : undefined,
  });
  const clock = createManualClock();
  const first = Array.from({ length: 20 }, (_, index) => write(`f${index}`, `content ${index}`));
  let done = 0;
  const sent = clientOf(fake.url, { clock }).service.uploadFiles(
    [...first, write("hangs", "abc")],
    ({ files }) => {
      done = files;
    },
  );
  while (done < 20 || posts(fake).length < 21) await Bun.sleep(1);
  await clock.advance(179_000);
  expect(posts(fake)).toHaveLength(21);
  await clock.advance(1000);
  await clock.sleeping();
  await clock.advance(1000);
  expect((await sent).size).toBe(21);
  expect(posts(fake)).toHaveLength(22);
});

test.each([
  ["full", { error: "no space left" }, saying("bough engine prune")],
  ["failing", { error: "it can't be written", reason: "disk_failing" }, undefined],
])("a %s disk is an error at once, with a hint for making room if it is full", async (_, body, hint) => {
  const fake = await start({
    intercept: ({ method }) => (method === "POST" ? Response.json(body, { status: 507 }) : undefined),
  });
  const error = await rejection(clientOf(fake.url).service.uploadFiles([write("a", "abc")]));
  expect(error).toMatchObject({
    message: expect.stringContaining(`507 Insufficient Storage: ${body.error}`),
    hint,
  });
  expect(posts(fake)).toHaveLength(1);
});

test("the first failure stops the other uploads", async () => {
  const fake = await start({
    intercept: async ({ method, headers }) => {
      if (method !== "POST") return undefined;
      if (headers.get("content-length") === "3") return Response.json({ error: "quota" }, { status: 403 });
      await Bun.sleep(60_000);
      return undefined;
    },
  });
  const files = [
    write("hangs", "slow one"),
    write("fails", "bad"),
    ...Array.from({ length: 30 }, (_, i) => write(`w${i}`, `waits ${i}`)),
  ];
  const error = await rejection(clientOf(fake.url).service.uploadFiles(files));
  expect(error).toMatchObject({ message: expect.stringContaining("403 Forbidden: quota") });
  expect(posts(fake).length).toBeLessThan(15);
});
