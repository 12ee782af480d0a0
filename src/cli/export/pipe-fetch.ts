import { request } from "node:http";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";

/** What a request needs; other options of `fetch` make no difference here. */
interface PipeRequest {
  method?: string | undefined;
  headers?: Readonly<Record<string, string>>;
  body?: Blob;
  signal: AbortSignal;
}

/** Sends a request through a named pipe of Windows, which `fetch` can't open. `path`: `\\.\pipe\NAME`; `target`: `/info?all=1`. */
export async function fetchThroughPipe(
  path: string,
  target: string,
  { method = "GET", headers = {}, body, signal }: PipeRequest,
): Promise<Response> {
  const { promise, resolve, reject } = Promise.withResolvers<Response>();
  const sent = request({ socketPath: path, path: target, method, headers, signal }, (answer) => {
    const { statusCode = 0, headers: given } = answer;
    const pairs = Object.entries(given).map(([name, value]): [string, string] => [name, String(value)]);
    const content = Readable.toWeb(answer) as ReadableStream<Uint8Array>;
    resolve(new Response(content, { status: statusCode, headers: pairs }));
  });
  sent.on("error", reject);
  if (body === undefined) sent.end();
  // A daemon that refuses answers before it has read everything.
  else pipeline(Readable.from(body.stream()), sent).catch(reject);
  return promise;
}
