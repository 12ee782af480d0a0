type Handler = (request: Request) => Promise<Response>;

/** Compressing a smaller body saves less than the additional headers take. */
const minBytes = 1024;

/**
 * Compresses the responses of `handler` for clients that accept gzip, as a stream in constant memory. Does not compress event
 * streams, whose events must arrive one by one, and bodies that are short or compressed already.
 */
export function withGzip(handler: Handler): Handler {
  return async (request) => {
    const response = await handler(request);
    if (!isCompressible(response)) return response;
    response.headers.append("Vary", "Accept-Encoding");
    const isCompressed = acceptsGzip(request.headers.get("Accept-Encoding") ?? "");
    if (request.method === "HEAD") return describeBody(response, isCompressed);
    return isCompressed ? compressBody(response) : response;
  };
}

/** Follows RFC 9110, section 12.5.3: a named encoding takes precedence over `*`, and a weight of 0 excludes it. */
export function acceptsGzip(header: string): boolean {
  const weights = new Map(
    header.split(",").map((item) => {
      const [name = "", ...parameters] = item.split(";").map((part) => part.trim().toLowerCase());
      const weight = parameters.find((parameter) => parameter.startsWith("q="))?.slice("q=".length);
      return [name, weight === undefined ? 1 : Number(weight)];
    }),
  );
  return (weights.get("gzip") ?? weights.get("x-gzip") ?? weights.get("*") ?? 0) > 0;
}

function isCompressible({ status, headers }: Response): boolean {
  const type = headers.get("Content-Type") ?? "";
  const hasBody = status >= 200 && status !== 204 && status !== 304 && type !== "";
  return hasBody && !type.startsWith("text/event-stream") && !headers.has("Content-Encoding");
}

/** Returns a HEAD response that describes the body of GET: with a length only if it is known for the body that GET would send. */
function describeBody(response: Response, isCompressed: boolean): Response {
  const { status, headers } = response;
  const length = headers.get("Content-Length");
  if (length !== null && !(isCompressed && Number(length) >= minBytes)) return response;
  const described = length === null ? new Headers(headers) : compressedHeaders(response);
  // Bun would send a length of 0.
  described.set("Transfer-Encoding", "chunked");
  return new Response(null, { status, headers: described });
}

async function compressBody(response: Response): Promise<Response> {
  if (response.body === null) return response;
  const reader = response.body.getReader();
  const { status, headers } = response;
  const first: Uint8Array[] = [];
  let length = 0;
  while (length < minBytes) {
    const { done, value } = await reader.read();
    if (done) return new Response(Buffer.concat(first), { status, headers });
    first.push(value);
    length += value.length;
  }
  const body = new ReadableStream<Uint8Array<ArrayBuffer>>({
    async pull(controller) {
      const chunk = first.shift() ?? (await reader.read()).value;
      if (chunk === undefined) controller.close();
      else controller.enqueue(new Uint8Array(chunk));
    },
    cancel: (reason) => reader.cancel(reason),
  });
  const compressed = body.pipeThrough(new CompressionStream("gzip"));
  return new Response(compressed, { status, headers: compressedHeaders(response) });
}

function compressedHeaders(response: Response): Headers {
  const headers = new Headers(response.headers);
  headers.delete("Content-Length");
  headers.set("Content-Encoding", "gzip");
  return headers;
}
