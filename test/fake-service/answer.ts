/** Responses in the forms of the wire protocol. */
import { constants, createGzip } from "node:zlib";

export const answerWith = {
  error(status: number, message: string, headers: Record<string, string> = {}): Response {
    return Response.json({ error: message, status }, { status, headers });
  },

  /** Compresses a response if the client accepts it. An event stream is flushed chunk by chunk. */
  gzip(request: Request, response: Response): Response {
    const accepts = request.headers.get("accept-encoding")?.includes("gzip") === true;
    if (!accepts || response.body === null || response.headers.has("content-encoding")) return response;
    const headers = new Headers(response.headers);
    headers.set("content-encoding", "gzip");
    headers.delete("content-length");
    return new Response(compress(response.body), { status: response.status, headers });
  },
};

function compress(body: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  const gzip = createGzip({ flush: constants.Z_SYNC_FLUSH });
  const source = body.getReader();
  let isOver = false;
  async function pump(): Promise<void> {
    for (let part = await source.read(); !part.done; part = await source.read()) gzip.write(part.value);
    gzip.end();
  }
  return new ReadableStream<Uint8Array>({
    start(controller) {
      gzip.on("data", (chunk: Uint8Array) => {
        if (!isOver) controller.enqueue(new Uint8Array(chunk));
      });
      gzip.on("end", () => {
        if (!isOver) controller.close();
      });
      pump().catch((error: unknown) => {
        if (!isOver) controller.error(error);
      });
    },
    cancel(reason) {
      isOver = true;
      return source.cancel(reason);
    },
  });
}
