import { digestOf } from "../../src/image/digest.ts";

/** A request as a fake registry got it. */
export interface Received {
  method: string;
  /** Path and query. */
  target: string;
  headers: Headers;
  body: string;
}

type Respond = (request: Received, host: string) => Response | undefined | Promise<Response | undefined>;

export const blob = { bytes: Buffer.alloc(200_000, "blob"), digest: "", size: 200_000 };
blob.digest = digestOf(blob.bytes);

/**
 * Starts a registry on loopback that has `blob` and takes everything. `respond` may respond in its place, to show a fault. All
 * requests are kept.
 */
export function startFakeRegistry(respond: Respond = () => undefined) {
  const requests: Received[] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const url = new URL(request.url);
      const received: Received = {
        method: request.method,
        target: `${url.pathname}${url.search}`,
        headers: request.headers,
        body: await request.text(),
      };
      requests.push(received);
      return (await respond(received, url.host)) ?? usual(received);
    },
  });
  const host = `127.0.0.1:${server.port}`;
  return {
    host,
    requests,
    /** Methods and paths, without `/v2/NAME/`. */
    calls: () => requests.map(({ method, target }) => `${method} ${target.replace("/v2/team/app/", "")}`),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}

function usual({ method, target }: Received): Response {
  if (target === "/v2/") return new Response("{}");
  if (method === "POST")
    return new Response(null, { status: 202, headers: { location: "/v2/team/app/blobs/uploads/1?state=s" } });
  if (method === "PUT") return new Response(null, { status: 201 });
  if (target.endsWith(`/blobs/${blob.digest}`)) return new Response(blob.bytes);
  return new Response(JSON.stringify({ errors: [{ code: "NAME_UNKNOWN", message: "nothing here" }] }), {
    status: 404,
  });
}
