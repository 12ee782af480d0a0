/**
 * A TCP proxy in front of a fake service that causes faults by a script, also those that an HTTP server cannot cause,
 * such as cutting a connection in the middle of a header.
 */
import { connect, createServer, type Socket } from "node:net";
import type { FakeService } from "./fake-service.ts";
import type { Fault, Place, WholeAnswer } from "./faults.ts";

interface FaultyFront {
  /** The address to use in place of the fake service's. */
  readonly url: string;
  /** The client's `fetch`. Its connections are refused if `refuses` returns true. */
  readonly fetch: typeof globalThis.fetch;
  /** Calls such as `POST /v1/files` in the order of arrival, including those of refused connections. */
  readonly calls: string[];
  close(): Promise<void>;
}

/** `count` is 0 for the first call of its kind. */
type FaultScript = (call: string, count: number) => Fault | undefined;

interface FrontOptions {
  script: FaultScript;
  /** Asked by `fetch`, before anything is sent. */
  refuses?: (call: string) => boolean;
  /** Called when a connection stalls. `isGivenUp` returns true once the client has aborted or the proxy is closed. */
  onStall?: (isGivenUp: () => boolean) => void;
}

export async function startFaultyFront(
  fake: Pick<FakeService, "url">,
  options: FrontOptions,
): Promise<FaultyFront> {
  const service = new URL(fake.url);
  const calls: string[] = [];
  const sockets = new Set<Socket>();
  let isClosed = false;
  const last: { signal: AbortSignal | undefined; head: Promise<unknown> } = {
    signal: undefined,
    head: Promise.resolve(),
  };

  function faultOf(call: string): Fault | undefined {
    const count = calls.filter((other) => other === call).length;
    calls.push(call);
    return options.script(call, count);
  }

  function serve(client: Socket): void {
    sockets.add(client);
    client.on("error", () => undefined);
    client.on("close", () => sockets.delete(client));
    const { signal, head: received } = last;
    const stall = () => options.onStall?.(() => isClosed || signal?.aborted === true);
    readHead(client, (head, rest) => {
      const fault = faultOf(callOf(head, service.pathname));
      const meeting: Meeting = {
        client,
        stall,
        received,
        forward: (use) => forward(service, client, head, rest, use),
      };
      if (fault === undefined) meeting.forward((answer) => client.end(answer));
      else applyFault(fault, meeting);
    });
  }

  const server = createServer(serve);
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const closedPort = await unusedPort();
  const url = `http://127.0.0.1:${portOf(server)}${service.pathname.replace(/\/$/, "")}`;
  const refusing = async (input: string | URL | Request, init?: RequestInit) => {
    const request = new URL(input instanceof Request ? input.url : input);
    const method = init?.method ?? (input instanceof Request ? input.method : "GET");
    const call = `${method} ${request.pathname}${ofConnections(request.search)}`;
    last.signal = init?.signal ?? undefined;
    if (options.refuses?.(call) !== true) {
      const answer = fetch(input, init);
      last.head = answer.catch(() => undefined);
      return answer;
    }
    calls.push(call);
    request.port = String(closedPort);
    return fetch(request.href, init);
  };
  return {
    url,
    fetch: Object.assign(refusing, { preconnect: fetch.preconnect }),
    calls,
    close() {
      isClosed = true;
      for (const socket of sockets) socket.destroy();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Meeting {
  client: Socket;
  stall: () => void;
  /** Resolves once the client has the response's head, or the request has failed. */
  received: Promise<unknown>;
  /** Passes the request to the service, and returns its whole response. */
  forward: (use: (answer: Buffer) => void) => void;
}

function applyFault(fault: Fault, { client, stall, received, forward }: Meeting): void {
  switch (fault.kind) {
    case "refused":
      client.resetAndDestroy();
      return;
    case "answer": {
      const { status, body, headers = {} } = fault;
      const text = write({
        status: `${status} -`,
        headers: new Map(Object.entries(headers)),
        body: Buffer.from(body),
      });
      if (fault.processed) forward(() => client.end(text));
      else client.end(text);
      return;
    }
    case "cut":
      upTo(fault.at, { client, received, forward }, () => {
        if (fault.how === "reset") client.resetAndDestroy();
        else client.end();
      });
      return;
    case "stall":
      upTo(fault.at, { client, received, forward }, stall);
      return;
    case "spoil":
      forward((answer) => client.end(write(fault.spoil(read(answer)))));
  }
}

/** Sends the client the bytes before the fault's place, then calls `then`. */
function upTo(
  place: Place,
  { client, received, forward }: Pick<Meeting, "client" | "received" | "forward">,
  then: () => void,
): void {
  if (place === "unread") {
    then();
    return;
  }
  forward((answer) => {
    const head = answer.indexOf("\r\n\r\n") + 4;
    const sent =
      place === "processed" ? 0 : place === "in the head" ? head - 8 : head + (answer.length - head) / 2;
    // A reset or an advanced clock would take effect before the client has read these bytes.
    const goOn = () => setTimeout(then, sent === 0 ? 0 : 2);
    client.write(answer.subarray(0, Math.floor(sent)), () =>
      place === "in the body" ? void received.then(goOn) : goOn(),
    );
  });
}

/** Forwards one request on a separate connection, whose end is the end of the response. */
function forward(
  service: URL,
  client: Socket,
  head: Buffer,
  rest: Buffer,
  use: (answer: Buffer) => void,
): void {
  const upstream = connect(Number(service.port), service.hostname);
  const received: Buffer[] = [];
  let isUsed = false;
  const end = () => {
    if (!isUsed) use(write(read(whole(received))));
    isUsed = true;
    upstream.destroy();
  };
  upstream.on("error", () => undefined);
  upstream.on("data", (data) => {
    received.push(Buffer.from(data));
    if (isComplete(whole(received))) end();
  });
  upstream.on("close", end);
  upstream.write(whole([head, rest]));
  client.on("data", (data) => upstream.write(data));
}

function isComplete(answer: Buffer): boolean {
  const head = answer.indexOf("\r\n\r\n");
  if (head < 0) return false;
  const { status, headers } = read(answer);
  if (status.startsWith("204")) return true;
  const length = headers.get("content-length");
  const end = head + 4 + Number(length);
  return length === undefined ? answer.subarray(-5).toString("latin1") === "0\r\n\r\n" : answer.length >= end;
}

function readHead(socket: Socket, use: (head: Buffer, rest: Buffer) => void): void {
  let buffered: Buffer = Buffer.alloc(0);
  const onData = (data: Buffer) => {
    buffered = Buffer.concat([buffered, data]);
    const end = buffered.indexOf("\r\n\r\n");
    if (end < 0) return;
    socket.off("data", onData);
    use(buffered.subarray(0, end + 4), buffered.subarray(end + 4));
  };
  socket.on("data", onData);
}

function callOf(head: Buffer, prefix: string): string {
  const [method = "", target = ""] = head.toString("latin1").split(" ", 2);
  const { pathname, search } = new URL(target, "http://service");
  return `${method} ${prefix === "/" ? pathname : pathname.slice(prefix.length)}${ofConnections(search)}`;
}

/** Keeps requests apart that close idle connections: when a server is silent, chance decides how many there are. */
function ofConnections(search: string): string {
  return search === "?limit=1" ? search : "";
}

function read(answer: Buffer): WholeAnswer {
  const end = answer.indexOf("\r\n\r\n");
  const [first = "", ...lines] = answer.subarray(0, end).toString("latin1").split("\r\n");
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(":");
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const all = new Map(headers);
  const isChunked = all.delete("transfer-encoding");
  const body = answer.subarray(end + 4);
  return { status: first.slice("HTTP/1.1 ".length), headers: all, body: isChunked ? joinChunks(body) : body };
}

function joinChunks(body: Buffer): Buffer {
  const chunks: Buffer[] = [];
  for (let at = 0; ; ) {
    const line = body.indexOf("\r\n", at);
    const size = Number.parseInt(body.subarray(at, line).toString("latin1"), 16);
    if (line < 0 || !(size > 0)) return whole(chunks);
    chunks.push(body.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

function write({ status, headers, body }: WholeAnswer): Buffer {
  const all = new Map(headers).set("content-length", String(body.length)).set("connection", "close");
  const lines = [...all].map(([name, value]) => `${name}: ${value}\r\n`);
  return whole([Buffer.from(`HTTP/1.1 ${status}\r\n${lines.join("")}\r\n`), body]);
}

function whole(parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(parts);
}

function portOf(server: ReturnType<typeof createServer>): number {
  const address = server.address();
  if (address === null || typeof address === "string") throw new Error("no port");
  return address.port;
}

/** Returns the port of a closed server, so that a connection to it is refused. */
async function unusedPort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const port = portOf(server);
  await new Promise((resolve) => server.close(resolve));
  return port;
}
