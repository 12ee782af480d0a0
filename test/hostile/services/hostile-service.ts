/** A malicious service: its responses are honest, except those that a test writes into the socket itself. */
import type { Socket } from "node:net";
import { constants, deflateRawSync } from "node:zlib";
import { listenForSockets, rawAnswer } from "../../service/raw-server.ts";

export const image = "a0000000-0000-4000-8000-000000000001";
export const operation = "b0000000-0000-4000-8000-000000000002";
export const result = "c0000000-0000-4000-8000-000000000003";

/** Writes a response of any kind, and ends the socket. */
export type Attack = (socket: Socket, target: string) => Promise<void> | void;

export interface HostileService {
  url: string;
  /** The requests, such as `GET /v1/images`, without their queries. */
  requests: string[];
  /** The requests' heads, unchanged. */
  heads: string[];
  close(): Promise<void>;
}

/** Starts a service. `attacks` are by method and path without the query, or by `*` for all. */
export async function startHostileService(attacks: Record<string, Attack>): Promise<HostileService> {
  const requests: string[] = [];
  const heads: string[] = [];
  const server = await listenForSockets((socket) => {
    let head = "";
    const readHead = (data: Buffer) => {
      head += data.toString("latin1");
      if (!head.includes("\r\n\r\n")) return;
      // The body is ignored: every connection has one request.
      socket.off("data", readHead);
      socket.resume();
      const [method = "", target = ""] = head.split(" ", 2);
      const call = `${method} ${target.split("?", 1)[0]}`;
      requests.push(call);
      heads.push(head);
      const attack = attacks[call] ?? attacks["*"];
      if (attack !== undefined) Promise.resolve(attack(socket, target)).catch(() => socket.destroy());
      else socket.end(honestResponse(call));
    };
    socket.on("data", readHead);
  });
  return { ...server, requests, heads };
}

function honestResponse(call: string): string {
  const answers: Record<string, unknown> = {
    "GET /v1/images": { images: [{ uuid: image, tag: "base:1", created_at: "2026-01-01T00:00:00Z" }] },
    "POST /v1/instances": { uuid: operation },
    "POST /v1/files": { uuid: "f0000000-0000-4000-8000-000000000004" },
    [`GET /v1/operations/${operation}`]: record(),
    [`PATCH /v1/images/${result}/tag`]: {},
  };
  const body = answers[call];
  const headers = { Connection: "close" };
  return body === undefined
    ? rawAnswer("404 Not Found", '{"error": "not here"}', headers)
    : rawAnswer("200 OK", JSON.stringify(body), headers);
}

/** Returns the record of a successful operation, with other values for `fields`. */
export function record(fields: Record<string, unknown> = {}): Record<string, unknown> {
  return {
    ...{ uuid: operation, kind: "instance", status: "SUCCESS", error: null, result_image_uuid: result },
    metadata: { result: { state: { exit_code: 0 }, stdout: { value: "", encoding: "ascii" } } },
    ...fields,
  };
}

export const json = (body: unknown): Attack => text(JSON.stringify(body));

export function text(body: string, headers: Record<string, string> = {}, status = "200 OK"): Attack {
  return (socket) => void socket.end(rawAnswer(status, body, { Connection: "close", ...headers }));
}

/** Sends a body of a beginning, `count` times the same bytes and an end, as fast as the client reads it. */
export function poured(
  [beginning, piece, end]: readonly [string | Uint8Array, string | Uint8Array, string],
  count: number,
  {
    status = "200 OK",
    type = "application/json",
    encoding,
  }: Partial<Record<"status" | "type" | "encoding", string>> = {},
): Attack {
  return async (socket) => {
    const encoded = encoding === undefined ? "" : `Content-Encoding: ${encoding}\r\n`;
    socket.write(`HTTP/1.1 ${status}\r\nContent-Type: ${type}\r\n${encoded}Connection: close\r\n\r\n`);
    socket.write(beginning);
    for (let sent = 0; sent < count && !socket.destroyed; sent++) {
      if (!socket.write(piece)) await drained(socket);
    }
    socket.end(end);
  };
}

async function drained(socket: Socket): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  socket.once("drain", done).once("close", done);
  await promise;
  socket.off("drain", done).off("close", done);
}

/** 16 MiB of spaces as 16 kB of a deflate stream, which can be repeated in it any number of times. */
export const deflatedSpaces = deflateRawSync(Buffer.alloc(16 * 1024 * 1024, " "), {
  finishFlush: constants.Z_FULL_FLUSH,
});
/** The head of a gzip stream. */
export const gzipHead = Buffer.from("1f8b0800000000000003", "hex");
