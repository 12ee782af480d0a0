/** The two calls about files: `GET /v1/files/{sha256}` and `POST /v1/files`. */
import type { Answer } from "../http/answer.ts";
import { asRecord, asText, idIn } from "../http/json.ts";
import { aFileId } from "../http/requirements.ts";
import type { Call, Transport } from "../http/transport.ts";

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
    handles: noAnswer,
    signal,
  });
  if (answer.status === 405 || answer.status === 501) onNoSuchRoute?.();
  return readFile(answer) === undefined ? undefined : answer;
}

export async function postFile(
  transport: Transport,
  {
    contentLength,
    ...options
  }: Pick<Call, "body" | "reconcile" | "onWait" | "deadline" | "timeoutMilliseconds"> & {
    signal: AbortSignal;
    /** The length of a streamed body, if it is known. */
    contentLength?: number;
  },
): Promise<StoredFile> {
  const length = contentLength === undefined ? {} : { "content-length": String(contentLength) };
  const answer = await transport.call({
    method: "POST",
    path: "/v1/files",
    headers: { "content-type": "application/octet-stream", ...length },
    // The service deduplicates: twice the same bytes are one file.
    repeatable: true,
    requires: aFileId,
    ...options,
  });
  const stored = readFile(answer);
  if (stored === undefined) throw new Error("unreachable: the response has no file id");
  transport.newIds.add(stored.uuid);
  return stored;
}

export function readFile({ body }: Answer): StoredFile | undefined {
  const record = asRecord(body);
  const uuid = idIn(record);
  return uuid === undefined ? undefined : { uuid, sha256: asText(record?.sha256)?.toLowerCase() };
}
