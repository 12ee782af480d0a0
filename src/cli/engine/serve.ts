import { timingSafeEqual } from "node:crypto";
import { statSync } from "node:fs";
import { isIP } from "node:net";
import { dirname, resolve } from "node:path";
import { withGzip } from "../../engine/http/gzip.ts";
import { createHandler } from "../../engine/routes/handler.ts";
import { BoughError, messageOf, usageError } from "../../errors.ts";
import { errorCode } from "../../system-error.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import { startEngine } from "../service/engine-host.ts";
import { makeRoomRegularly } from "../service/make-room.ts";
import { createDraining } from "./draining.ts";

export const serve = command({
  name: "serve",
  description:
    "Serve the embedded engine over HTTP, for other clients of the service's API, until it is interrupted.",
  args: {
    listen: {
      type: "string",
      valueHint: "HOST:PORT|unix:PATH",
      description: "Where to listen (default: 127.0.0.1 and a free port)",
    },
    "stop-timeout": {
      type: "string",
      valueHint: "SECONDS",
      description: "How long SIGTERM lets running builds go on before it ends them (default: 60)",
    },
    "allow-local-fetch": {
      type: "boolean",
      description:
        "Let clients import images from registries on this machine's loopback and link-local addresses",
    },
  },
  needs: "engine",
  run: serveEngine,
  examples: [
    ["serve", "on a free port of the loopback interface, with a generated token"],
    ["serve --listen 127.0.0.1:8080 --token s3cret-s3cret", "and in another terminal:"],
    ["--url http://127.0.0.1:8080 --token s3cret-s3cret build .", "a build on it"],
  ],
  agentNote:
    "It runs until it is interrupted: start it in the background. The address and the token are printed once. Who has the token can do everything: end the builds of others, move their tags.",
});

async function serveEngine(invocation: Invocation): Promise<void> {
  const { values, globals, runtime, log } = invocation;
  const address = parseListenAddress(values.text("listen") ?? "127.0.0.1:0", runtime.workingDirectory);
  const token = globals.token?.text() ?? generateToken();
  const isGenerated = globals.token === undefined;
  const stopSeconds = readStopTimeout(values.text("stop-timeout"));
  if (token.length < 8) throw usageError("--token is too short: at least 8 characters are needed");

  // A client over a socket must not import this machine's files, nor reach its loopback interface.
  const engine = await startEngine(runtime, {
    isServer: true,
    allowsLocalFetch: values.flag("allow-local-fetch"),
    warn: log.warn,
  });
  let server: ReturnType<typeof listen> | undefined;
  const draining = createDraining({ clock: runtime.clock, log }, () => ({
    operations: engine.running,
    requests: server?.pendingRequests ?? 0,
  }));
  const handler = draining.trackingRequests(requireBearerToken(token, withGzip(createHandler(engine.core))));
  const terminate = async () => {
    await draining.run(stopSeconds, runtime.signal);
    return false;
  };
  try {
    server = listen(
      address,
      withProbes(() => draining.isRunning, handler),
      (error) => log.error(messageOf(error)),
    );
    runtime.terminations.add(terminate);
    const exposure = describeExposure(address);
    if (exposure !== undefined) log.warn(exposure);
    const url = address.kind === "unix" ? `unix:${address.path}` : server.url.origin;
    log.info(`serving the engine in ${engine.directory}; Ctrl-C ends it`);
    printResult(invocation, {
      id: isGenerated ? [url, token] : url,
      json: { url, token: isGenerated ? token : null },
      table: () => `URL    ${url}\n${isGenerated ? `TOKEN  ${token}\n` : ""}`,
    });
    await makeRoomRegularly(runtime, engine);
    log.info("stopping");
  } finally {
    runtime.terminations.delete(terminate);
    await server?.stop(true);
    await engine.close();
  }
}

function readStopTimeout(text: string | undefined): number {
  if (text === "0") return 0;
  return positiveInteger(text, "--stop-timeout", "It is a number of seconds; 0 ends builds at once.") ?? 60;
}

/**
 * Responds to probes of orchestrators, which have no token: to `/healthz` while the process serves, to `/readyz` until it is told to
 * end. Neither response reveals anything about this machine.
 */
function withProbes(isEnding: () => boolean, handler: Handler): Handler {
  return async (request) => {
    // A request may have no valid Host.
    const pathname = URL.parse(request.url, "http://localhost")?.pathname;
    if (pathname !== "/healthz" && pathname !== "/readyz") return handler(request);
    if (request.method !== "GET" && request.method !== "HEAD")
      return new Response("GET is required\n", { status: 405, headers: { Allow: "GET, HEAD" } });
    const isOk = pathname === "/healthz" || !isEnding();
    return new Response(isOk ? "ok\n" : "ending\n", { status: isOk ? 200 : 503 });
  };
}

/** Wraps a handler to reject requests without the bearer token. */
function requireBearerToken(token: string, handler: (request: Request) => Promise<Response>) {
  const expected = digest(`Bearer ${token}`);
  return async (request: Request): Promise<Response> => {
    // The scheme's name is case-insensitive (RFC 9110, section 11.1).
    const given = (request.headers.get("authorization") ?? "").replace(/^bearer +/i, "Bearer ");
    // A comparison in constant time needs equal lengths, which digests have.
    if (timingSafeEqual(digest(given), expected)) return handler(request);
    const body = { error: "missing or invalid bearer token", status: 401 };
    return Response.json(body, { status: 401, headers: { "WWW-Authenticate": "Bearer" } });
  };
}

function generateToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url");
}

function digest(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}

/** The address that `--listen` names. */
type ListenAddress = { kind: "tcp"; hostname: string; port: number } | { kind: "unix"; path: string };

type Handler = (request: Request) => Promise<Response>;

/** Parses `HOST:PORT`, `[IPv6]:PORT` or `unix:PATH`. Throws a BoughError for anything else. */
export function parseListenAddress(text: string, workingDirectory: string): ListenAddress {
  if (text.startsWith("unix:") && text.length > "unix:".length) {
    return { kind: "unix", path: resolve(workingDirectory, text.slice("unix:".length)) };
  }
  const match = /^(?:\[([0-9a-fA-F:.]+)\]|([^:/[\]\s]+)):(\d{1,5})$/.exec(text);
  const port = Number(match?.[3]);
  if (match === null || port > 65535) {
    throw usageError(
      `--listen takes HOST:PORT or unix:PATH, not ${JSON.stringify(text)}`,
      "For example --listen 127.0.0.1:8080, or --listen unix:/run/bough.sock. Port 0 chooses a free port.",
    );
  }
  return { kind: "tcp", hostname: match[1] ?? match[2] ?? "", port };
}

/** Starts to listen. Only the owner of a Unix socket can open it, from the start, since the umask applies to its creation. */
export function listen(address: ListenAddress, handler: Handler, onError: (error: unknown) => void) {
  const options = { ...noIdleTimeout, ...serverOptions(handler, onError) };
  try {
    if (address.kind === "tcp") {
      // Outside of development mode Bun lets processes of a user share a port: two servers would take turns with requests.
      return Bun.serve({ ...options, hostname: address.hostname, port: address.port, reusePort: false });
    }
    const mask = process.umask(0o177);
    try {
      return Bun.serve({ ...options, unix: address.path });
    } finally {
      process.umask(mask);
    }
  } catch (error) {
    const code = errorCode(error) ?? "";
    const place = address.kind === "tcp" ? `${address.hostname}:${address.port}` : address.path;
    // A killed server leaves the file of its socket.
    const isTakenPath = address.kind === "unix" && code === "EADDRINUSE";
    const reason = isTakenPath ? "the file exists already" : (listenErrors.get(code) ?? messageOf(error));
    throw new BoughError(`cannot listen on ${place}: ${reason}`, {
      hint: isTakenPath
        ? "Give another address with --listen, or remove the file if no program listens there."
        : "Give another address with --listen.",
      cause: error,
    });
  }
}

const listenErrors = new Map([
  ["EADDRINUSE", "another program is listening there"],
  ["EADDRNOTAVAIL", "this machine has no such address"],
  ["EACCES", "permission denied"],
  ["ENOENT", "no such directory"],
]);

/**
 * Disables the idle timeout, since an event stream may be silent as long as a command runs. It works for Unix sockets, too, but
 * Bun's types have it only for TCP.
 */
const noIdleTimeout: object = { idleTimeout: 0 };

/** Returns the options of `Bun.serve` that do not depend on the address. */
function serverOptions(handler: Handler, onError: (error: unknown) => void) {
  return {
    // Bun's development mode serves error pages that reveal details of this machine without asking for a token.
    development: false as const,
    // Uploads may be of any size.
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: withConnectionClose(handler),
    error(error: unknown): Response {
      onError(error);
      return Response.json({ error: "internal server error", status: 500 }, { status: 500 });
    },
  };
}

/**
 * Adds `Connection: close` to the response if the client has sent it (RFC 9112, section 9.6). A proxy such as nginx would otherwise send
 * its next request over that connection, and lose it.
 */
function withConnectionClose(handler: Handler): Handler {
  return async (request) => {
    const response = await handler(request);
    const options = request.headers.get("Connection") ?? "";
    if (/(^|,)\s*close\s*(,|$)/i.test(options)) response.headers.set("Connection", "close");
    return response;
  };
}

/** Returns a warning about who else can reach this address, or replace it; `undefined` if it needs none. */
export function describeExposure(address: ListenAddress): string | undefined {
  if (address.kind === "unix") return describeDirectory(dirname(address.path));
  const { hostname, port } = address;
  if (isLoopback(hostname)) return undefined;
  const where = isUnspecified(hostname) ? "all addresses of this machine" : hostname;
  const reach = port === 0 ? "it" : `port ${port}`;
  return [
    `listening on ${where} without TLS: anyone who can reach ${reach} can try tokens, and anyone who sees the traffic can`,
    "read the token, the uploaded files and the output of commands, and then run commands on this machine.",
    "Safer: --listen 127.0.0.1:PORT or unix:PATH, behind an SSH tunnel or a proxy with TLS",
  ].join(" ");
}

function describeDirectory(directory: string): string | undefined {
  const { mode, uid } = statSync(directory);
  const isOthersToWrite = (mode & 0o022) !== 0 && (mode & 0o1000) === 0;
  if (!isOthersToWrite && (uid === 0 || uid === process.getuid?.())) return undefined;
  return `others can write to ${directory}, and could replace this socket with their own, which would receive the clients' tokens`;
}

function isLoopback(hostname: string): boolean {
  if (hostname.toLowerCase() === "localhost") return true;
  if (isIP(hostname) === 4) return hostname.startsWith("127.");
  // 127.0.0.0/8 as mapped addresses, too.
  return isIP(hostname) === 6 && /^\[::(1|ffff:7f[0-9a-f]{2}:[0-9a-f]+)\]$/.test(canonical(hostname));
}

function isUnspecified(hostname: string): boolean {
  return (
    hostname === "0.0.0.0" || hostname === "*" || (isIP(hostname) === 6 && canonical(hostname) === "[::]")
  );
}

/** Returns the short form of an IPv6 address: `[::1]` for `0:0:0:0:0:0:0:1`. */
function canonical(address: string): string {
  return new URL(`http://[${address}]`).hostname;
}
