/** A server on loopback before a registry, which answers in its place, looks at requests, or delays them. */

type Respond = (request: Request) => Response | undefined | Promise<Response | undefined>;

export interface Front extends AsyncDisposable {
  host: string;
  /** Returns a response in place of the registry's; `undefined`: the registry responds. */
  intercept: Respond;
  /** Returns the registry's response. */
  forward(request: Request): Promise<Response>;
}

export function startFront(registry: { host: string }, intercept: Respond = () => undefined): Front {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch: async (request) => (await front.intercept(request)) ?? forward(request),
  });
  const host = `127.0.0.1:${server.port}`;

  async function forward(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.delete("host");
    const body = request.body === null ? undefined : await request.bytes();
    const response = await fetch(`http://${registry.host}${pathname}${search}`, {
      ...{ method: request.method, headers, redirect: "manual" },
      ...(body === undefined ? {} : { body }),
    });
    const answered = new Headers(response.headers);
    const location = answered.get("location");
    if (location !== null) answered.set("location", location.replace(registry.host, host));
    return new Response(response.body, { status: response.status, headers: answered });
  }

  const front: Front = {
    host,
    intercept,
    forward,
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return front;
}
