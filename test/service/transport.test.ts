import { describe, expect, onTestFinished, test } from "bun:test";
import { BoughError } from "../../src/errors.ts";
import { NotFoundError, UnknownOutcomeError } from "../../src/service/http/errors.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import type { FakeServiceOptions } from "../fake-service/options.ts";
import { saying } from "../support/saying.ts";
import { clientOf, rejection } from "./client.ts";
import { rawAnswer, startRawServer } from "./raw-server.ts";

async function start(options: FakeServiceOptions = {}): Promise<FakeService> {
  const fake = await startFakeService(options);
  onTestFinished(() => fake.close());
  return fake;
}

const token = "tok-5ecret";
/** A clock that skips waits before a repeat, but not deadlines. */
const impatient = () => createManualClock((milliseconds) => milliseconds < 15_000 || milliseconds === 17_000);

describe("every request", () => {
  test("has bough's name, the token and the project", async () => {
    const fake = await start({ token });
    const { service } = clientOf(fake.url, { token, project: "p-1" });
    await service.findImage("app");
    expect(fake.requests[0]?.headers).toMatchObject({
      authorization: `Bearer ${token}`,
      project: "p-1",
      "user-agent": "bough/0.0.0 (test)",
    });
  });

  test("goes below the base address's path, with or without slashes at its end", async () => {
    const fake = await start({ prefix: "/sandboxes/eu" });
    const { service } = clientOf(`${fake.url}//`);
    const image = fake.state.addImage("app:latest");
    expect(await service.findImage("app")).toEqual({ uuid: image });
    expect(service.address).toBe(fake.url);
  });

  test("accepts compressed responses and errors", async () => {
    const fake = await start({ gzip: true });
    const { service } = clientOf(fake.url);
    const image = fake.state.addImage("app:latest");
    expect(await service.findImage("app")).toEqual({ uuid: image });
    expect(await rejection(service.tagImage("gone", "app:1"))).toMatchObject({
      message: expect.stringContaining("no image gone"),
    });
  });
});

describe("an error has the call, the address, the status and the service's message:", () => {
  const answers: [what: string, response: () => Response, message: string][] = [
    [
      "JSON",
      () => Response.json({ error: "tag is taken", status: 422 }, { status: 422 }),
      "422 Unprocessable Entity: tag is taken",
    ],
    [
      "JSON of another shape",
      () => Response.json({ error: { message: "nope" } }, { status: 400 }),
      "400 Bad Request: nope",
    ],
    [
      "a proxy's page",
      () => page("<html><head><title>Gateway lost</title></head><body><h1>Sorry</h1></body></html>", 403),
      "403 Forbidden: Gateway lost",
    ],
    [
      "a page without a title",
      () => page("<!DOCTYPE html><style>b{}</style><body><b>Sorry</b>, gone</body>", 400),
      "400 Bad Request: Sorry , gone",
    ],
    ["plain text", () => new Response("out of cheese\n", { status: 418 }), "418 I'm a Teapot: out of cheese"],
    ["an empty body", () => new Response(null, { status: 400 }), "400 Bad Request"],
    ["broken JSON", () => new Response('{"error": "cut', { status: 400 }), '400 Bad Request: {"error": "cut'],
    [
      "text with control characters",
      () => new Response("\u001b[2Jboo\u0007\r\nhoo", { status: 400 }),
      "400 Bad Request: [2Jboo hoo",
    ],
  ];
  test.each(answers)("%s", async (_, response, message) => {
    const fake = await start({ intercept: () => response() });
    const { service } = clientOf(fake.url);
    const error = await rejection(service.tagImage("i", "app:1"));
    expect(error).toBeInstanceOf(BoughError);
    expect((error as BoughError).message).toBe(`PATCH ${fake.url}/v1/images/i/tag responded with ${message}`);
  });

  test("a very long message is cut", async () => {
    const fake = await start({ intercept: () => new Response("x".repeat(1_000_000), { status: 400 }) });
    const error = await rejection(clientOf(fake.url).service.tagImage("i", "app:1"));
    expect((error as BoughError).message.length).toBeLessThan(700);
  });

  test("404 is a NotFoundError", async () => {
    const fake = await start();
    expect(await rejection(clientOf(fake.url).service.tagImage("gone", "app:1"))).toBeInstanceOf(
      NotFoundError,
    );
  });

  test("401 without a token has a hint for giving one", async () => {
    const fake = await start({ token });
    expect(await rejection(clientOf(fake.url).service.tagImage("i", "app:1"))).toMatchObject({
      message: expect.stringContaining("401 Unauthorized: invalid or missing token"),
      hint: saying("No token was sent"),
    });
  });

  test("401 with a token has a hint that it is not accepted", async () => {
    const fake = await start({ token });
    const { service } = clientOf(fake.url, { token: "other" });
    expect(await rejection(service.tagImage("i", "app:1"))).toMatchObject({
      hint: saying("not accepted"),
    });
  });

  test("407 and a tunnel that a proxy refuses have a hint about the proxy, and are not repeated", async () => {
    const hint = expect.stringContaining("HTTPS_PROXY");
    const fake = await start({ intercept: () => new Response("<h1>who?</h1>", { status: 407 }) });
    const { service } = clientOf(fake.url);
    expect(await rejection(service.tagImage("i", "app:1"))).toMatchObject({ hint });

    const proxied = (input: string | URL | Request, init?: RequestInit) =>
      fetch(input, { ...init, proxy: fake.url } as RequestInit);
    const tunnelled = clientOf("https://service.example", { fetch: proxied }).service;
    const message = expect.stringMatching(/407 Proxy Authentication Required$/);
    expect(await rejection(tunnelled.tagImage("i", "app:1"))).toMatchObject({ message, hint });
  });

  test("a refused connection is given up after five seconds", async () => {
    const fake = await start();
    await fake.close();
    const clock = impatient();
    const error = await rejection(clientOf(fake.url, { clock }).service.findImage("app"));
    expect(error).toMatchObject({
      message: expect.stringMatching(/^GET .*: connection refused \(tried \d+ times\)$/),
    });
    // An address that has never answered is given up soon.
    expect(clock.sleeps.reduce((sum, wait) => sum + (wait < 15_000 ? wait : 0), 0)).toBeLessThanOrEqual(5000);
  });
});

describe("a call is sent again", () => {
  test("after a 503, with a debug message", async () => {
    let left = 3;
    const fake = await start({
      intercept: () => (left-- > 0 ? new Response("", { status: 503 }) : undefined),
    });
    const { service, notices } = clientOf(fake.url, { clock: impatient() });
    expect(await service.findImage("app")).toBeUndefined();
    expect(fake.requests).toHaveLength(4);
    expect(notices.map(({ level }) => level)).toEqual(["debug", "debug", "debug"]);
    expect(notices[0]?.text).toContain("503 Service Unavailable; trying again in 0.2 s");
  });

  test("after a 429, when its Retry-After is over", async () => {
    let left = 1;
    const fake = await start({
      intercept: () =>
        left-- > 0 ? new Response("", { status: 429, headers: { "retry-after": "17" } }) : undefined,
    });
    const clock = impatient();
    const { service, notices } = clientOf(fake.url, { clock });
    await service.findImage("app");
    expect(clock.sleeps).toContain(17_000);
    expect(notices).toMatchObject([{ level: "warn" }]);
  });

  test("after responses that are not JSON, three times in all", async () => {
    const fake = await start({
      intercept: () => page("<html><title>Log in to the Wi-Fi</title></html>", 200),
    });
    const error = await rejection(clientOf(fake.url, { clock: impatient() }).service.whoami());
    expect(error).toMatchObject({
      message: expect.stringContaining("and a body that is not JSON: <html>"),
    });
    expect(fake.requests).toHaveLength(3);
  });

  test("after an empty response instead of JSON", async () => {
    let left = 1;
    const fake = await start({ intercept: () => (left-- > 0 ? new Response(null) : undefined) });
    const { service, notices } = clientOf(fake.url, { clock: impatient() });
    expect(await service.findImage("app")).toBeUndefined();
    expect(notices).toMatchObject([
      { text: expect.stringContaining("responded with 200 and an empty body; trying again") },
    ]);
  });

  test("after a connection breaks in the middle of the response", async () => {
    const server = await startRawServer((socket, count) => {
      if (count === 0) socket.end(rawAnswer("200 OK", '{"images": [', { "Content-Length": "40" }));
      else socket.write(rawAnswer("200 OK", '{"images": []}'));
    });
    onTestFinished(() => server.close());
    const { service } = clientOf(server.url, { clock: impatient() });
    expect(await service.findImage("app")).toBeUndefined();
    expect(server.requests).toHaveLength(2);
  });

  test("if no response comes within half a minute", async () => {
    const server = await startRawServer((socket, count) => {
      if (count !== 1) socket.write(rawAnswer("200 OK", '{"images": []}'));
    });
    onTestFinished(() => server.close());
    const clock = createManualClock();
    const { service, notices } = clientOf(server.url, { clock });
    await service.findImage("app");
    const found = service.findImage("app");
    while (server.requests.length === 1) await Bun.sleep(1);
    await clock.advance(30_000);
    await clock.sleeping(200);
    await clock.advance(200);
    expect(await found).toBeUndefined();
    expect(notices.map(({ text }) => text)).toEqual([
      expect.stringMatching(/^GET .*: no answer yet, still waiting$/),
      expect.stringContaining("no answer within 30 s; trying again in 0.2 s"),
    ]);
  });
});

describe("redirects", () => {
  test("of a GET are followed on the same host", async () => {
    const fake = await start({
      intercept: ({ url }) =>
        new URL(url).searchParams.has("moved")
          ? undefined
          : new Response(null, { status: 302, headers: { location: "?moved=1" } }),
    });
    const image = fake.state.addImage("app:latest");
    expect(await clientOf(fake.url).service.findImage("app")).toEqual({ uuid: image });
  });

  test("to another host are refused, because it would get the token", async () => {
    const elsewhere = await start();
    const fake = await start({
      intercept: () =>
        new Response(null, { status: 307, headers: { location: `${elsewhere.url}/v1/images?key=${token}` } }),
    });
    const { service } = clientOf(fake.url, { token });
    const error = await rejection(service.listImages());
    expect(error).toMatchObject({
      message: expect.stringContaining(`redirects to ${elsewhere.url}/v1/images, which is not followed`),
      hint: saying("--url"),
    });
    expect(elsewhere.requests).toEqual([]);
    // A build asks only on bough's own account, and goes on without.
    expect(await service.findImage("app")).toBe("unsupported");
    expect(elsewhere.requests).toEqual([]);
  });

  test.each([301, 302])("%d of other methods is refused", async (status) => {
    const fake = await start({
      intercept: () => new Response(null, { status, headers: { location: "/v2" } }),
    });
    const error = await rejection(clientOf(fake.url).service.tagImage("i", "app:1"));
    expect(error).toMatchObject({
      message: expect.stringContaining("bough follows such redirects only for GET"),
    });
    expect(fake.requests).toHaveLength(1);
  });

  test.each([307, 308])("%d is followed with the method and the body", async (status) => {
    const fake = await start({
      intercept: ({ url }) =>
        new URL(url).searchParams.has("moved")
          ? undefined
          : new Response(null, { status, headers: { location: "?moved=1" } }),
    });
    const { service } = clientOf(fake.url);
    const image = fake.state.addImage();
    await service.tagImage(image, "app:1");
    expect(await service.findImage("app:1")).toEqual({ uuid: image });
    const stream = () => new Blob(["content"]).stream();
    expect(await service.uploadStream(stream)).toMatchObject({ size: 7 });
    const command = { image, command: "make", shell: true, cwd: "/", disposable: false };
    expect(await service.spawn(command)).toBe([...fake.state.operations.keys()].at(-1) ?? "");
    expect(fake.state.instances).toHaveLength(1);
  });

  test("in a circle are given up", async () => {
    const fake = await start({
      intercept: () => new Response(null, { status: 302, headers: { location: "/again" } }),
    });
    const error = await rejection(clientOf(fake.url).service.listImages());
    expect(error).toMatchObject({ message: expect.stringContaining("redirects more than 5 times") });
  });
});

describe("the token", () => {
  test("is in no error, even if the service repeats it", async () => {
    const fake = await start({
      intercept: ({ headers }) => new Response(`bad: ${headers.get("authorization")}`, { status: 400 }),
    });
    const { service, notices } = clientOf(fake.url, { token });
    const error = await rejection(service.tagImage("i", "app:1"));
    expect((error as BoughError).message).toContain("bad: Bearer ***");
    expect(Bun.inspect([error, notices], { depth: 10 })).not.toContain(token);
  });

  test("is not shown if it is invalid", () => {
    const make = () => clientOf("http://127.0.0.1:1", { token: `${token}\nX-Other: 1` });
    expect(make).toThrow("invalid token: it is empty or contains a character that is not allowed");
    expect(make).not.toThrow(token);
  });
});

test("an interruption ends a call at once with its reason", async () => {
  const server = await startRawServer(() => undefined);
  onTestFinished(() => server.close());
  const { service, interrupt } = clientOf(server.url);
  const found = rejection(service.findImage("app"));
  while (server.requests.length === 0) await Bun.sleep(1);
  const reason = new Error("interrupted");
  interrupt.abort(reason);
  expect(await found).toBe(reason);
  expect(await rejection(service.findImage("app"))).toBe(reason);
  expect(server.requests).toHaveLength(1);
});

describe("starting an instance", () => {
  const request = { image: "i", command: "make", shell: true, cwd: "/", disposable: false };

  test.each([
    ["the connection breaks", (): string => ""],
    ["a proxy gives up", () => rawAnswer("504 Gateway Timeout", "")],
    ["the answer is not JSON", () => rawAnswer("201 Created", "<html>")],
  ])("is never sent twice: %s", async (_, answer) => {
    const server = await startRawServer((socket) => {
      const text = answer();
      if (text === "") socket.destroy();
      else socket.write(text);
    });
    onTestFinished(() => server.close());
    const error = await rejection(clientOf(server.url, { clock: impatient() }).service.spawn(request));
    expect(error).toBeInstanceOf(UnknownOutcomeError);
    expect(error).toMatchObject({
      message: expect.stringContaining("it is unknown whether the service is running the command"),
    });
    expect(server.requests.filter((line) => line.startsWith("POST"))).toEqual(["POST /v1/instances"]);
  });

  test("is sent again if it was refused before any processing", async () => {
    let left = 2;
    const fake = await start({
      intercept: ({ method }) =>
        method === "POST" && left-- > 0 ? new Response("", { status: left === 0 ? 425 : 429 }) : undefined,
    });
    const image = fake.state.addImage();
    const operation = await clientOf(fake.url, { clock: impatient() }).service.spawn({ ...request, image });
    expect(fake.state.operations.has(operation)).toBe(true);
    expect(fake.requestsTo("POST /v1/instances")).toHaveLength(3);
  });

  test.each([
    ["says how far it is", (left: number) => `${left} to go`, true],
    ["says the same", () => "not yet", false],
  ])("is sent again for as long as a service that is not ready %s", async (_, text, succeeds) => {
    let left = 320;
    const fake = await start({
      intercept: () =>
        left-- > 0
          ? Response.json({ error: text(left) }, { status: 425, headers: { "retry-after": "1" } })
          : undefined,
    });
    const image = fake.state.addImage();
    const clock = impatient();
    const spawned = clientOf(fake.url, { clock }).service.spawn({ ...request, image });
    if (succeeds) expect(fake.state.operations.has(await spawned)).toBe(true);
    else expect(await rejection(spawned)).toMatchObject({ message: expect.stringContaining("not yet") });
  });

  test("accepts a Location instead of a body", async () => {
    const server = await startRawServer((socket) => {
      socket.write(rawAnswer("201 Created", "made", { Location: "/v1/operations/op-1" }));
    });
    onTestFinished(() => server.close());
    expect(await clientOf(server.url).service.spawn(request)).toBe("op-1");
  });

  test("reports the reason of a refusal", async () => {
    const fake = await start();
    const error = await rejection(clientOf(fake.url).service.spawn({ ...request, image: "gone" }));
    expect(error).toBeInstanceOf(NotFoundError);
    expect(error).toMatchObject({ message: expect.stringContaining("image gone not found") });
  });

  test("waits for the operation's id on an interruption, and cancels it", async () => {
    let answer = () => {};
    const held = new Promise<undefined>((resolve) => {
      answer = () => resolve(undefined);
    });
    const fake = await start({
      run: () => ({ until: new Promise(() => {}) }),
      intercept: ({ method }) => (method === "POST" ? held : undefined),
    });
    const image = fake.state.addImage();
    const { service, interrupt } = clientOf(fake.url);
    const spawned = rejection(service.spawn({ ...request, image }));
    while (!fake.requests.some(({ method }) => method === "POST")) await Bun.sleep(1);
    const reason = new Error("interrupted");
    interrupt.abort(reason);
    answer();
    expect(await spawned).toBe(reason);
    expect([...fake.state.operations.values()].map(({ record }) => record.status)).toEqual(["CANCELLED"]);
  });
});

function page(html: string, status: number): Response {
  return new Response(html, { status, headers: { "content-type": "text/html" } });
}
