/**
 * A proxy for skopeo that refuses to connect to local addresses, even if a name or a redirect of a registry leads there. It connects
 * through the machine's own proxy, if there is one. Go, and so skopeo, connects to `localhost` and literal loopback addresses
 * without any proxy. So skopeo gets a network in which nothing but this proxy is on loopback.
 */

import { timingSafeEqual } from "node:crypto";
import { lookup } from "node:dns/promises";
import { closeSync } from "node:fs";
import { BlockList, connect, createServer, type Socket } from "node:net";
import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import type { Environment } from "../../home-directory.ts";
import { makeEmptyNetwork } from "../network/empty-network.ts";
import { type MachineProxy, machineProxy } from "./machine-proxy.ts";

type Fetch = (input: string | Request, init?: RequestInit) => Promise<Response>;

interface FetchGuard extends AsyncDisposable {
  /** The open file of skopeo's network namespace. */
  namespace: number;
  /** Variables for the environment of skopeo. */
  environment: Readonly<Record<string, string>>;
  /** Returns the reason of a failure: a connection that was refused, one to loopback that skopeo's message names, or the proxy's. */
  reasonOf(message: string): BoughError | undefined;
}

const maxHeadBytes = 64 * 1024;

/** Starts the guard of skopeo. `environment` is the machine's, which names its proxy. */
export async function startFetchGuard(environment: Environment, clock: Clock): Promise<FetchGuard> {
  const guard = createProxy(environment);
  const { namespace, listener, port } = await makeEmptyNetwork(environment, clock);
  await guard.listen({ fd: listener });
  const url = guard.urlAt(port);
  const none = { NO_PROXY: "", no_proxy: "", ALL_PROXY: "", all_proxy: "" };
  return {
    namespace,
    environment: { HTTP_PROXY: url, HTTPS_PROXY: url, http_proxy: url, https_proxy: url, ...none },
    reasonOf: guard.reasonOf,
    async [Symbol.asyncDispose]() {
      guard.close();
      closeSync(namespace);
    },
  };
}

interface GuardedFetch {
  fetch: Fetch;
  reasonOf: FetchGuard["reasonOf"];
  close(): void;
}

/** Makes a `fetch` for this process that connects through such a guard, and follows no redirect. */
export async function startGuardedFetch(environment: Environment): Promise<GuardedFetch> {
  const guard = createProxy(environment);
  const port = await guard.listen({ host: "127.0.0.1", port: 0 });
  return {
    async fetch(input, init) {
      // The reason is known at once, without further attempts.
      const { hostname } = new URL(typeof input === "string" ? input : input.url);
      await resolveRemote(hostname).catch((error: unknown) => {
        if (error instanceof LocalAddressError) throw error;
      });
      const options = { ...init, redirect: "manual" as const, proxy: guard.urlAt(port) };
      return withoutExceptions(() => fetch(input, options));
    },
    reasonOf: guard.reasonOf,
    close: guard.close,
  };
}

/**
 * Calls `send` with an empty NO_PROXY: Bun reads it for each request, and would connect to its hosts without the guard, whatever
 * addresses they have by then.
 */
function withoutExceptions<Result>(send: () => Result): Result {
  const names = ["NO_PROXY", "no_proxy"].filter((name) => process.env[name] !== undefined);
  const before = names.map((name) => [name, process.env[name]] as const);
  for (const name of names) process.env[name] = "";
  try {
    return send();
  } finally {
    for (const [name, value] of before) process.env[name] = value;
  }
}

/** Returns the proxy itself, which does not listen yet. */
function createProxy(environment: Environment) {
  const password = Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url");
  const authorization = `Basic ${Buffer.from(`bough:${password}`).toString("base64")}`;
  const sockets = new Set<Socket>();
  const refused = new Map<string, LocalAddressError>();
  let lost: BoughError | undefined;

  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => socket.destroy());
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((client) => {
    track(client);
    readHead(client, async (head, rest) => {
      const request = parseRequest(head);
      if (request === undefined || !isAuthorized(head, authorization)) return refuse(client, 407);
      try {
        const proxy = machineProxy(request, environment);
        const address = await resolveRemote(request.host).catch((error: unknown) => {
          // Behind a proxy, this machine may be unable to resolve names.
          if (proxy === undefined || error instanceof LocalAddressError) throw error;
          return request.host;
        });
        const upstream = proxy?.connect() ?? connect(request.port, address);
        track(upstream);
        const onFailure = ({ message }: Error) => {
          lost ??= new BoughError(`the connection to this machine's proxy failed: ${message}`);
        };
        if (proxy !== undefined) upstream.once("error", onFailure);
        upstream.on("connect", () => {
          // If a connection breaks later, skopeo tries again and reports the reason itself.
          upstream.off("error", onFailure);
          const sent = headFor(request, proxy);
          if (sent === undefined) client.write("HTTP/1.1 200 Connection established\r\n\r\n");
          else upstream.write(sent);
          upstream.write(rest);
          client.pipe(upstream);
          upstream.pipe(client);
        });
        upstream.on("close", () => client.destroy());
        client.on("close", () => upstream.destroy());
      } catch (error) {
        if (error instanceof LocalAddressError) refused.set(request.host, error);
        else if (error instanceof BoughError) lost ??= error;
        refuse(client, error instanceof LocalAddressError ? 403 : 502);
      }
    });
  });
  return {
    /** Returns the port that it listens on, if it has one. */
    async listen(at: { fd: number } | { host: string; port: number }): Promise<number> {
      const { promise: listening, resolve, reject } = Promise.withResolvers<void>();
      server.once("error", reject);
      server.listen(at, resolve);
      await listening;
      const address = server.address();
      return typeof address === "object" && address !== null ? address.port : 0;
    },
    urlAt: (port: number) => `http://bough:${password}@127.0.0.1:${port}`,
    reasonOf(message: string): BoughError | undefined {
      // A mirror's error is not the reason why the registry itself failed.
      const error = message.replace(/\(Mirrors also failed: .*\]\): /s, "");
      const [, dialled] = /dial tcp (127\.[\d.]+|\[::1\]):\d+/.exec(error) ?? [];
      if (dialled !== undefined) return new LocalAddressError(dialled, dialled);
      const all = [...refused];
      const [, named] = all.find(([host]) => error.includes(host)) ?? [];
      // The message about a response of this proxy has only its status, and not the host to which a redirect has led.
      return named ?? (/\b403\b|Forbidden/.test(error) ? all.at(-1)?.[1] : undefined) ?? lost;
    },
    close(): void {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Calls `onHead` with the head of a request, up to its empty line, and the bytes after it. */
function readHead(socket: Socket, onHead: (head: string, rest: Buffer) => void): void {
  let received = Buffer.alloc(0);
  const onData = (chunk: Buffer) => {
    received = Buffer.concat([received, chunk]);
    const end = received.indexOf("\r\n\r\n");
    if (end < 0) {
      if (received.length > maxHeadBytes) socket.destroy();
      return;
    }
    socket.off("data", onData);
    socket.pause();
    onHead(received.toString("latin1", 0, end + 4), received.subarray(end + 4));
  };
  socket.on("data", onData);
}

interface ProxyRequest {
  host: string;
  port: number;
  isTunnel: boolean;
  method: string;
  url: URL;
  /** The header lines to pass on. */
  kept: readonly string[];
}

function parseRequest(head: string): ProxyRequest | undefined {
  const [, method = "", target = ""] = /^(\S+) (\S+) HTTP\/1\.[01]\r\n/.exec(head) ?? [];
  const text = method === "CONNECT" ? `https://${target}` : target;
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const { protocol, hostname: host, port } = url;
  const isTunnel = method === "CONNECT";
  if (!isTunnel && protocol !== "http:") return undefined;
  const lines = head.split("\r\n").slice(1, -2);
  const kept = lines.filter((line) => !/^(proxy-[a-z]+|connection|keep-alive):/i.test(line));
  return { host, port: Number(port || (isTunnel ? 443 : 80)), isTunnel, method, url, kept };
}

/** Returns the head to send upstream; `undefined` for a tunnel without a further proxy. A plain request ends its connection. */
function headFor(
  { host, port, isTunnel, method, url, kept }: ProxyRequest,
  proxy: MachineProxy | undefined,
): string | undefined {
  const authorization = proxy?.authorization ?? [];
  if (isTunnel) {
    const place = `${host}:${port}`;
    const lines = [`CONNECT ${place} HTTP/1.1`, `Host: ${place}`, ...authorization, "", ""];
    return proxy === undefined ? undefined : lines.join("\r\n");
  }
  const target = proxy === undefined ? `${url.pathname}${url.search}` : url.href;
  return [`${method} ${target} HTTP/1.1`, ...kept, ...authorization, "Connection: close", "", ""].join(
    "\r\n",
  );
}

function isAuthorized(head: string, expected: string): boolean {
  const given = Buffer.from(/^proxy-authorization: *(.*)\r$/im.exec(head)?.[1] ?? "");
  return given.length === expected.length && timingSafeEqual(given, Buffer.from(expected));
}

function refuse(client: Socket, status: 403 | 407 | 502): void {
  const reason = { 403: "Forbidden", 407: "Proxy Authentication Required", 502: "Bad Gateway" }[status];
  client.end(`HTTP/1.1 ${status} ${reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n`);
}

// Addresses that a client of a server must not make it connect to.

/** Loopback, link-local (where clouds have their metadata), and "this host", which connects to loopback. */
const local = new BlockList();
for (const [network, bits, kind] of [
  ["127.0.0.0", 8, "ipv4"],
  ["0.0.0.0", 8, "ipv4"],
  ["169.254.0.0", 16, "ipv4"],
  ["::", 127, "ipv6"],
  ["fe80::", 10, "ipv6"],
  ["::ffff:127.0.0.0", 104, "ipv6"],
  ["::ffff:0.0.0.0", 104, "ipv6"],
  ["::ffff:169.254.0.0", 112, "ipv6"],
] as const)
  local.addSubnet(network, bits, kind);

/**
 * Returns an address of a host, to connect to exactly what was checked.
 *
 * @throws BoughError if one of its addresses is local
 */
export async function resolveRemote(host: string): Promise<string> {
  const addresses = await lookup(host.replace(/^\[(.*)\]$/, "$1"), { all: true });
  const found = addresses.find(({ address, family }) => local.check(address, family === 6 ? "ipv6" : "ipv4"));
  if (found !== undefined) throw new LocalAddressError(host, found.address);
  const [first] = addresses;
  if (first === undefined) throw new Error(`${host} has no address`);
  return first.address;
}

export class LocalAddressError extends BoughError {
  override readonly name = "LocalAddressError";

  constructor(host: string, address: string) {
    const which = host === address || host === `[${address}]` ? host : `${host} (${address})`;
    super(
      `a client of this server cannot make it connect to ${which}: it is an address of the server itself or of its link; \`bough serve --allow-local-fetch\` allows it`,
    );
  }
}
