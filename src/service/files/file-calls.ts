/** The two calls about files: `GET /v1/files/{sha256}` and `POST /v1/files`. */

import { StatusError } from "../http/errors.ts";
import type { RequestBody } from "../http/exchange.ts";
import type { ServiceResponse } from "../http/response.ts";
import { aFileId, storedIdIn } from "../http/response.ts";
import type { ServiceCall, Transport } from "../http/transport.ts";
import { fileHashIn } from "../wire/reader/ids.ts";

/** A service's record of a file. Only the id is certain. */
export interface StoredFile {
  uuid: string;
  sha256: string | undefined;
}

/** Statuses after which a file is sent, since they don't say whether the service has it: the look-up only saves an upload. */
const unclearStatuses = [400, 401, 403, 404, 405, 406, 410, 500, 501, 502, 503, 504];

/** Returns the service's response about a file that it has; `undefined` if it has none or does not say. */
export async function lookUpFile(
  transport: Transport,
  sha256: string,
  signal: AbortSignal,
  onNoSuchRoute?: () => void,
): Promise<ServiceResponse | undefined> {
  const answer = await transport.call({
    method: "GET",
    path: `/v1/files/${sha256}`,
    repeatable: true,
    isOptional: true,
    handles: unclearStatuses,
    signal,
  });
  if ([0, 405, 501].includes(answer.status)) onNoSuchRoute?.();
  // Only a response that names the hash is the file's record: some services respond to every path.
  return storedFileIn(answer)?.sha256 === sha256 ? answer : undefined;
}

interface PostOptions extends Pick<ServiceCall, "reconcile" | "onWait" | "deadline" | "timeoutMilliseconds"> {
  body: NonNullable<ServiceCall["body"]>;
  signal: AbortSignal;
  /** The length of a streamed body, if it is known. */
  contentLength?: number;
}

/** Sends the bare bytes, or a form to a service that rejects those. */
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
    // The service deduplicates files, so a repeat does no harm.
    repeatable: true,
    requires: aFileId,
    // 409 means that the service has the file already.
    accepts: [409],
    ...options,
  });
  const stored = storedFileIn(answer);
  if (stored === undefined) throw new Error("unreachable: the response has no file id");
  transport.newIds.add(stored.uuid);
  return stored;
}

export function storedFileIn(answer: ServiceResponse): StoredFile | undefined {
  const uuid = storedIdIn(answer);
  return uuid === undefined ? undefined : { uuid, sha256: fileHashIn(answer.body) };
}

/** The multipart boundary of forms, for services that accept no bare bytes. */
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

/** Returns a form with a file. A stream stays a stream, which is never held completely. */
function formBody(file: RequestBody): RequestBody {
  if (file instanceof Uint8Array) return Buffer.concat([head, file, tail]);
  return streamed(file as AsyncIterable<Uint8Array>);
}

async function* streamed(file: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield head;
  yield* file;
  yield tail;
}
