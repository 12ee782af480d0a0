/** Requests to `bough serve` by an attacker who has no token, or wants to learn about the machine. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { type ServerProcess, startServer } from "../../support/server.ts";

const token = "token-of-my-own";
const home = temporaryDirectory();
const authorization = `Authorization: Bearer ${token}\r\n`;
let server: ServerProcess;
let stderr = "";

beforeAll(async () => {
  server = await startServer({ BOUGH_HOME: home }, "--listen", "127.0.0.1:0", "--token", token);
});
afterAll(async () => {
  stderr = (await server.stop()).stderr;
  // The server's log has no stack and no source excerpt, either.
  expect(stderr).not.toMatch(/\n\s+at |\d+ \| /);
});

/** Sends bytes. Returns what comes back until a response is complete or the server closes the connection. */
const send = (request: string) => exchange(request, isComplete);

/** Sends bytes. Returns all that comes back: a second response may come in a separate packet. */
const sendUntilClosed = (request: string) => exchange(request, () => false);

function isComplete(received: string): boolean {
  const [head = "", body] = received.split("\r\n\r\n");
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return body !== undefined && body.length >= length;
}

async function exchange(request: string, isEnough: (received: string) => boolean): Promise<string> {
  const { hostname, port } = new URL(server.url);
  const answer = Promise.withResolvers<void>();
  let received = "";
  const socket = await Bun.connect({
    hostname,
    port: Number(port),
    socket: {
      data: (_, bytes) => {
        received += bytes.toString("latin1");
        if (isEnough(received)) answer.resolve();
      },
      close: () => answer.resolve(),
      error: () => answer.resolve(),
    },
  });
  socket.write(Buffer.from(request, "latin1"));
  socket.shutdown();
  await answer.promise;
  socket.end();
  return received;
}

/** Checks that a response has no path of this machine, no page of Bun and no stack. */
function expectNoLeak(answer: string): void {
  for (const leak of [home, join(import.meta.dir, "../../.."), process.cwd(), "<html", "bun_version", ".ts:"])
    expect(answer).not.toContain(leak);
}

const get = (target: string, headers = "Host: localhost\r\n") =>
  `GET ${target} HTTP/1.1\r\n${headers}Connection: close\r\n\r\n`;

describe("without a token, a request is refused:", () => {
  test.each<[string, string]>([
    ["Bun's own page", get("/bun:info")],
    ["Bun's own page, by an absolute address", get("http://localhost/bun:info")],
    ["Bun's reload socket", get("/_bun/hmr", "Host: localhost\r\nUpgrade: websocket\r\n")],
    ["Bun's source page", get("/_bun/src/main.ts")],
    ["a source file", get("/src:/etc/passwd")],
    ["a path with ..", get("/v1/../../../etc/passwd")],
    ["an address of another host", get("http://evil.example/v1/images")],
    ["an invalid address", get("http://[")],
    ["a bracket as Host", get("/v1/images", "Host: [::::\r\n")],
    ["no Host", get("/v1/images", "")],
    ["two Hosts", get("/v1/images", "Host: a\r\nHost: b\r\n")],
    ["HTTP/1.0", "GET /v1/images HTTP/1.0\r\n\r\n"],
    ["CONNECT", "CONNECT 127.0.0.1:22 HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["OPTIONS *", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["TRACE", "TRACE / HTTP/1.1\r\nHost: a\r\n\r\n"],
    ["a header of 200 kB", get("/v1/images", `Host: a\r\nX: ${"a".repeat(200_000)}\r\n`)],
    ["5000 headers", get("/v1/images", `Host: a\r\n${"X: a\r\n".repeat(5000)}`)],
    ["a target of 200 kB", get(`/${"a".repeat(200_000)}`)],
    ["bad percent-encoding", get("/%zz%ff%00")],
    ["the token as another scheme", get("/v1/images", `Host: a\r\nAuthorization: Basic ${token}\r\n`)],
    [
      "the token in capitals",
      get("/v1/images", `Host: a\r\nAuthorization: Bearer ${token.toUpperCase()}\r\n`),
    ],
    ["a part of the token", get("/v1/images", `Host: a\r\nAuthorization: Bearer ${token.slice(0, -1)}\r\n`)],
    ["the token and more", get("/v1/images", `Host: a\r\n${authorization}Authorization: Bearer x\r\n`)],
    ["the token on a folded line", get("/v1/images", `Host: a\r\nAuthorization:\r\n Bearer ${token}\r\n`)],
    ["the token in the address", get(`/v1/images?authorization=Bearer%20${token}`)],
    ["TLS", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"],
    ["HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"],
    ["line feeds alone", `GET /v1/images HTTP/1.1\nHost: a\n${authorization.replace("\r", "")}\n`],
  ])("%s", async (_, request) => {
    const answer = await send(request);
    // An empty response is fine, too: the server closed the connection.
    expect(answer).toMatch(/^$|^HTTP\/1\.1 (400|401|404|405|431|505) /);
    expectNoLeak(answer);
  });
});

/** Two requests in one, of which a proxy before the server may see only one. */
describe("a request that hides another is refused:", () => {
  const hidden = `GET /v1/images HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n`;
  test.each<[string, string]>([
    ["a length and chunks", `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["two lengths", `Content-Length: 0\r\nContent-Length: ${hidden.length}\r\n\r\n${hidden}`],
    ["a negative length", `Content-Length: -1\r\n\r\n${hidden}`],
    ["a length in hexadecimal", `Content-Length: 0x10\r\n\r\n${hidden}`],
    ["Transfer-Encoding with chunked twice", `Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["Transfer-Encoding xchunked", `Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n${hidden}`],
    ["a space before the colon", `Content-Length : ${hidden.length}\r\n\r\n${hidden}`],
    ["an invalid chunk length", `Transfer-Encoding: chunked\r\n\r\nzz\r\n${hidden}`],
  ])("%s", async (_, rest) => {
    const answer = await sendUntilClosed(`POST /v1/files HTTP/1.1\r\nHost: a\r\n${rest}`);
    // If the head is valid, the server may refuse the missing token before it reads the body.
    expect(answer.match(/HTTP\/1\.1 \d+/g)?.join()).toMatch(/^(HTTP\/1\.1 401,)?HTTP\/1\.1 400$/);
    expectNoLeak(answer);
  });
});

describe("with the token, a client of another kind is served:", () => {
  test.each<[string, string]>([
    ["one of HTTP/1.0, without Host", `GET /v1/images HTTP/1.0\r\n${authorization}\r\n`],
    [
      "one that writes the scheme in small letters",
      get("/v1/images", `Host: a\r\nAuthorization: bearer ${token}\r\n`),
    ],
  ])("%s", async (_, request) => {
    expect(await send(request)).toStartWith("HTTP/1.1 200 OK");
  });
});

describe("with the token, an invalid address is a client error that reveals nothing:", () => {
  test.each<[string, string]>([
    ["a bracket as Host", get("/v1/images", `Host: [::::\r\n${authorization}`)],
    ["a space and a bad escape in Host", get("/v1/images", `Host: a%zz b\r\n${authorization}`)],
    ["markup in Host", get("/v1/images", `Host: <script>\r\n${authorization}`)],
    ["bad percent-encoding", get("/v1/images/%zz%ff/tag", `Host: a\r\n${authorization}`)],
    ["a double slash", get("//v1/images", `Host: a\r\n${authorization}`)],
    ["Bun's own page", get("/bun:info", `Host: localhost\r\n${authorization}`)],
  ])("%s", async (_, request) => {
    const answer = await send(request);
    expect(answer).toMatch(/^HTTP\/1\.1 (400|404|405) /);
    expectNoLeak(answer);
  });
});
