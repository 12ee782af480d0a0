import { describe, expect, onTestFinished, test } from "bun:test";
import { NotFoundError } from "../../src/service/http/errors.ts";
import type { OutputChunk } from "../../src/service/service.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { clientOf, rejection, type TestClient } from "./client.ts";

interface Bench extends TestClient {
  fake: FakeService;
  image: string;
  spawn(): Promise<string>;
}

async function start(
  options: FakeServiceOptions = {},
  client: Parameters<typeof clientOf>[1] = {},
): Promise<Bench> {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  const image = fake.state.addImage("base:latest");
  const made = clientOf(fake.url, client);
  const request = { image, command: "make", shell: true, cwd: "/", disposable: false, timeout: 600 };
  return { fake, image, ...made, spawn: () => made.service.spawn(request) };
}

/** Waits for the service pass at once; deadlines, and the look after a stream every second, do not. */
const impatient = () => createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
const doing = (outcome: RunOutcome) => ({ run: () => outcome });
const looks = (fake: FakeService) => fake.requestsTo(/^GET \/v1\/operations\/[^/]+$/);
const connections = (fake: FakeService) => fake.requestsTo(/\/events$/);

/** Every kind of server must give the same outcome. */
const servers: [what: string, options: FakeServiceOptions][] = [
  ["events", {}],
  ["events, compressed", { gzip: true }],
  ["polling", { events: false }],
  ["polling, compressed", { events: false, gzip: true }],
  ["the six calls alone", { sixCallsOnly: true }],
];

describe.each(servers)("a server with %s", (_, server) => {
  test("reports a command that succeeds", async () => {
    const { fake, service, spawn } = await start({
      ...server,
      ...doing({ stdout: "hello\n", stderr: "oh\n" }),
    });
    const operation = await spawn();
    const outcome = await service.follow(operation);
    expect(outcome).toEqual({
      operation,
      status: "SUCCESS",
      error: undefined,
      exitCode: 0,
      timedOut: false,
      limitsHit: [],
      stdout: { text: "hello\n", truncated: false },
      stderr: { text: "oh\n", truncated: false },
      image: expect.any(String),
      imageBytes: undefined,
      served: { since: expect.any(Number), seconds: 0.01 },
    });
    expect(fake.state.images.has(outcome.image ?? "")).toBe(true);
  });

  test("reports a command that fails", async () => {
    const { service, spawn } = await start({ ...server, ...doing({ exitCode: 7, stderr: "no\n" }) });
    expect(await service.follow(await spawn())).toMatchObject({
      status: "SUCCESS",
      exitCode: 7,
      stderr: { text: "no\n" },
    });
  });

  test("reports a command that exceeds its timeout", async () => {
    const { service, spawn } = await start({ ...server, ...doing({ exitCode: 137, timedOut: true }) });
    expect(await service.follow(await spawn())).toMatchObject({ exitCode: 137, timedOut: true });
  });

  test("reports a command that the service could not run", async () => {
    const { service, spawn } = await start({ ...server, ...doing({ error: "no capacity" }) });
    expect(await service.follow(await spawn())).toMatchObject({
      status: "FAILED",
      error: "no capacity",
      exitCode: undefined,
      image: undefined,
    });
  });

  test("reports the same image for a command that changes nothing", async () => {
    const { service, spawn, image } = await start({ ...server, ...doing({ image: "unchanged" }) });
    expect(await service.follow(await spawn())).toMatchObject({ image });
  });

  test("waits for a slow command", async () => {
    const { service, spawn } = await start({ ...server, ...doing({ stdout: "late", delayMs: 120 }) });
    expect(await service.follow(await spawn())).toMatchObject({
      status: "SUCCESS",
      stdout: { text: "late" },
    });
  });

  test("replaces output bytes that are not UTF-8", async () => {
    const bytes = new Uint8Array([0x61, 0xff, 0xc3, 0xa9, 0xe2, 0x82]);
    const { service, spawn } = await start({ ...server, ...doing({ stdout: bytes }) });
    expect((await service.follow(await spawn())).stdout).toEqual({
      text: "a\ufffdé\ufffd",
      truncated: false,
    });
  });

  test("waits less than 0.3 s for seven commands that end at once", async () => {
    const clock = impatient();
    const { service, spawn } = await start(server, { clock });
    await service.follow(await spawn());
    const started = clock.now();
    for (let count = 0; count < 7; count++) await service.follow(await spawn());
    expect(clock.now() - started).toBeLessThan(300);
  });

  test("stops waiting on an interruption, and cancels the command if it can", async () => {
    const { fake, service, spawn, interrupt } = await start({
      ...server,
      ...doing({ until: new Promise(() => {}) }),
    });
    const operation = await spawn();
    const followed = rejection(service.follow(operation));
    while (looks(fake).length + connections(fake).length === 0) await Bun.sleep(1);
    const reason = new Error("interrupted");
    interrupt.abort(reason);
    expect(await followed).toBe(reason);
    const canCancel = server.sixCallsOnly !== true;
    expect(await service.cancel(operation)).toBe(canCancel);
    expect(fake.state.operations.get(operation)?.record.status).toBe(canCancel ? "CANCELLED" : "EXECUTING");
  });
});

test.each([
  ["events", {}],
  ["polling", { events: false }],
])("a command without output for a minute causes a notice (%s)", async (_, server) => {
  let release = () => {};
  const until = new Promise<void>((resolve) => {
    release = resolve;
  });
  const clock = createManualClock();
  const { service, spawn, notices } = await start({ ...server, ...doing({ until }) }, { clock });
  const operation = await spawn();
  const began = clock.now();
  let noticedAt: number | undefined;
  let isOver = false;
  const outcome = service.follow(operation).finally(() => {
    isOver = true;
  });
  const notes = () => notices.filter(({ level }) => level === "info").map(({ text }) => text);
  while (!isOver) {
    await clock.advance(1000);
    // Responses on their way arrive before the next second.
    await Bun.sleep(3);
    if (notes().length === 0) continue;
    noticedAt ??= clock.now();
    release();
  }
  expect(await outcome).toMatchObject({ status: "SUCCESS" });
  expect(notes()[0]).toBe(`operation ${operation} is still running, after 1 min`);
  // How many seconds of this clock the end takes to arrive depends on the machine's load.
  expect((noticedAt ?? 0) - began).toBeLessThan(70_000);
});

describe("events", () => {
  test("have output while it is written, also if a character is split", async () => {
    const [first = 0, second = 0] = new TextEncoder().encode("é");
    let release = () => {};
    const until = new Promise<void>((resolve) => {
      release = resolve;
    });
    const chunks = [
      { stream: "stdout" as const, data: "1\n" },
      { stream: "stderr" as const, data: "warning\n" },
      { stream: "stdout" as const, data: new Uint8Array([first]) },
      { stream: "stdout" as const, data: new Uint8Array([second, 0x0a]) },
    ];
    const { service, spawn } = await start(doing({ chunks, until }));
    const seen: OutputChunk[] = [];
    const outcome = service.follow(await spawn(), (chunk) => seen.push(chunk));
    while (seen.length < 3) await Bun.sleep(1);
    expect(seen).toEqual([
      { stream: "stdout", text: "1\n" },
      { stream: "stderr", text: "warning\n" },
      { stream: "stdout", text: "é\n" },
    ]);
    release();
    expect(await outcome).toMatchObject({ stdout: { text: "1\né\n" }, stderr: { text: "warning\n" } });
  });

  test("need one stream, and no request for the record if they have everything", async () => {
    const { fake, service, spawn } = await start();
    await service.follow(await spawn());
    expect(connections(fake)).toHaveLength(1);
    expect(looks(fake)).toHaveLength(0);
  });

  test("leave it to the record why a command has failed", async () => {
    const { fake, service, spawn } = await start(doing({ exitCode: 3 }));
    expect(await service.follow(await spawn())).toMatchObject({ exitCode: 3 });
    expect(looks(fake)).toHaveLength(1);
  });

  test("have output that the record leaves out", async () => {
    const { service, spawn } = await start(doing({ stdout: "x".repeat(1000), truncateAt: 10 }));
    expect((await service.follow(await spawn())).stdout).toEqual({
      text: "x".repeat(1000),
      truncated: false,
    });
  });

  test.each([400, 404, 405, 406])("are not requested again after a refusal with %d", async (status) => {
    const { fake, service, spawn } = await start({
      ...doing({ stdout: "hi" }),
      intercept: ({ url }) => (url.includes("/events") ? new Response("", { status }) : undefined),
    });
    for (let count = 0; count < 3; count++) {
      expect((await service.follow(await spawn())).stdout.text).toBe("hi");
    }
    // 400 may also be about the value of `follow`, so another one is tried.
    expect(connections(fake)).toHaveLength(status === 400 ? 2 : 1);
  });

  test("are not requested again after an HTML page of a proxy", async () => {
    const { fake, service, spawn } = await start({
      intercept: ({ url }) => (url.includes("/events") ? new Response("<html>") : undefined),
    });
    expect(await service.follow(await spawn())).toMatchObject({ status: "SUCCESS" });
    await service.follow(await spawn());
    expect(connections(fake)).toHaveLength(1);
  });

  test("are requested again if they are not ready (425)", async () => {
    let left = 2;
    const { fake, service, spawn } = await start({
      ...doing({ stdout: "hi", delayMs: 300 }),
      intercept: ({ url }) =>
        url.includes("/events") && left-- > 0 ? new Response("", { status: 425 }) : undefined,
    });
    const seen: OutputChunk[] = [];
    await service.follow(await spawn(), (chunk) => seen.push(chunk));
    expect(connections(fake)).toHaveLength(3);
    expect(seen).toEqual([{ stream: "stdout", text: "hi" }]);
  });

  test("are not requested again if they are not ready but the command has ended", async () => {
    const { fake, service, spawn } = await start({
      ...doing({ stdout: "hi" }),
      intercept: ({ url }) => (url.includes("/events") ? new Response("", { status: 425 }) : undefined),
    });
    expect((await service.follow(await spawn())).stdout.text).toBe("hi");
    expect(connections(fake)).toHaveLength(1);
  });

  test("are replaced by the record if they are gone (410)", async () => {
    const { fake, service, spawn } = await start({
      ...doing({ stdout: "hi" }),
      intercept: ({ url }) => (url.includes("/events") ? new Response("", { status: 410 }) : undefined),
    });
    expect((await service.follow(await spawn())).stdout.text).toBe("hi");
    // Only this operation's log is gone; the next operation may have one.
    await service.follow(await spawn());
    expect(connections(fake)).toHaveLength(2);
  });
});

describe("polling", () => {
  test("requests the record at once, then after 50 ms, then at growing intervals up to 2 s", async () => {
    const clock = impatient();
    let left = 14;
    const { fake, service, spawn } = await start(
      {
        events: false,
        intercept: ({ method, url }) => {
          const isLook = method === "GET" && /operations\/[^/]+$/.test(url);
          return isLook && left-- > 0 ? Response.json({ status: "EXECUTING" }) : undefined;
        },
      },
      { clock },
    );
    await service.follow(await spawn());
    expect(looks(fake)).toHaveLength(15);
    const waits = clock.sleeps
      .filter((milliseconds) => milliseconds <= 2000 && milliseconds !== 1000)
      .map(Math.round);
    expect(waits).toEqual([50, 75, 113, 169, 253, 380, 570, 854, 1281, 1922, 2000, 2000, 2000, 2000]);
  });

  test("waits as long as the service's Retry-After says", async () => {
    const clock = impatient();
    let left = 1;
    const { service, spawn } = await start(
      {
        events: false,
        intercept: ({ method, url }) =>
          method === "GET" && /operations\/[^/]+$/.test(url) && left-- > 0
            ? Response.json({ status: "PENDING" }, { headers: { "retry-after": "5" } })
            : undefined,
      },
      { clock },
    );
    await service.follow(await spawn());
    expect(clock.sleeps).toContain(5000);
  });

  test("reports the truncation of each stream separately", async () => {
    const { service, spawn } = await start({
      events: false,
      ...doing({ stdout: "x".repeat(100), stderr: "short", truncateAt: 10 }),
    });
    expect(await service.follow(await spawn())).toMatchObject({
      stdout: { text: "x".repeat(10), truncated: true },
      stderr: { text: "short", truncated: false },
    });
  });

  test("accepts statuses in upper or lower case", async () => {
    const { service, spawn } = await start({
      events: false,
      intercept: ({ method }) =>
        method === "GET"
          ? Response.json({ status: "success", result: { image: "i", exit_code: 3, stdout: "flat" } })
          : undefined,
    });
    expect(await service.follow(await spawn())).toMatchObject({
      status: "SUCCESS",
      image: "i",
      exitCode: 3,
      stdout: { text: "flat", truncated: false },
    });
  });

  test.each<[state: object, exitCode: number | undefined]>([
    [{ exit_code: 0, signal: -1 }, 0],
    [{ exit_code: 0, signal: 0 }, 0],
    [{ exit_code: 0, signal: 9 }, 137],
    [{ exit_code: null, signal: 11 }, 139],
    [{ exit_code: 137, signal: 9 }, 137],
    [{ exit_code: -1, signal: 9 }, -1],
    [{}, undefined],
  ])("the state %j is that of a command with exit code %p", async (state, exitCode) => {
    const { service, spawn } = await start({
      events: false,
      intercept: ({ method }) =>
        method === "GET" ? Response.json({ status: "SUCCESS", metadata: { result: { state } } }) : undefined,
    });
    expect((await service.follow(await spawn())).exitCode).toBe(exitCode);
  });

  test("waits on an unknown status until the command's time is over, then fails", async () => {
    const clock = impatient();
    const { service, spawn, notices } = await start(
      {
        events: false,
        intercept: ({ method }) => (method === "GET" ? Response.json({ status: "PONDEROUS" }) : undefined),
      },
      { clock },
    );
    const before = clock.now();
    const error = await rejection(service.follow(await spawn()));
    expect(error).toMatchObject({
      message: expect.stringContaining('has the status "PONDEROUS", which bough does not know'),
    });
    expect(clock.now() - before).toBeGreaterThanOrEqual(610_000);
    expect(notices.filter(({ level }) => level === "warn")).toHaveLength(1);
  });

  test.each([true, false])(
    "waits for an operation that is too new to be known (events: %p)",
    async (events) => {
      let misses = 0;
      const { fake, service, spawn } = await start(
        {
          events,
          ...doing({ stdout: "hello\n" }),
          intercept: ({ method, url }) =>
            method === "GET" && url.includes("/operations/") && misses++ < 6
              ? Response.json({ error: "no such operation" }, { status: 404 })
              : undefined,
        },
        { clock: impatient() },
      );
      const live: string[] = [];
      const follow = async () => service.follow(await spawn(), ({ text }) => live.push(text));
      expect(await follow()).toMatchObject({ status: "SUCCESS", stdout: { text: "hello\n" } });
      expect([live, connections(fake).length]).toEqual(events ? [["hello\n"], 2] : [[], 2]);
      // Only a service that has no events of a known operation is not asked for them again.
      await follow();
      expect(connections(fake).length).toBe(events ? 3 : 2);
    },
  );

  test("fails for a missing operation after five seconds, or at once if it is not new", async () => {
    const clock = impatient();
    const { fake, service, spawn } = await start({}, { clock });
    const operation = await spawn();
    fake.state.operations.clear();
    const before = clock.now();
    expect(await rejection(service.follow(operation))).toBeInstanceOf(NotFoundError);
    expect(clock.now() - before).toBeWithin(5000, 8000);
    expect(await rejection(service.follow("another", undefined, undefined, 60))).toBeInstanceOf(
      NotFoundError,
    );
    expect(clock.now() - before).toBeWithin(5000, 8000);
  });
});

describe("cancelling", () => {
  test("succeeds for an operation that has ended", async () => {
    const { service, spawn } = await start();
    expect(await service.cancel(await spawn())).toBe(true);
  });

  test("succeeds for an operation that the service does not have", async () => {
    const { service } = await start();
    expect(await service.cancel("gone")).toBe(true);
  });

  test("waits until the service reports the operation's end", async () => {
    let looked = 0;
    const { fake, service, spawn } = await start({
      ...doing({ until: new Promise(() => {}) }),
      intercept: ({ method, url }) => {
        if (method === "DELETE") return new Response(null, { status: 202 });
        if (method !== "GET" || url.endsWith("/whoami")) return undefined;
        return Response.json({ status: ++looked < 3 ? "EXECUTING" : "CANCELLED" });
      },
    });
    expect(await service.cancel(await spawn())).toBe(true);
    expect(looks(fake)).toHaveLength(3);
  });

  test("gives up if the service does not respond", async () => {
    const clock = impatient();
    const { service, spawn } = await start(
      {
        ...doing({ until: new Promise(() => {}) }),
        intercept: ({ method }) => (method === "DELETE" ? new Promise(() => {}) : undefined),
      },
      { clock },
    );
    const cancelled = service.cancel(await spawn());
    await clock.sleeping(15_000);
    await clock.advance(15_000);
    expect(await cancelled).toBe(false);
  });
});
