/** Faults of event streams, and the outcomes that bough reports. */
import { describe, expect, onTestFinished, test } from "bun:test";
import { NotFoundError } from "../../src/service/http/errors.ts";
import type { OutputChunk } from "../../src/service/service.ts";
import type { OperationEvent } from "../../src/service/wire/operation.ts";
import { frameOf } from "../fake-service/event-route.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { clientOf, rejection, type TestClient } from "./client.ts";

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
  /** The text that each connection to the events sends before it is closed or left open. */
  streams: { text: string; leavesOpen?: boolean }[];
  /** The record's output, and the number of requests that find the command still running. */
  record?: { stdout: string; truncated?: boolean; runningFor?: number; state?: object };
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
      const state = record.state ?? { exit_code: 0 };
      return Response.json({ status: "SUCCESS", metadata: { result: { state, stdout } } });
    },
  });
  onTestFinished(() => fake.close());
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

/** A clock that skips short waits. */
const impatient = () => createManualClock((milliseconds) => milliseconds <= 500);

test.each([400, 422])("a service that allows only follow=1 is asked for that (%p)", async (status) => {
  const { fake, follow } = await start({ streams: [{ text: frames(1, 7) }] });
  const { intercept } = fake;
  fake.intercept = (request, recorded) =>
    recorded.query.follow === "true"
      ? Response.json({ error: "follow must be one of: 0, 1" }, { status })
      : intercept?.(request, recorded);
  const seen: OutputChunk[] = [];
  await follow(seen);
  expect(seen.map(({ text }) => text).join("")).toBe(whole);
});

test("an operation that does not exist says nothing about the events of others", async () => {
  const { fake, service, follow } = await start({ streams: [{ text: frames(1, 7) }] });
  const { intercept } = fake;
  fake.intercept = (request, recorded) =>
    request.url.includes("/nosuch")
      ? Response.json({ error: "no such operation" }, { status: 404 })
      : intercept?.(request, recorded);
  expect(await rejection(service.follow("nosuch"))).toBeInstanceOf(NotFoundError);
  expect(await follow()).toEqual({ text: whole, truncated: false });
  expect(fake.requestsTo(/\/op\/events$/)).toHaveLength(1);
});

test("the output and exit of another process of the instance are not the command's", async () => {
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
  test("is resumed after the last event, and each output is reported once", async () => {
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

  test("in the middle of a frame is resumed before that frame", async () => {
    const { follow } = await start({
      streams: [{ text: frames(1, 3).slice(0, -20) }, { text: frames(3, 7) }],
      record: { stdout: "", truncated: true, runningFor: 1 },
      clock: impatient(),
    });
    expect(await follow()).toEqual({ text: whole, truncated: false });
  });

  test("with sse_error is resumed too", async () => {
    const broken = `event: sse_error\ndata: {"error": "backend lost"}\n\n${frames(3, 7)}`;
    const { follow, resumes } = await start({
      streams: [{ text: frames(1, 2) + broken, leavesOpen: true }, { text: frames(3, 7) }],
      record: { stdout: "", truncated: true, runningFor: 1 },
      clock: impatient(),
    });
    expect(await follow()).toEqual({ text: whole, truncated: false });
    expect(resumes()).toEqual([undefined, "2"]);
  });

  test.each([
    ["without ids", ""],
    ["with ids that are not numbers", "id: event-$1\n"],
  ])("%s and begins again with the first event reports each output once", async (_, id) => {
    const renamed = (to: number) =>
      frames(1, to)
        .replace(/^id: (\d+)\n/gm, id)
        .replaceAll(/"id":\d+,/g, "");
    const { follow } = await start({
      streams: [{ text: renamed(2) }, { text: renamed(4) }, { text: renamed(7) }],
      record: { stdout: "one", truncated: true, runningFor: 2 },
      clock: impatient(),
    });
    const seen: OutputChunk[] = [];
    expect(await follow(seen)).toEqual({ text: whole, truncated: false });
    expect(seen.map(({ text }) => text)).toEqual(["one ", "two ", "three"]);
  });

  test("without ids and goes on with output that begins alike loses no output silently", async () => {
    const frame = (type: string, data: object) =>
      `data: ${JSON.stringify({ ts: "2026-01-01T00:00:00Z", spid: 1, type, data })}\n\n`;
    const output = (value: string) => frame("stdout", { value, encoding: "ascii" });
    const end = frame("exit", { code: 0 }) + frame("completion", { status: "SUCCESS" });
    const { follow } = await start({
      streams: [
        { text: output(". ") + output("one ") },
        { text: output(". ") + output("two ") + output("three") + end },
      ],
      record: { stdout: ". one", truncated: true, runningFor: 1 },
      clock: impatient(),
    });
    expect(await follow()).toEqual({ text: ". one two three", truncated: true });
  });

  test("after the command's end is not resumed, because the record has all output", async () => {
    const { follow, resumes } = await start({ streams: [{ text: frames(1, 2) }] });
    expect(await follow()).toEqual({ text: whole, truncated: false });
    expect(resumes()).toHaveLength(1);
  });

  test("four times is replaced by polling", async () => {
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
  test("is closed two seconds after the command's exit, if the record has ended", async () => {
    const clock = createManualClock();
    const { follow } = await start({ streams: [{ text: frames(1, 6), leavesOpen: true }], clock });
    const seen: OutputChunk[] = [];
    const followed = follow(seen);
    while (seen.length < 3) await Bun.sleep(1);
    await clock.advance(3000);
    expect(await followed).toEqual({ text: whole, truncated: false });
  });

  test("is closed after 30 s without an event, if the record has ended", async () => {
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

  test("is reconnected after 45 s without any data, even a keepalive", async () => {
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

describe("the reported output is complete if possible:", () => {
  const skipped = frames(1, 2) + frames(4, 7);
  const cut = `${frames(1, 5)}${frameOf({ id: 6, ts: "", spid: 1, type: "truncated", data: { stream: "stdout", bytes_dropped: 9 } })}${frameOf({ id: 7, ts: "", spid: 0, type: "completion", data: {} })}`;
  test.each([
    ["events and record are complete", frames(1, 7), { stdout: whole }, { text: whole, truncated: false }],
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
      "the service cut the events but not the record",
      cut,
      { stdout: `${whole} and more` },
      { text: `${whole} and more`, truncated: false },
    ],
  ])("%s", async (_, text, record, expected) => {
    const { follow } = await start({ streams: [{ text }], record });
    expect(await follow()).toEqual(expected);
  });
});

test.each<[exit: Record<string, unknown>, state: object, expected: object]>([
  [{ code: 3, signal: -1, timed_out: false }, {}, { exitCode: 3, timedOut: false }],
  [{ code: 0, signal: 9, timed_out: true }, { exit_code: null }, { exitCode: 137, timedOut: true }],
  [{ code: 3 }, { exit_code: 4 }, { exitCode: 4 }],
])("after the event exit %j, the record's state %j means %j", async (data, state, expected) => {
  const ended = [
    { id: 1, ts: "", spid: 1, type: "exit", data },
    { id: 2, ts: "", spid: 0, type: "completion", data: {} },
  ];
  const { service } = await start({
    streams: [{ text: ended.map(frameOf).join("") }],
    record: { stdout: "", state },
  });
  expect(await service.follow("op")).toMatchObject(expected);
});

describe("a caller that takes all output", () => {
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

  test("gets it once, and the outcome has none", async () => {
    const taken = await take({ streams: [{ text: frames(1, 7) }] });
    expect(taken).toMatchObject({ seen: whole, rest: [], looks: 1 });
    expect(taken.outcome.stdout).toEqual({ text: "", truncated: false });
  });

  test("gets the rest from the record, or all output again if events were lost", async () => {
    const cut = await take({ streams: [{ text: frames(1, 3) + frames(6, 6) }] });
    expect(cut).toMatchObject({ seen: "one two ", rest: ["three"] });
    const gap = await take({ streams: [{ text: frames(1, 2) + frames(5, 7) }] });
    expect(gap).toMatchObject({ seen: "one three", rest: [whole] });
  });

  test("does not cause a request for the record if the events have a large output and the command's result", async () => {
    const text = stdout(1, big) + ended(2, { code: 7, timed_out: false }, success);
    const { outcome, looks } = await take({ streams: [{ text }] });
    expect(outcome).toMatchObject({ status: "SUCCESS", exitCode: 7, timedOut: false, image });
    expect(looks).toBe(0);
  });

  test.each<[string, string]>([
    ["no exit", stdout(1, big) + frameOf({ id: 2, ts: "", spid: 0, type: "completion", data: success })],
    ["no exit code", stdout(1, big) + ended(2, {}, success)],
    ["no image", stdout(1, big) + ended(2, { code: 0 }, { status: "SUCCESS" })],
    ["an unknown status", stdout(1, big) + ended(2, { code: 0 }, { ...success, status: "NEW" })],
    ["a gap", stdout(1, big) + ended(3, { code: 0 }, success)],
    ["a later beginning and little output", stdout(2, "0") + ended(3, { code: 0 }, success)],
    ["a failure and little output", stdout(1, "0") + ended(2, { code: 1 }, success)],
  ])("causes a request for the record if the events have %s", async (_, text) => {
    expect((await take({ streams: [{ text }], record: { stdout: big } })).looks).toBe(1);
  });
});
