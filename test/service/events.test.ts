/** What goes wrong with event streams, and what comes of it. */
import { afterEach, describe, expect, test } from "bun:test";
import type { OutputChunk } from "../../src/service/service.ts";
import type { OperationEvent } from "../../src/service/wire/operation.ts";
import { frameOf } from "../fake-service/event-route.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf, type TestClient } from "./client.ts";

const fakes: FakeService[] = [];
afterEach(async () => {
  await Promise.all(fakes.splice(0).map((fake) => fake.close()));
});

const events: OperationEvent[] = (
  [
    ["init", 0, {}],
    ["stdout", 1, { value: "one ", encoding: "ascii" }],
    ["stdout", 1, { value: "dHdvIA==", encoding: "base64" }],
    ["a type of the future", 1, { value: "?" }],
    ["stdout", 1, { value: "three", encoding: "utf-8" }],
    ["exit", 1, { pid: 42, code: 0, signal: -1, timed_out: false }],
    ["completion", 0, { status: "SUCCESS" }],
  ] as const
).map(([type, spid, data], index) => ({
  id: index + 1,
  ts: "2026-01-01T00:00:00Z",
  spid,
  type,
  data: { ...data },
}));
const whole = "one two three";

/** The frames of the events `from` to `to`, both included. */
const frames = (from: number, to: number) =>
  events
    .slice(from - 1, to)
    .map(frameOf)
    .join("");

interface Bench extends TestClient {
  fake: FakeService;
  /** The `Last-Event-Id` of each connection. */
  resumes(): (string | undefined)[];
  follow(seen?: OutputChunk[]): Promise<{ text: string; truncated: boolean }>;
}

interface Script {
  /** What each connection to the events sends before it is closed, or left open. */
  streams: { text: string; leavesOpen?: boolean }[];
  /** The record's output, and how many looks find the command still running. */
  record?: { stdout: string; truncated?: boolean; runningFor?: number };
  clock?: ReturnType<typeof createManualClock>;
}

async function start({ streams, record = { stdout: whole }, clock }: Script): Promise<Bench> {
  let connection = 0;
  let running = record.runningFor ?? 0;
  const fake = await startFakeService({
    intercept: ({ url, method }) => {
      if (method !== "GET") return undefined;
      if (url.includes("/events")) {
        const { text, leavesOpen } = streams[connection++] ?? { text: "" };
        return streamOf(text, leavesOpen === true);
      }
      if (running-- > 0) return Response.json({ status: "EXECUTING" });
      const stdout = { value: record.stdout, encoding: "ascii", truncated: record.truncated ?? false };
      return Response.json({ status: "SUCCESS", metadata: { result: { state: { exit_code: 0 }, stdout } } });
    },
  });
  fakes.push(fake);
  const client = clientOf(fake.url, clock === undefined ? {} : { clock });
  return {
    fake,
    ...client,
    resumes: () => fake.requestsTo(/\/events$/).map(({ headers }) => headers["last-event-id"]),
    follow: async (seen = []) => (await client.service.follow("op", (chunk) => seen.push(chunk))).stdout,
  };
}

function streamOf(text: string, leavesOpen: boolean): Response {
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      controller.enqueue(new TextEncoder().encode(`: keepalive\n\n${text}`));
      if (!leavesOpen) controller.close();
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream; charset=utf-8" } });
}

/** Waits are over at once. */
const impatient = () => createManualClock((milliseconds) => milliseconds <= 500);

test("what was started beside the command says is not the command's, and its end is not the operation's", async () => {
  const beside = [
    { id: 2, ts: "", spid: 2, type: "stdout", data: { value: "beside", encoding: "ascii" } },
    { id: 3, ts: "", spid: 2, type: "truncated", data: { stream: "stdout", bytes_dropped: 9 } },
    { id: 4, ts: "", spid: 2, type: "exit", data: { pid: 43, code: 9, signal: -1 } },
    { id: 5, ts: "", spid: 1, type: "stdout", data: { value: "own", encoding: "ascii" } },
    { id: 6, ts: "", spid: 0, type: "completion", data: {} },
  ];
  const { follow } = await start({
    streams: [{ text: frames(1, 1) + beside.map(frameOf).join("") }],
    record: { stdout: "own" },
  });
  const seen: OutputChunk[] = [];
  expect(await follow(seen)).toEqual({ text: "own", truncated: false });
  expect(seen.map(({ text }) => text)).toEqual(["own"]);
});

describe("a stream that breaks off", () => {
  test("is taken up where it broke, and each output is reported once", async () => {
    const { follow, resumes } = await start({
      streams: [{ text: frames(1, 2) }, { text: frames(2, 4) }, { text: frames(5, 7) }],
      record: { stdout: "one", truncated: true, runningFor: 2 },
      clock: impatient(),
    });
    const seen: OutputChunk[] = [];
    expect(await follow(seen)).toEqual({ text: whole, truncated: false });
    expect(seen.map(({ text }) => text)).toEqual(["one ", "two ", "three"]);
    expect(resumes()).toEqual([undefined, "2", "4"]);
  });

  test("in the middle of a frame drops the half frame", async () => {
    const { follow } = await start({
      streams: [{ text: frames(1, 3).slice(0, -20) }, { text: frames(3, 7) }],
      record: { stdout: "", truncated: true, runningFor: 1 },
      clock: impatient(),
    });
    expect(await follow()).toEqual({ text: whole, truncated: false });
  });

  test("with sse_error is taken up likewise", async () => {
    const broken = `event: sse_error\ndata: {"error": "backend lost"}\n\n${frames(3, 7)}`;
    const { follow, resumes } = await start({
      streams: [{ text: frames(1, 2) + broken, leavesOpen: true }, { text: frames(3, 7) }],
      record: { stdout: "", truncated: true, runningFor: 1 },
      clock: impatient(),
    });
    expect(await follow()).toEqual({ text: whole, truncated: false });
    expect(resumes()).toEqual([undefined, "2"]);
  });

  test("when the command has ended is not taken up: the record has it all", async () => {
    const { follow, resumes } = await start({ streams: [{ text: frames(1, 2) }] });
    expect(await follow()).toEqual({ text: whole, truncated: false });
    expect(resumes()).toHaveLength(1);
  });

  test("again and again is left for polling", async () => {
    const { follow, resumes } = await start({
      streams: [],
      record: { stdout: whole, runningFor: 20 },
      clock: createManualClock((milliseconds) => milliseconds <= 2000 && milliseconds !== 1000),
    });
    expect(await follow()).toEqual({ text: whole, truncated: false });
    expect(resumes()).toHaveLength(4);
  });
});

describe("a stream that never ends", () => {
  test("is left two seconds after the command's exit, if the record says so", async () => {
    const clock = createManualClock();
    const { follow } = await start({ streams: [{ text: frames(1, 6), leavesOpen: true }], clock });
    const seen: OutputChunk[] = [];
    const followed = follow(seen);
    while (seen.length < 3) await Bun.sleep(1);
    await clock.advance(3000);
    expect(await followed).toEqual({ text: whole, truncated: false });
  });

  test("is left when nothing has happened for half a minute and the command has ended", async () => {
    const clock = createManualClock();
    const { follow, fake } = await start({ streams: [{ text: frames(1, 2), leavesOpen: true }], clock });
    const seen: OutputChunk[] = [];
    const followed = follow(seen);
    while (seen.length < 1) await Bun.sleep(1);
    await clock.advance(29_000);
    expect(fake.requestsTo(/operations\/op$/)).toHaveLength(0);
    await clock.advance(2000);
    expect(await followed).toEqual({ text: whole, truncated: false });
  });

  test("counts as dead when nothing comes for 45 s, not even a keepalive", async () => {
    const clock = createManualClock();
    const { follow, resumes, notices } = await start({
      streams: [{ text: frames(1, 2), leavesOpen: true }, { text: frames(3, 7) }],
      record: { stdout: "", truncated: true, runningFor: 2 },
      clock,
    });
    const seen: OutputChunk[] = [];
    const followed = follow(seen);
    while (seen.length < 1) await Bun.sleep(1);
    const before = clock.now();
    while (resumes().length < 2) {
      await clock.advance(500);
      await Bun.sleep(1);
    }
    expect(clock.now() - before).toBeGreaterThanOrEqual(45_000);
    expect(await followed).toEqual({ text: whole, truncated: false });
    expect(resumes()).toEqual([undefined, "2"]);
    expect(notices.map(({ text }) => text).join()).toContain("no data received for 45 s");
  });

  test("does not keep a finished command waiting", async () => {
    const { follow } = await start({ streams: [{ text: frames(1, 7), leavesOpen: true }] });
    expect(await follow()).toEqual({ text: whole, truncated: false });
  });
});

describe("which output counts", () => {
  const skipped = frames(1, 2) + frames(4, 7);
  const cut = `${frames(1, 5)}${frameOf({ id: 6, ts: "", spid: 1, type: "truncated", data: { stream: "stdout", bytes_dropped: 9 } })}${frameOf({ id: 7, ts: "", spid: 0, type: "completion", data: {} })}`;
  test.each([
    ["both have all", frames(1, 7), { stdout: whole }, { text: whole, truncated: false }],
    [
      "the record is cut",
      frames(1, 7),
      { stdout: "one", truncated: true },
      { text: whole, truncated: false },
    ],
    ["events were lost", skipped, { stdout: whole }, { text: whole, truncated: false }],
    [
      "events were lost and the record is cut",
      skipped,
      { stdout: "one t", truncated: true },
      { text: "one three", truncated: true },
    ],
    [
      "the service cut the events",
      cut,
      { stdout: "one t", truncated: true },
      { text: whole, truncated: true },
    ],
    [
      "the service cut the events, not the record",
      cut,
      { stdout: `${whole} and more` },
      { text: `${whole} and more`, truncated: false },
    ],
  ])("%s", async (_, text, record, expected) => {
    const { follow } = await start({ streams: [{ text }], record });
    expect(await follow()).toEqual(expected);
  });
});

describe("whoever takes all of the output", () => {
  const big = "0123456789".repeat(50_000);
  const stdout = (id: number, value: string) =>
    frameOf({ ...{ id, ts: "", spid: 1, type: "stdout" }, data: { value, encoding: "ascii" } });
  const image = "00000000-0000-4000-8000-000000000001";
  const ended = (id: number, exit: object, completion: object) =>
    frameOf({ ...{ id, ts: "", spid: 1, type: "exit" }, data: { ...exit } }) +
    frameOf({ ...{ id: id + 1, ts: "", spid: 0, type: "completion" }, data: { ...completion } });
  const success = { status: "SUCCESS", result_image_uuid: image };

  async function take({ streams, record }: Script) {
    const { service, fake } = await start({ streams, ...(record === undefined ? {} : { record }) });
    const seen: string[] = [];
    const rest: string[] = [];
    const outcome = await service.follow("op", ({ text }) => seen.push(text), {
      onRest: ({ text }) => rest.push(text),
    });
    return { outcome, seen: seen.join(""), rest, looks: fake.requestsTo(/\/op$/).length };
  }

  test("hears of it once: the outcome holds none", async () => {
    const taken = await take({ streams: [{ text: frames(1, 7) }] });
    expect(taken).toMatchObject({ seen: whole, rest: [], looks: 1 });
    expect(taken.outcome.stdout).toEqual({ text: "", truncated: false });
  });

  test("hears of what only the record has, and of all of it once more where events were lost", async () => {
    const cut = await take({ streams: [{ text: frames(1, 3) + frames(6, 6) }] });
    expect(cut).toMatchObject({ seen: "one two ", rest: ["three"] });
    const gap = await take({ streams: [{ text: frames(1, 2) + frames(5, 7) }] });
    expect(gap).toMatchObject({ seen: "one three", rest: [whole] });
  });

  test("is not sent much of it again with the record, where the events say how the command has ended", async () => {
    const text = stdout(1, big) + ended(2, { code: 7, timed_out: false }, success);
    const { outcome, looks } = await take({ streams: [{ text }] });
    expect(outcome).toMatchObject({ status: "SUCCESS", exitCode: 7, timedOut: false, image });
    expect(looks).toBe(0);
  });

  test.each<[string, string]>([
    ["no exit", stdout(1, big) + frameOf({ id: 2, ts: "", spid: 0, type: "completion", data: success })],
    ["no exit code", stdout(1, big) + ended(2, {}, success)],
    ["no image", stdout(1, big) + ended(2, { code: 0 }, { status: "SUCCESS" })],
    ["a status of the future", stdout(1, big) + ended(2, { code: 0 }, { ...success, status: "NEW" })],
    ["a gap", stdout(1, big) + ended(3, { code: 0 }, success)],
    ["little output", stdout(1, "0") + ended(2, { code: 0 }, success)],
  ])("has the record asked where the events have %s", async (_, text) => {
    expect((await take({ streams: [{ text }], record: { stdout: big } })).looks).toBe(1);
  });
});
