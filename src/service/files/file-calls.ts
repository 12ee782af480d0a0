/** The two calls about files: `GET /v1/files/{sha256}` and `POST /v1/files`. */
import type { Answer } from "../http/answer.ts";
import { aFileId, storedIdIn } from "../http/answer.ts";
import { StatusError } from "../http/errors.ts";
import type { Body } from "../http/exchange.ts";
import type { Call, Transport } from "../http/transport.ts";
import { fileHashIn } from "../wire/reader/ids.ts";

/** A service's record of a file. Only the id is certain. */
export interface StoredFile {
  uuid: string;
  sha256: string | undefined;
}

/** The lookup only saves an upload: any status that is not a clear response means that the file is sent. */
const noAnswer = [400, 401, 403, 404, 405, 406, 410, 500, 501, 502, 503, 504];

/** Returns the service's response about a file that it has; `undefined` if it has none or does not say. */
export async function findFile(
  transport: Transport,
  sha256: string,
  signal: AbortSignal,
  onNoSuchRoute?: () => void,
): Promise<Answer | undefined> {
  const answer = await transport.call({
    method: "GET",
    path: `/v1/files/${sha256}`,
    repeatable: true,
    isOptional: true,
    handles: noAnswer,
    signal,
  });
  if ([0, 405, 501].includes(answer.status)) onNoSuchRoute?.();
  // Only what names the content is its record: a service may answer every path with something.
  return readFile(answer)?.sha256 === sha256 ? answer : undefined;
}

interface PostOptions extends Pick<Call, "reconcile" | "onWait" | "deadline" | "timeoutMilliseconds"> {
  body: NonNullable<Call["body"]>;
  signal: AbortSignal;
  /** The length of a streamed body, if it is known. */
  contentLength?: number;
}

/** Sends the bare bytes, or a form to a service that refuses them. */
export async function postFile(transport: Transport, options: PostOptions): Promise<StoredFile> {
  if (transport.takesForms) return await post(transport, asForm(options));
  try {
    return await post(transport, options);
  } catch (error) {
    if (!wantsForm(error)) throw error;
    const form = asForm(options);
    const first = form.body();
    if (first === undefined) throw error;
    let made = 0;
    const body = () => (made++ === 0 ? first : form.body());
    const stored = await post(transport, { ...form, body }).catch((again: unknown) => {
      throw again instanceof StatusError ? error : again;
    });
    transport.takesForms = true;
    return stored;
  }
}

function wantsForm(error: unknown): boolean {
  if (!(error instanceof StatusError)) return false;
  return (
    [415, 422].includes(error.status) || (error.status === 400 && /multipart|form.?data/i.test(error.message))
  );
}

function asForm({ body, contentLength, ...options }: PostOptions): PostOptions & { contentType: string } {
  return {
    ...options,
    contentType: formType,
    body() {
      const file = body();
      return file === undefined ? undefined : formBody(file);
    },
    ...(contentLength === undefined ? {} : { contentLength: formLength(contentLength) }),
  };
}

async function post(
  transport: Transport,
  {
    contentLength,
    contentType = "application/octet-stream",
    ...options
  }: PostOptions & { contentType?: string },
): Promise<StoredFile> {
  const length = contentLength === undefined ? {} : { "content-length": String(contentLength) };
  const answer = await transport.call({
    method: "POST",
    path: "/v1/files",
    headers: { "content-type": contentType, ...length },
    // The service deduplicates: twice the same bytes are one file.
    repeatable: true,
    requires: aFileId,
    // 409: it has the file already.
    accepts: [409],
    ...options,
  });
  const stored = readFile(answer);
  if (stored === undefined) throw new Error("unreachable: the response has no file id");
  transport.newIds.add(stored.uuid);
  return stored;
}

export function readFile(answer: Answer): StoredFile | undefined {
  const uuid = storedIdIn(answer);
  return uuid === undefined ? undefined : { uuid, sha256: fileHashIn(answer.body) };
}

/** A file as a form with one field, for services that take no bare bytes. */

const boundary = `bough-${crypto.randomUUID()}`;
const head = Buffer.from(
  `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="file"\r\nContent-Type: application/octet-stream\r\n\r\n`,
);
const tail = Buffer.from(`\r\n--${boundary}--\r\n`);

const formType = `multipart/form-data; boundary=${boundary}`;

/** Returns the length of a form with a file of this length. */
function formLength(length: number): number {
  return head.length + length + tail.length;
}

/** Streams what is a stream; never holds all of it. */
function formBody(file: Body): Body {
  if (file instanceof Uint8Array) return Buffer.concat([head, file, tail]);
  return streamed(file as AsyncIterable<Uint8Array>);
}

async function* streamed(file: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* file;
  yield tail;
}
