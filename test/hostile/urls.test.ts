/** `ADD <url>` from malicious and faulty servers. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
const open: { close(): unknown }[] = [];
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
  await service.close();
});

/** Starts a server with these responses to the first requests; all further requests get the last one. */
function serve(...answers: ((request: Request) => Response | Promise<Response>)[]) {
  const requests: { method: string; path: string; headers: Record<string, string> }[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { pathname, search } = new URL(request.url);
      const headers = Object.fromEntries(request.headers);
      requests.push({ method: request.method, path: pathname + search, headers });
      const answer = answers[Math.min(requests.length, answers.length) - 1];
      return answer === undefined ? new Response("content") : answer(request);
    },
  });
  open.push({ close: () => server.stop(true) });
  return { url: server.url.href.replace(/\/$/, ""), requests };
}

async function build(dockerfile: string, words: string[] = [], options: Partial<BoughOptions> = {}) {
  writeFiles(context, { Dockerfile: `FROM base:1\n${dockerfile}\nRUN use it\n` });
  const given = ["--url", service.url, "--token", "t0ken-t0ken", "-L", "debug", "build", ".", ...words];
  return await runBough(given, { workingDirectory: context, environment: { BOUGH_HOME: state }, ...options });
}

/** Returns the text of all files of the sessions. */
function stored(): string {
  const directory = join(state, "sessions");
  return readdirSync(directory)
    .map((name) => readFileSync(join(directory, name), "latin1"))
    .join("\n");
}

const retryingClock = () =>
  createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);

describe("credentials in an address", () => {
  const answer = () => new Response("content", { headers: { etag: '"1"' } });

  test.each([
    ["in the instruction", (host: string) => `ADD http://us3r:p4ssw0rd@${host}/file /f`],
    ["with an @ in the password", (host: string) => `ADD http://us3r:p4ssw0rd@@us3r@${host}/file /f`],
    [
      "from an ARG and an ENV",
      (host: string) => `ARG PASSWORD=p4ssw0rd\nENV SITE=http://us3r:$PASSWORD@${host}\nADD $SITE/file /f`,
    ],
    [
      "beside a RUN that uses them itself",
      (host: string) => `ADD http://us3r:p4ssw0rd@${host}/file /f\nRUN curl http://us3r:p4ssw0rd@${host}/`,
    ],
    ["in a query", (host: string) => `ADD http://us3r@${host}/file?access_token=p4ssw0rd&n=1 /f`],
  ])("%s are sent to that server, never shown and never stored", async (_, dockerfile) => {
    const source = serve(answer);
    const text = dockerfile(source.url.slice("http://".length));
    const ended = await build(text, ["--explain"]);
    expect(ended.exitCode).toBe(0);
    const { headers = {}, path } = source.requests[0] ?? {};
    expect(`${headers.authorization} ${path}`).toMatch(
      new RegExp(`${btoa("us3r:p4ssw0rd")}|${btoa("us3r:p4ssw0rd@@us3r")}|p4ssw0rd`),
    );
    await build(`${text}\nENV OTHER=1`, ["--explain", "--progress", "json"]).then((again) => {
      expect(again.stderr + again.stdout).not.toMatch(/us3r|p4ssw0rd/);
    });
    expect(ended.stderr + ended.stdout).not.toMatch(/us3r|p4ssw0rd/);
    expect(stored()).not.toMatch(/us3r|p4ssw0rd/);
  });

  test.each<[string, string, (host: string) => string]>([
    ["status 404", "responded with 404", (host) => `ADD http://us3r:p4ssw0rd@${host}/missing /f`],
    ["a git repository", "git repositories", (host) => `ADD http://us3r:p4ssw0rd@${host}/app.git /f`],
    ["an invalid address", "invalid address", () => "ADD http://us3r:p4ssw0rd@[::1/x /f"],
    ["no file name", "has no file name", (host) => `ADD http://us3r:p4ssw0rd@${host}/ /f/`],
    [
      "a wrong checksum",
      "has the digest",
      (host) => `ADD --checksum=sha256:${"0".repeat(64)} http://us3r:p4ssw0rd@${host}/x /f`,
    ],
    ["a server that is not running", "connection refused", () => "ADD http://us3r:p4ssw0rd@127.0.0.1:1/x /f"],
  ])("are in no error: %s", async (_, message, dockerfile) => {
    const source = serve((request) =>
      request.url.endsWith("/missing") ? new Response("no", { status: 404 }) : new Response("x"),
    );
    const ended = await build(dockerfile(source.url.slice("http://".length)), [], { clock: retryingClock() });
    expect(ended.exitCode).not.toBe(0);
    expect(ended.stderr).toContain(message);
    expect(ended.stderr).not.toMatch(/us3r|p4ssw0rd|bough itself failed/);
  });

  test("do not follow a redirect to another origin, and a redirect brings none", async () => {
    const other = serve(answer);
    const source = serve(() => Response.redirect(`${other.url.replace("//", "//0ther:s3cret@")}/file`, 302));
    const ended = await build(`ADD ${source.url.replace("//", "//us3r:p4ssw0rd@")}/file /f`);
    expect(ended.exitCode).toBe(0);
    expect(source.requests[0]?.headers.authorization).toStartWith("Basic ");
    expect(other.requests.map(({ headers }) => headers.authorization)).toEqual([undefined]);
  });

  test("do not include the service's token", async () => {
    const source = serve(answer);
    await build(`ADD ${source.url}/file /f`);
    await build(`ADD ${source.url}/file /f`);
    expect(source.requests.map(({ method }) => method)).toEqual(["GET", "HEAD"]);
    expect(JSON.stringify(source.requests)).not.toMatch(/t0ken|authorization|project/i);
  });
});

describe("a redirect", () => {
  test("from https to http is refused", async () => {
    const source = serve((request) =>
      new URL(request.url).pathname === "/secure"
        ? new Response(null, { status: 302, headers: { location: "http://plain.test/file" } })
        : new Response("content"),
    );
    // Replaces a server with a certificate.
    const secure = (input: string | Request, init?: RequestInit) =>
      fetch(String(input).replace("https://secure.test", source.url), init);
    const ended = await build("ADD https://secure.test/secure /f", [], {
      fetch: (input, init) =>
        String(input).startsWith("https://secure.test") ? secure(input, init) : fetch(input, init),
    });
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain("redirects to http://plain.test/file, which is less secure; refused");
    expect(source.requests).toHaveLength(1);
  });

  test.each([
    ["to another protocol", "file:///etc/passwd"],
    ["to an invalid address", "http://["],
  ])("%s is refused", async (_, location) => {
    const source = serve(() => new Response(null, { status: 302, headers: { location } }));
    const ended = await build(`ADD ${source.url}/x /f`);
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain("redirects to an address that is not http or https; refused");
  });

  test("to itself is given up after ten", async () => {
    const source = serve(() => new Response(null, { status: 302, headers: { location: "/again" } }));
    const ended = await build(`ADD ${source.url}/x /f`);
    expect(ended.stderr).toContain("more than 10 redirects");
    expect(source.requests).toHaveLength(11);
  });
});

describe("a body that is too large", () => {
  const endless = () => {
    const chunk = new Uint8Array(64 * 1024);
    return new Response(new ReadableStream({ pull: (controller) => controller.enqueue(chunk) }));
  };

  test("is given up at --max-add-size, and nothing of it is kept", async () => {
    const source = serve(endless);
    const ended = await build(`ADD ${source.url}/x /f`, ["--max-add-size", "3M"]);
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain(
      `ADD ${source.url}/x: it is larger than 3145728 bytes; nothing was stored`,
    );
    expect(ended.stderr).toContain("--max-add-size SIZE");
    expect(service.state.files.size).toBe(0);
    expect(source.requests).toHaveLength(1);
  });

  test("is not read at all if its Content-Length is too large", async () => {
    const source = serve(() => new Response(new Uint8Array(5000)));
    const ended = await build(`ADD ${source.url}/x /f`, ["--max-add-size", "4999"]);
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain("it is larger than 4999 bytes");
    expect(service.requestsTo("POST /v1/files")).toEqual([]);
    expect((await build(`ADD ${source.url}/x /f`, ["--max-add-size", "5000"])).exitCode).toBe(0);
  });

  test.each(["", "lots", "-1", "1.5M", "5 M"])("an invalid --max-add-size is refused: %p", async (size) => {
    const ended = await build("", ["--max-add-size", size]);
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).toContain("--max-add-size");
  });
});

describe("a server that", () => {
  test.each<[string, () => Response]>([
    ["answers 503", () => new Response("busy", { status: 503 })],
    ["answers 429", () => new Response("", { status: 429, headers: { "retry-after": "3" } })],
    ["answers 500", () => new Response("", { status: 500 })],
  ])("%s once gets the request again", async (_, answer) => {
    const source = serve(answer, () => new Response("content"));
    const ended = await build(`ADD ${source.url}/x /f`, [], { clock: retryingClock() });
    expect(ended.exitCode).toBe(0);
    expect(ended.stderr).toMatch(/\[WARN\] ADD \S+: the server responded with \d+ .*; trying again in/);
    expect(source.requests).toHaveLength(2);
  });

  test.each<[string, (socket: Socket) => void, string]>([
    ["hangs up", (socket) => socket.destroy(), "the connection was closed before the answer was complete"],
    [
      "breaks off",
      (socket) => socket.end("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
      "the connection was closed before the answer was complete",
    ],
  ])("%s: once leads to a retry, always is an error", async (_, misbehave, message) => {
    let left = 1;
    const source = await serveRaw((socket) => {
      if (left-- > 0) misbehave(socket);
      else socket.end("HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\ncontent");
    });
    const ended = await build(`ADD ${source}/x /f`, [], { clock: retryingClock() });
    expect(ended.exitCode).toBe(0);
    expect([...service.state.files.values()].map(({ size }) => size)).toEqual([7]);
    left = Number.POSITIVE_INFINITY;
    const again = await build(`ADD ${source}/y /f`, [], { clock: retryingClock() });
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain(`ADD ${source}/y: ${message}`);
    expect([...service.state.files.values()].map(({ size }) => size)).toEqual([7]);
  });

  test.each<[string, (socket: Socket) => void, string]>([
    ["sends nothing", () => undefined, "no answer within 60 s"],
    [
      "falls silent in the middle",
      (socket) => socket.write("HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf"),
      "no data received for 60 s",
    ],
  ])("%s is given up", async (_, misbehave, message) => {
    const clock = retryingClock();
    let silent = 0;
    const source = await serveRaw((socket) => {
      misbehave(socket);
      silent++;
    });
    let isOver = false;
    const ended = build(`ADD ${source}/x /f`, [], { clock }).finally(() => {
      isOver = true;
    });
    while (!isOver) {
      await Bun.sleep(5);
      if (silent > 0) await clock.advance(1000);
    }
    const { exitCode, stderr } = await ended;
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`ADD ${source}/x: ${message}`);
  });

  test("works is asked for the file again if the service fails during the upload", async () => {
    const source = serve(() => new Response("content"));
    let left = 1;
    service.intercept = async (request) => {
      if (request.method !== "POST" || !request.url.endsWith("/files") || left-- <= 0) return undefined;
      await request.arrayBuffer();
      return new Response("busy", { status: 503 });
    };
    const ended = await build(`ADD ${source.url}/x /f`, [], { clock: retryingClock() });
    expect(ended.exitCode).toBe(0);
    expect(source.requests).toHaveLength(2);
    expect(service.state.files.size).toBe(1);
  });
});

/** Starts a server on which `answer` writes the response to each request into the socket. */
async function serveRaw(answer: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.once("data", () => answer(socket));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  open.push({
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  });
  const address = server.address();
  return `http://127.0.0.1:${typeof address === "object" ? address?.port : ""}`;
}
