/** A file as a form with one field, for services that take no bare bytes. */
import type { Body } from "../http/exchange.ts";

const boundary = `bough-${crypto.randomUUID()}`;
const head = Buffer.from(
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n`,
);
const tail = Buffer.from(`\r\n--${boundary}--\r\n`);

export const formType = `multipart/form-data; boundary=${boundary}`;

/** Returns the length of a form with a file of this length. */
export function formLength(length: number): number {
  return head.length + length + tail.length;
}

/** Streams what is a stream; never holds all of it. */
export function formBody(file: Body): Body {
  if (file instanceof Uint8Array) return Buffer.concat([head, file, tail]);
  return streamed(file as AsyncIterable<Uint8Array>);
}

async function* streamed(file: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* file;
  yield tail;
}
