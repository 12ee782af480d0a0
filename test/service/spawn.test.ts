/** An instance is started once, also if bough cannot know whether the service has received the request. */
import { describe, expect, onTestFinished, test } from "bun:test";
import { UnknownOutcomeError } from "../../src/service/http/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { saying } from "../support/saying.ts";
import { clientOf, rejection } from "./client.ts";
import { rawAnswer, startRawServer } from "./raw-server.ts";

const impatient = () => createManualClock((milliseconds) => milliseconds < 15_000);

async function start(options: FakeServiceOptions = {}) {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  const request = { image: fake.state.addImage(), command: "make", shell: true, cwd: "/", disposable: false };
  return { fake, request };
}

/** Makes the service start the instance, and a proxy respond with an error. */
function loseAnswers(fake: FakeService): void {
  fake.overrule = ({ method, path }) =>
    method === "POST" && path === "/v1/instances"
      ? new Response("<html><title>Gateway lost</title></html>", { status: 502 })
      : undefined;
}

test("a request that a full disk refuses is neither looked for nor sent again", async () => {
  const { fake, request } = await start();
  fake.intercept = (_, { path }) =>
    path === "/v1/instances" ? Response.json({ error: "the disk is full" }, { status: 507 }) : undefined;
  const { service } = clientOf(fake.url);
  expect(await rejection(service.spawn(request, { mayRunTwice: true }))).toMatchObject({
    message: expect.stringMatching(/507 Insufficient Storage: the disk is full$/),
    hint: saying("Free space"),
  });
  expect(fake.requestsTo("POST /v1/instances")).toHaveLength(1);
  expect(fake.requestsTo("GET /v1/operations")).toBeEmpty();
});

describe("a lost response", () => {
  test.each([0, 1])("makes bough find the operation in the list, after %d lists without it", async (late) => {
    const { fake, request } = await start();
    let looks = 0;
    fake.intercept = (_, { path }) =>
      path === "/v1/operations" && looks++ < late ? Response.json([]) : undefined;
    loseAnswers(fake);
    const { service, notices } = clientOf(fake.url, { clock: impatient() });
    const operation = await service.spawn(request);
    expect([...fake.state.operations.keys()]).toEqual([operation]);
    expect(fake.requestsTo("POST /v1/instances")).toHaveLength(1);
    expect(fake.requestsTo("GET /v1/operations")).toHaveLength(late + 1);
    expect(fake.requestsTo("GET /v1/operations")[0]?.query).toMatchObject({ kind: "instance" });
    expect(notices.at(-1)?.text).toEndWith(`the service is running it anyway, as ${operation}`);
  });

  test("makes bough search the list by the service's clock, if that is hours behind", async () => {
    const { fake, request } = await start();
    const clock = createManualClock((milliseconds) => milliseconds < 15_000);
    const date = new Date(clock.now() - 6 * 3600_000).toUTCString();
    fake.intercept = (_, { path, query }) => {
      if (path !== "/v1/operations") return undefined;
      const isFound = Date.parse(query.since ?? "") <= Date.parse(date);
      const found = [...fake.state.operations.keys()].map((uuid) => ({ uuid, kind: "instance" }));
      return Response.json(isFound ? found : [], { headers: { date } });
    };
    loseAnswers(fake);
    const { service } = clientOf(fake.url, { clock });
    expect(await service.spawn(request)).toBe([...fake.state.operations.keys()][0] ?? "");
    expect(fake.requestsTo("POST /v1/instances")).toHaveLength(1);
  });

  test("makes bough search the whole list, also if its pages have one operation each", async () => {
    const { fake, request } = await start();
    for (const random of [0.5, 0.6])
      await clientOf(fake.url, { random: () => random }).service.spawn(request);
    fake.intercept = async ({ headers }, { path, query }) => {
      if (path !== "/v1/operations" || query.kind === undefined) return undefined;
      const ids = [...fake.state.operations.keys()];
      const all = (await (await fake.handle(new Request(`${fake.url}${path}`, { headers }))).json()) as {
        uuid: string;
      }[];
      return Response.json(all.filter(({ uuid }) => uuid === ids[Number(query.offset ?? 0)]));
    };
    loseAnswers(fake);
    const operation = await clientOf(fake.url, { clock: impatient() }).service.spawn(request);
    expect([...fake.state.operations.keys()].indexOf(operation)).toBe(2);
    expect(fake.requestsTo("POST /v1/instances")).toHaveLength(3);
  });

  test("does not make bough take the same command of another client", async () => {
    const { fake, request } = await start();
    const others = clientOf(fake.url, { random: () => 0.5 }).service;
    await others.spawn(request);
    loseAnswers(fake);
    const operation = await clientOf(fake.url, { random: () => 0.6 }).service.spawn(request);
    await others.spawn(request);
    expect([...fake.state.operations.keys()].indexOf(operation)).toBe(1);
  });

  test("is an error with the likely operation if the service does not report the request id", async () => {
    const { fake, request } = await start({ reportsLimits: false });
    loseAnswers(fake);
    const error = await rejection(clientOf(fake.url, { clock: impatient() }).service.spawn(request));
    const [operation] = fake.state.operations.keys();
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    expect(error).toMatchObject({
      message: expect.stringContaining(
        `502 Bad Gateway: Gateway lost; it is unknown whether the service is running the command: it may be ${operation}`,
      ),
      hint: saying(`bough kill ${operation}`),
    });
    expect(fake.state.instances).toHaveLength(1);
  });

  test.each([
    [
      "of a request that was not received",
      () => new Response("", { status: 502 }),
      "the command is not in its list of operations",
    ],
    ["of a service without a list", undefined, "the service can't list its operations"],
  ])("%s is an error that says what is unknown", async (_, answer, message) => {
    const { fake, request } = await start(answer === undefined ? { sixCallsOnly: true } : {});
    fake.intercept = ({ method }) =>
      method === "POST" ? (answer?.() ?? new Response("", { status: 502 })) : undefined;
    const error = await rejection(clientOf(fake.url, { clock: impatient() }).service.spawn(request));
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    expect(error).toMatchObject({
      message: expect.stringContaining(
        `it is unknown whether the service is running the command: ${message}`,
      ),
      hint: saying("bough does not send it again, because it could run twice."),
    });
    expect(fake.requestsTo("POST /v1/instances")).toHaveLength(1);
  });

  describe("of a request that may run twice", () => {
    const twice = { mayRunTwice: true };
    /** Loses the first `count` requests, or their responses if `isReceived`. */
    function lose(fake: FakeService, count: number, isReceived: boolean): void {
      let lost = 0;
      const strikes = (method: string) => method === "POST" && lost < count && lost++ >= 0;
      const gone = () => new Response("", { status: 502 });
      if (isReceived) fake.overrule = ({ method }) => (strikes(method) ? gone() : undefined);
      else fake.intercept = ({ method }) => (strikes(method) ? gone() : undefined);
    }

    test.each([
      { title: "not received and not in the list", lost: 1, isReceived: false, runs: 1 },
      { title: "not received, twice", lost: 2, isReceived: false, runs: 1 },
      { title: "received and in the list", lost: 1, isReceived: true, runs: 1 },
      { title: "received, without a list", lost: 1, isReceived: true, plain: true, runs: 2 },
      { title: "not received, without a list", lost: 1, isReceived: false, plain: true, runs: 1 },
      {
        title: "received, with a list without request ids",
        lost: 1,
        isReceived: true,
        ids: false,
        runs: 2,
      },
    ])("is repaired if the request was $title, with $runs run(s)", async (row) => {
      const { fake, request } = await start({
        sixCallsOnly: row.plain === true,
        reportsLimits: row.ids ?? true,
      });
      lose(fake, row.lost, row.isReceived);
      const { service, notices } = clientOf(fake.url, { clock: impatient() });
      const operation = await service.spawn(request, twice);
      expect([...fake.state.operations.keys()].at(-1)).toBe(operation);
      expect(fake.state.instances).toHaveLength(row.runs);
      const warns = notices.some(({ text }) => text.includes("it may run twice there"));
      expect(warns).toBe(row.plain === true || row.ids === false);
    });

    test.each([
      { title: "three times with a list", lost: 3, plain: false, sent: 3 },
      { title: "twice without a list", lost: 2, plain: true, sent: 2 },
    ])("$title is an error that says what is unknown", async ({ lost, plain, sent }) => {
      const { fake, request } = await start({ sixCallsOnly: plain });
      lose(fake, lost, false);
      const { service } = clientOf(fake.url, { clock: impatient() });
      expect(await rejection(service.spawn(request, twice))).toBeInstanceOf(UnknownOutcomeError);
      expect(fake.requestsTo("POST /v1/instances")).toHaveLength(sent);
    });
  });

  describe("of a step that was run before", () => {
    const step = { requestId: 7, mayRunTwice: true };
    /** `seconds`: the time between the earlier operation and the lost request. */
    test.each([
      { title: "by this machine just now, and not received", seconds: 0, isKnown: true, isReceived: false },
      { title: "by another machine, and not received", seconds: 10, isKnown: false, isReceived: false },
      { title: "by this machine just now, and received", seconds: 0, isKnown: true, isReceived: true },
      { title: "by another machine, and received", seconds: 10, isKnown: false, isReceived: true },
    ])("$title is the operation of that request", async ({ seconds, isKnown, isReceived }) => {
      const { fake, request } = await start();
      const clock = createManualClock((milliseconds) => milliseconds < 15_000);
      const { service, notices } = clientOf(fake.url, { clock });
      const earlier = await service.spawn(request, step);
      fake.state.pass(seconds);
      await clock.advance(seconds * 1000);
      let lost = 0;
      fake.intercept = async (received, { method }) => {
        if (method !== "POST" || lost++ > 0) return undefined;
        if (isReceived) await fake.handle(received);
        return new Response("", { status: 502 });
      };
      const repeats = { isOfAnother: (operation: string) => isKnown && operation === earlier };
      const operation = await service.spawn(request, { ...step, repeats });
      expect([...fake.state.operations.keys()]).toEqual([earlier, operation]);
      const isUncertain = notices.some(({ text }) => text.includes("it may run twice there"));
      expect(isUncertain).toBe(!isKnown && !isReceived);
    });
  });

  test("after an interruption makes bough find and cancel the operation", async () => {
    const { fake, request } = await start({ run: () => ({ until: new Promise(() => {}) }) });
    const clock = createManualClock();
    fake.intercept = async (received) => {
      if (received.method !== "POST") return undefined;
      fake.intercept = undefined;
      await fake.handle(received);
      return await new Promise<never>(() => {});
    };
    const { service, interrupt, notices } = clientOf(fake.url, { clock });
    const spawned = rejection(service.spawn(request));
    while (fake.state.operations.size === 0) await Bun.sleep(1);
    const reason = new Error("interrupted");
    interrupt.abort(reason);
    await clock.sleeping(5000);
    await clock.advance(5000);
    expect(await spawned).toBe(reason);
    const [operation] = fake.state.operations.values();
    expect(operation?.record.status).toBe("CANCELLED");
    expect(notices.at(-1)?.text).toBe(`operation ${operation?.record.uuid} is cancelled`);
  });
});

test("the request id is added to truncate_output_at, which the command cannot see", async () => {
  const { fake, request } = await start();
  const { service } = clientOf(fake.url, { random: () => 0.5 });
  await service.spawn(request);
  await service.spawn({ ...request, truncate_output_at: 1000 }, { requestId: 7 });
  expect(fake.state.instances).toEqual([
    { ...request, truncate_output_at: 65_536 + 2 ** 19 },
    { ...request, truncate_output_at: 1007 },
  ]);
});

test.each<[object, number]>([
  [{}, 4000],
  [{ "Keep-Alive": "timeout=10, max=100" }, 9000],
  [{ "Keep-Alive": "timeout=3" }, 2000],
])("an idle connection is not used, because the server may be closing it: %j", async (header, idle) => {
  const connections = new Set<unknown>();
  const server = await startRawServer((socket) => {
    connections.add(socket);
    socket.write(rawAnswer("200 OK", '{"uuid": "op-1", "images": []}', { ...header }));
  });
  onTestFinished(() => server.close());
  const clock = createManualClock();
  const { service } = clientOf(server.url, { clock });
  const request = { image: "i", command: "make", shell: true, cwd: "/", disposable: false };
  await service.listImages();
  await clock.advance(idle);
  await service.spawn(request);
  expect(connections.size).toBe(1);
  await clock.advance(idle + 1);
  await service.spawn(request);
  expect(connections.size).toBe(2);
});
