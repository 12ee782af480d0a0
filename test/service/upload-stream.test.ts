import { describe, expect, onTestFinished, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { clientOf, rejection } from "./client.ts";

async function start(options: FakeServiceOptions = {}): Promise<FakeService> {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  return fake;
}

const content = "some bytes of unknown length";
const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");

function streamOf(...chunks: string[]): ReadableStream<Uint8Array> {
  return new ReadableStream({
    start(controller) {
      for (const chunk of chunks) controller.enqueue(new TextEncoder().encode(chunk));
      controller.close();
    },
  });
}

function bytesOf(bytes: Uint8Array, fault?: Error): ReadableStream<Uint8Array> {
  let at = 0;
  return new ReadableStream({
    async pull(controller) {
      const chunk = new Uint8Array(bytes.subarray(at, at + 65_536));
      at += chunk.byteLength;
      if (chunk.byteLength > 0) return controller.enqueue(chunk);
      // This leaves the service time to read everything that was sent.
      await Bun.sleep(20);
      if (fault !== undefined) controller.error(fault);
      else controller.close();
    },
  });
}

describe("a stream", () => {
  test.each([true, false])("is sent in chunks (the service reports hashes: %p)", async (reportsHashes) => {
    const fake = await start({ reportsHashes });
    const file = await clientOf(fake.url).service.uploadStream(streamOf("some bytes ", "of unknown length"));
    expect(file).toEqual({ uuid: fake.state.fileId(sha256), sha256, size: content.length });
    expect(fake.requests).toMatchObject([{ headers: { "transfer-encoding": "chunked" }, bytes: { sha256 } }]);
  });

  test.each([1, content.length, 1024 * 1024, 3 * 1024 * 1024 + 1])(
    "of a known length, %d bytes, is sent with that Content-Length",
    async (contentLength) => {
      const fake = await start();
      const bytes = Buffer.alloc(contentLength, content);
      const file = await clientOf(fake.url).service.uploadStream(bytesOf(bytes), { contentLength });
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      expect(file).toEqual({ uuid: fake.state.fileId(sha256), sha256, size: contentLength });
      const headers = { "content-length": String(contentLength) };
      expect(fake.requests).toMatchObject([{ headers, bytes: { sha256 } }]);
      expect(fake.requests[0]?.headers).not.toHaveProperty("transfer-encoding");
    },
  );

  describe.each([4 * 1024 * 1024, 1000])("of %d bytes stores nothing if the source", (contentLength) => {
    const announced = "did not send the";
    test.each([
      ["gives less", -1, undefined, announced],
      ["gives more", 1, undefined, announced],
      ["gives much more", 1_500_000, undefined, announced],
      ["fails at its end", 0, new Error("another digest"), "another digest"],
      ["breaks off", -500, new Error("the source is gone"), "the source is gone"],
    ])("%s", async (_, difference, fault, message) => {
      const fake = await start();
      const source = bytesOf(new Uint8Array(contentLength + difference), fault);
      const error = await rejection(clientOf(fake.url).service.uploadStream(source, { contentLength }));
      expect(error).toMatchObject({ message: expect.stringContaining(message) });
      // The service drops an incomplete body when the connection closes.
      await Bun.sleep(20);
      expect(fake.state.files.size).toBe(0);
    });
  });

  test.each([
    ["4 MiB", 4 * 1024 * 1024, true],
    ["4 MiB", 4 * 1024 * 1024, false],
    ["1000 bytes", 1000, true],
    ["1000 bytes", 1000, false],
    ["no bytes", 0, true],
    ["no bytes", 0, false],
  ])(
    "of %s is inspected before the service has all of it (%d bytes, length known: %p)",
    async (_, length, isKnown) => {
      const bytes = Buffer.alloc(length, content);
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      const options = isKnown ? { contentLength: length } : {};
      const fake = await start();
      const refused = new Error("refused");
      const refuse = () => {
        throw refused;
      };
      const { service } = clientOf(fake.url);
      expect(await rejection(service.uploadStream(bytesOf(bytes), { ...options, inspect: refuse }))).toBe(
        refused,
      );
      await Bun.sleep(20);
      expect(fake.state.files.size).toBe(0);
      const seen: string[] = [];
      const inspect = (digest: string) => void seen.push(digest);
      expect(await service.uploadStream(bytesOf(bytes), { ...options, inspect })).toMatchObject({ sha256 });
      expect(seen).toEqual([sha256]);
      // A refused file is not reused either if the service has it already.
      expect(await rejection(service.uploadStream(bytesOf(bytes), { ...options, inspect: refuse }))).toBe(
        refused,
      );
    },
  );

  test("is an error if the service reports another hash", async () => {
    const fake = await start({
      intercept: () => Response.json({ uuid: "f", sha256: "0".repeat(64) }, { status: 201 }),
    });
    const error = await rejection(clientOf(fake.url).service.uploadStream(streamOf(content)));
    expect(error).toMatchObject({
      message: expect.stringContaining("the service stored different bytes than were sent"),
    });
  });

  test("is not sent twice", async () => {
    const fake = await start({
      intercept: async (request) => {
        await request.arrayBuffer();
        return new Response("busy", { status: 503 });
      },
    });
    const error = await rejection(clientOf(fake.url).service.uploadStream(streamOf(content)));
    expect(error).toMatchObject({ message: expect.stringContaining("503 Service Unavailable: busy") });
    expect(fake.requestsTo("POST /v1/files")).toHaveLength(1);
  });

  test("that can be made again is measured for a service that requires a length", async () => {
    const fake = await start();
    fake.intercept = ({ method, headers }) =>
      method === "POST" && !headers.has("content-length") ? new Response(null, { status: 411 }) : undefined;
    const stored = await clientOf(fake.url).service.uploadStream(() => streamOf(content));
    expect(stored).toMatchObject({ sha256, size: content.length });
  });

  test.each([429, 500, 503])("that can be made again is sent again after %d", async (status) => {
    const fake = await start();
    fake.intercept = async (request) => {
      if (request.method !== "POST") return undefined;
      fake.intercept = undefined;
      await request.arrayBuffer();
      return new Response("busy", { status });
    };
    const clock = createManualClock((milliseconds) => milliseconds === 200);
    const { service } = clientOf(fake.url, { clock });
    const stored = await service.uploadStream(() => streamOf("some bytes ", "of unknown length"));
    expect(stored).toEqual({ sha256, uuid: fake.state.files.get(sha256)?.uuid ?? "", size: content.length });
  });

  test("that can be made again is sent again after a wait that is longer than the time without data", async () => {
    const fake = await start();
    fake.intercept = async (request) => {
      if (request.method !== "POST") return undefined;
      fake.intercept = undefined;
      await request.arrayBuffer();
      return new Response("busy", { status: 429, headers: { "Retry-After": "250" } });
    };
    const clock = createManualClock();
    const stored = clientOf(fake.url, { clock }).service.uploadStream(() => streamOf(content));
    await Promise.race([stored, clock.sleeping(250_000)]);
    await clock.advance(250_000);
    expect(await stored).toMatchObject({ sha256, size: content.length });
  });

  test.each([undefined, content.length])(
    "of length %p is looked up if the response is lost",
    async (contentLength) => {
      const fake = await start();
      fake.intercept = async (request) => {
        if (request.method !== "POST") return undefined;
        fake.intercept = undefined;
        await fake.handle(request);
        return new Response("gone", { status: 502 });
      };
      const stored = await clientOf(fake.url).service.uploadStream(streamOf(content), { contentLength });
      expect(stored).toMatchObject({ sha256, uuid: fake.state.files.get(sha256)?.uuid });
      expect(fake.requestsTo(`GET /v1/files/${sha256}`)).toHaveLength(1);
    },
  );

  test("that breaks off fails with the source's error, and nothing is stored", async () => {
    const fake = await start();
    const broken = new Error("the source is gone");
    let pulls = 0;
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (pulls++ < 3) controller.enqueue(new Uint8Array(1000));
        else controller.error(broken);
      },
    });
    expect(await rejection(clientOf(fake.url).service.uploadStream(source))).toBe(broken);
    expect(fake.state.files.size).toBe(0);
  });

  test("is not read to its end if the service refuses it at once", async () => {
    const fake = await start({ intercept: () => Response.json({ error: "too large" }, { status: 413 }) });
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      async pull(controller) {
        await Bun.sleep(1);
        controller.enqueue(new Uint8Array(100_000));
      },
      cancel() {
        cancelled = true;
      },
    });
    const error = await rejection(clientOf(fake.url).service.uploadStream(endless));
    expect(error).toMatchObject({ message: expect.stringContaining("413") });
    expect(cancelled).toBe(true);
  });

  test("is given up two minutes after the service stops reading it", async () => {
    const fake = await start({ intercept: () => new Promise(() => {}) });
    const clock = createManualClock();
    const failed = rejection(clientOf(fake.url, { clock }).service.uploadStream(streamOf(content)));
    while (fake.requests.length === 0) await Bun.sleep(1);
    await Bun.sleep(10);
    await clock.advance(120_000);
    expect(await failed).toMatchObject({
      message: expect.stringContaining("the service accepted no data for 120 s"),
    });
  });

  test.each([
    [59, "is waited for"],
    [60, "is given up"],
  ])("whose source gives nothing for %d s %s", async (seconds) => {
    const fake = await start();
    const clock = createManualClock();
    let proceed: (() => void) | undefined;
    const source = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          await new Promise<void>((resolve) => {
            proceed = resolve;
          });
          controller.enqueue(new TextEncoder().encode(content));
          controller.close();
        },
      },
      // Pulled when it is read, not before.
      { highWaterMark: 0 },
    );
    const sent = clientOf(fake.url, { clock }).service.uploadStream(source);
    while (proceed === undefined) await Bun.sleep(1);
    const ended = seconds < 60 ? sent : rejection(sent);
    await clock.advance(seconds * 1000);
    proceed();
    expect(await ended).toMatchObject(seconds < 60 ? { sha256 } : { message: "no data received for 60 s" });
  });

  test.each([
    ["of unknown length", undefined],
    ["of known length, hashed on a thread", "known"],
  ])("of 256 MiB, %s, takes less than 100 MiB of memory", async (_, known) => {
    const fake = await start();
    const program = join(import.meta.dir, "upload-stream-process.ts");
    const words = [fake.url, String(256 * 1024 * 1024), ...(known === undefined ? [] : [known])];
    const child = Bun.spawn([process.execPath, program, ...words], { stdout: "pipe" });
    const { size, peakMebibytes } = JSON.parse(await new Response(child.stdout).text());
    expect(size).toBe(256 * 1024 * 1024);
    expect(peakMebibytes).toBeLessThan(100);
  });

  test.each([
    ["on this thread", 12, false],
    ["on this thread, with a known length", 12, true],
    ["on another thread", 96, true],
  ])("arrives unchanged on a slow service, hashed %s", async (_, count, isLengthKnown) => {
    // All chunks differ, and do not fill whole buffers; a buffer is filled again while others are sent.
    const chunks = Array.from({ length: count }, (_, index) => {
      const numbers = new Uint32Array(300_001 + 100_000 * (index % 3));
      return new Uint8Array(numbers.map((_, at) => Math.imul(at + index, 2_654_435_761)).buffer);
    });
    const contentLength = chunks.reduce((sum, chunk) => sum + chunk.byteLength, 0);
    const received = new Bun.CryptoHasher("sha256");
    const fake = await start({
      intercept: async (request) => {
        for await (const chunk of request.body ?? []) {
          received.update(chunk);
          await Bun.sleep(1);
        }
        return Response.json({ uuid: "f" }, { status: 201 });
      },
    });
    const source = new ReadableStream<Uint8Array>({
      pull(controller) {
        const chunk = chunks[pulled++];
        if (chunk === undefined) controller.close();
        else controller.enqueue(chunk.slice());
      },
    });
    let pulled = 0;
    const stored = await clientOf(fake.url).service.uploadStream(
      source,
      isLengthKnown ? { contentLength } : {},
    );
    const expected = new Bun.CryptoHasher("sha256").update(Buffer.concat(chunks)).digest("hex");
    expect({ sent: stored.sha256, received: received.digest("hex") }).toEqual({
      sent: expected,
      received: expected,
    });
  });
});
