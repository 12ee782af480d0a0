import { timingSafeEqual } from "node:crypto";
import { withGzip } from "../../engine/http/gzip.ts";
import { messageOf, usageError } from "../../errors.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { startEngine } from "../service/engine-host.ts";
import { makeRoomRegularly } from "../service/make-room.ts";
import { describeExposure, listen, parseListenAddress } from "./listen.ts";

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
    "allow-local-fetch": {
      type: "boolean",
      description:
        "Let clients import images from registries on this machine's loopback and link-local addresses",
    },
  },
  run: serveEngine,
  examples: [
    ["serve", "on a free port of the loopback interface, with a generated token"],
    ["serve --listen 127.0.0.1:8080 --token s3cret-s3cret", "and in another terminal:"],
    ["--url http://127.0.0.1:8080 --token s3cret-s3cret build .", "a build on it"],
  ],
  agentNote:
    "It runs until it is interrupted: start it in the background. The address and the token are printed once.",
});

async function serveEngine(invocation: Invocation): Promise<void> {
  const { values, globals, runtime, log } = invocation;
  const address = parseListenAddress(values.text("listen") ?? "127.0.0.1:0", runtime.workingDirectory);
  const token = globals.token?.text() ?? makeToken();
  const isMade = globals.token === undefined;
  if (token.length < 8) throw usageError("--token is too short: at least 8 characters are needed");

  // A client over a socket must not import this machine's files, nor reach its loopback interface.
  const engine = await startEngine(runtime, {
    isServer: true,
    allowsLocalFetch: values.flag("allow-local-fetch"),
    warn: log.warn,
  });
  let server: ReturnType<typeof listen> | undefined;
  try {
    server = listen(address, requireBearerToken(token, withGzip(engine.fetch)), (error) =>
      log.error(messageOf(error)),
    );
    const exposure = describeExposure(address);
    if (exposure !== undefined) log.warn(exposure);
    const url = address.kind === "unix" ? `unix:${address.path}` : server.url.origin;
    log.info(`serving the engine in ${engine.directory}; Ctrl-C ends it`);
    printResult(invocation, {
      id: isMade ? [url, token] : url,
      json: { url, token: isMade ? token : null },
      table: () => `URL    ${url}\n${isMade ? `TOKEN  ${token}\n` : ""}`,
    });
    await makeRoomRegularly(runtime, engine);
    log.info("stopping");
  } finally {
    await server?.stop(true);
    await engine.close();
  }
}

/** Wraps a handler to reject requests without the bearer token. */
function requireBearerToken(token: string, handler: (request: Request) => Promise<Response>) {
  const expected = digest(`Bearer ${token}`);
  return async (request: Request): Promise<Response> => {
    // The scheme's name may be in small letters (RFC 9110, section 11.1).
    const given = (request.headers.get("authorization") ?? "").replace(/^bearer +/i, "Bearer ");
    // The comparison in constant time requires equal lengths, which digests have.
    if (timingSafeEqual(digest(given), expected)) return handler(request);
    const body = { error: "missing or invalid bearer token", status: 401 };
    return Response.json(body, { status: 401, headers: { "WWW-Authenticate": "Bearer" } });
  };
}

function makeToken(): string {
  return Buffer.from(crypto.getRandomValues(new Uint8Array(24))).toString("base64url");
}

function digest(text: string): Uint8Array {
  return new Bun.CryptoHasher("sha256").update(text).digest();
}
