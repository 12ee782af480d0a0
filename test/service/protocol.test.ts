/** HTTP/2 where the service chooses it. */
import { afterEach, beforeAll, expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { KnownProtocol } from "../../src/service/http/protocol.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeCertificate } from "../support/certificate.ts";
import { clientOf } from "./client.ts";

let certificate: ReturnType<typeof makeCertificate>;
beforeAll(() => {
  certificate = makeCertificate(temporaryDirectory());
});
const open: { close(): unknown }[] = [];
afterEach(async () => {
  for (const { close } of open.splice(0)) await close();
});

interface SecureService {
  fake: FakeService;
  url: string;
  /** The ports of clients, one for each connection. */
  ports: Set<number>;
}

/** Puts a server with TLS before a fake service. */
async function startSecure({ http2 }: { http2: boolean }): Promise<SecureService> {
  const fake = await startFakeService();
  const ports = new Set<number>();
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    tls: { key: certificate.key, cert: certificate.cert },
    ...(http2 ? { http2: true } : {}),
    fetch(request, { requestIP }) {
      ports.add(requestIP.call(server, request)?.port ?? 0);
      return fake.handle(request);
    },
  });
  open.push({ close: () => server.stop(true) }, fake);
  return { fake, url: server.url.origin, ports };
}

const trusting = (input: string | Request | URL, init?: RequestInit) =>
  fetch(input, { ...init, tls: { ca: certificate.cert } });

function connect({ url }: SecureService, knownProtocol: KnownProtocol, send = trusting) {
  const clock = createManualClock((milliseconds) => milliseconds < 10_000);
  return clientOf(url, { fetch: send, knownProtocol, clock: { ...clock, now: Date.now } }).service;
}

function remember(answer?: string): KnownProtocol & { answer: string | undefined } {
  const known: KnownProtocol & { answer: string | undefined } = {
    answer,
    get: () => known.answer,
    set: (value) => {
      known.answer = value;
    },
  };
  return known;
}

async function untilKnown(known: { answer: string | undefined }): Promise<void> {
  while (known.answer === undefined) await Bun.sleep(1);
}

function fileOf(text: string) {
  const absolutePath = join(temporaryDirectory(), "file");
  writeFileSync(absolutePath, text);
  return {
    absolutePath,
    size: text.length,
    sha256: new Bun.CryptoHasher("sha256").update(text).digest("hex"),
  };
}

const looks = ({ fake }: SecureService) =>
  fake.requests.filter(({ path, query }) => path === "/v1/images" && query.limit === "1").length;

test("a service that has HTTP/2 is asked once, and gets all later requests over one connection", async () => {
  const service = await startSecure({ http2: true });
  const known = remember();
  await connect(service, known).whoami();
  await untilKnown(known);
  expect(known.answer).toStartWith("http2 ");
  service.ports.clear();
  const later = connect(service, known);
  await Promise.all(Array.from({ length: 50 }, () => later.whoami()));
  expect(service.ports.size).toBe(1);
  expect(looks(service)).toBe(1);
});

test("a service without it is asked again only after a month", async () => {
  const service = await startSecure({ http2: false });
  const known = remember();
  await connect(service, known).whoami();
  await untilKnown(known);
  expect(known.answer).toStartWith("http1.1 ");
  const ask = async (days: number) => {
    const answer = `http1.1 ${Date.now() - days * 24 * 60 * 60 * 1000}`;
    known.answer = answer;
    await connect(service, known).whoami();
    await Bun.sleep(50);
    return known.answer !== answer;
  };
  expect(await ask(29)).toBe(false);
  expect(await ask(31)).toBe(true);
});

test("a service that no longer has it gets the same request over HTTP/1.1", async () => {
  const service = await startSecure({ http2: false });
  const known = remember(`http2 ${Date.now()}`);
  await connect(service, known).whoami();
  expect(service.fake.requestsTo("GET /v1/whoami")).toHaveLength(1);
  expect(known.answer).toStartWith("http1.1 ");
});

test.each<[string, (client: ReturnType<typeof connect>) => Promise<unknown>]>([
  ["a stream", (client) => client.uploadStream(() => new Blob(["abc"]).stream(), { contentLength: 3 })],
  ["a file of more than 64 KiB", (client) => client.uploadFiles([fileOf("x".repeat(64 * 1024 + 1))])],
])("%s has a connection of its own, since a shared one makes it wait for each window", async (_, send) => {
  const service = await startSecure({ http2: true });
  const client = connect(service, remember(`http2 ${Date.now()}`));
  await client.whoami();
  await client.uploadFiles([fileOf("short")]);
  expect(service.ports.size).toBe(1);
  await send(client);
  expect(service.ports.size).toBe(2);
  expect(service.fake.requestsTo("POST /v1/files")).toHaveLength(2);
});

test("a form, too, if it is a stream", async () => {
  const service = await startSecure({ http2: true });
  service.fake.intercept = async (request) => {
    if (request.method !== "POST") return undefined;
    await request.bytes();
    return request.headers.get("content-type")?.startsWith("multipart/")
      ? Response.json({ uuid: crypto.randomUUID() })
      : Response.json({ error: "multipart/form-data wanted" }, { status: 415 });
  };
  const client = connect(service, remember(`http2 ${Date.now()}`));
  await client.uploadFiles([fileOf("short")]);
  expect(service.ports.size).toBe(1);
  await client.uploadStream(() => new Blob(["abc"]).stream(), { contentLength: 3 });
  expect(service.ports.size).toBe(2);
});

test("a service that answers no more over it gets later requests over HTTP/1.1, and is asked again by the next process", async () => {
  const service = await startSecure({ http2: true });
  const known = remember(`http2 ${Date.now()}`);
  const cut = (input: string | Request | URL, init?: BunFetchRequestInit) =>
    init?.protocol === "http2" ? Promise.reject(new Error("cut")) : trusting(input, init);
  const client = connect(service, known, cut);
  await client.whoami();
  expect(known.answer).toBe("");
  service.ports.clear();
  await client.whoami();
  expect(service.ports.size).toBe(1);
});

test("an answer that comes when the command has closed its store is dropped", async () => {
  const service = await startSecure({ http2: true });
  let tries = 0;
  const closed = {
    get: () => undefined,
    set: () => {
      tries++;
      throw new Error("the database is closed");
    },
  };
  await connect(service, closed).whoami();
  while (tries === 0) await Bun.sleep(1);
});
