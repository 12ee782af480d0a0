import { BoughError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { UploadedFile } from "../../service/files/upload.ts";
import { LengthRequiredError } from "../../service/http/errors.ts";
import type { UrlEntry } from "../../store/uploads.ts";
import { redactUrl } from "../addresses/source-url.ts";
import type { BuildJob } from "../job.ts";
import type { ReferenceLock } from "../reference-lock.ts";
import { fetchContent, fetchUrl, sourceFault, watched, withRetries } from "./fetch-url.ts";
import { accessForAdd } from "./remote-access.ts";

/** The SHA-256 that a content must have, by the Dockerfile or by the lock. */
interface Expected {
  sha256: string;
  lock?: ReferenceLock;
}

/** The content of a URL. The service has it, or had it when it was last fetched. */
interface UrlContent {
  sha256: string;
  size: number;
  /** The header's text as the server sent it. */
  lastModified: string | null;
}

/** Adds a URL. `checksum`: the SHA-256 that the Dockerfile requires; without it, the lock's counts. */
export async function addFromUrl(
  url: string,
  checksum: string | undefined,
  build: BuildJob,
): Promise<UrlContent> {
  const { lock, asked } = build;
  const known = checksum ?? asked.pins?.urls.get(url);
  if (known !== undefined && (checksum !== undefined || lock === undefined))
    return fetchOrReuse(url, { sha256: known }, build);
  if (lock === undefined) return fetchOrReuse(url, undefined, build);
  let added: UrlContent | undefined;
  const sha256 = await lock.pin("url", redactUrl(url, asked.buildArgs), async () => {
    added = await fetchOrReuse(url, undefined, build);
    return added.sha256;
  });
  return added ?? fetchOrReuse(url, { sha256, lock }, build);
}

/**
 * Adds a URL (spec 1, `ADD`): if a conditional HEAD confirms the cached validators, nothing is fetched. Otherwise the body is
 * streamed from the source into `POST /v1/files`.
 */
async function fetchOrReuse(
  url: string,
  expected: Expected | undefined,
  build: BuildJob,
): Promise<UrlContent> {
  const shown = redactUrl(url, build.asked.buildArgs);
  const known = build.services.store.urls.get(shown);
  if (
    known !== undefined &&
    (expected === undefined || expected.sha256 === known.sha256) &&
    (await isUnchanged(url, known, build))
  ) {
    build.emit({ type: "url-cache-hit", url: shown });
    build.inputs?.url(shown, known.sha256);
    return known;
  }
  const { sha256, size } = await downloadToService(url, expected, build);
  return { sha256, size, lastModified: build.services.store.urls.get(shown)?.lastModified ?? null };
}

/** Streams the body into the service. A body without the expected digest is never stored. */
export async function downloadToService(
  url: string,
  expected: Expected | undefined,
  build: BuildJob,
): Promise<UploadedFile> {
  const shown = redactUrl(url, build.asked.buildArgs);
  build.emit({ type: "downloading", url: shown });
  const isKnown = build.services.store.urls.get(shown) !== undefined;
  const send = (length?: number) =>
    withRetries(accessForAdd(build), isKnown, () => streamToService(url, expected, build, length));
  const { file, headers } = await send().catch(async (error: unknown) => {
    if (!(error instanceof LengthRequiredError)) throw error;
    return await send(await measure(url, build));
  });
  build.services.store.uploads.set(file.sha256, file.uuid);
  build.services.store.uploads.flush();
  const date = Date.parse(headers.get("date") ?? "");
  const fetchedAt = Number.isNaN(date) ? build.services.clock.now() : date;
  build.services.store.urls.set(shown, {
    ...{ ...validatorsOf(headers), fetchedAt },
    ...{ sha256: file.sha256, size: file.size },
  });
  build.emit({ type: "downloaded", url: shown, bytes: file.size, sha256: file.sha256 });
  build.inputs?.url(shown, file.sha256);
  return file;
}

/** Reads the content once to learn its length, for a service that requires one of a server that reports none. */
async function measure(url: string, build: BuildJob): Promise<number> {
  const access = accessForAdd(build);
  return await withRetries(access, true, async () => {
    const { body } = await fetchContent(url, access);
    let length = 0;
    try {
      for await (const chunk of watched(body, access)) {
        length += chunk.byteLength;
        if (length > build.asked.maxAddBytes)
          throw tooLarge(redactUrl(url, build.asked.buildArgs), build.asked.maxAddBytes);
      }
    } catch (error) {
      throw sourceFault(url, error, access);
    }
    return length;
  });
}

/** Makes one attempt, from the request to the service's response. `measured`: the length if the server does not report it. */
async function streamToService(
  url: string,
  expected: Expected | undefined,
  build: BuildJob,
  measured: number | undefined,
): Promise<{ file: UploadedFile; headers: Headers }> {
  const shown = redactUrl(url, build.asked.buildArgs);
  const access = accessForAdd(build);
  const { body, headers } = await fetchContent(url, access);
  const length = headers.get("content-length");
  const total = length !== null && /^\d+$/.test(length) ? Number(length) : measured;
  const { maxAddBytes } = build.asked;
  const requireSize = (bytes: number) => {
    if (bytes > maxAddBytes) throw tooLarge(shown, maxAddBytes);
  };
  if (total !== undefined && total > maxAddBytes) {
    await body.cancel();
    throw tooLarge(shown, maxAddBytes);
  }
  try {
    const progress = (bytes: number) => {
      requireSize(bytes);
      build.emit({ type: "download-progress", bytes, total });
    };
    const inspect =
      expected === undefined ? undefined : (actual: string) => requireDigest(actual, expected, shown);
    const file = await build.services.service.uploadStream(body, { progress, contentLength: total, inspect });
    return { file, headers };
  } catch (error) {
    throw sourceFault(url, error, access);
  }
}

function tooLarge(shown: string, most: number): BoughError {
  return new BoughError(`ADD ${shown}: it is larger than ${most} bytes; nothing was stored`, {
    hint: wording`If the address is right, allow more with ${{ option: "max-add-size" }} SIZE.`,
  });
}

type Validators = Pick<UrlEntry, "etag" | "lastModified" | "contentMd5">;

async function isUnchanged(url: string, known: UrlEntry, build: BuildJob): Promise<boolean> {
  if (known.etag === null && known.contentMd5 === null) {
    if (known.lastModified === null) return false;
    if (build.asked.dialect.copiesAsBuildKit && !isStrong(known)) return false;
  }
  const headers: Record<string, string> = {};
  if (known.etag !== null) headers["If-None-Match"] = known.etag;
  if (known.lastModified !== null) headers["If-Modified-Since"] = known.lastModified;
  const access = accessForAdd(build);
  const response = await withRetries(access, true, () => fetchUrl(url, { method: "HEAD", headers }, access));
  if (response.status === 304) return true;
  if (!response.ok || isOtherLength(response.headers, known)) return false;
  return validatorsMatch(known, validatorsOf(response.headers));
}

/**
 * Returns true if `Last-Modified` identifies a content: within a minute of its last change, another may have followed in the same
 * second (RFC 9110, 8.8.2.2).
 */
function isStrong({ lastModified, fetchedAt }: UrlEntry): boolean {
  return fetchedAt !== null && fetchedAt - Date.parse(lastModified ?? "") >= 60_000;
}

function isOtherLength(headers: Headers, { size }: UrlEntry): boolean {
  const length = headers.get("content-length");
  if (length === null || !/^\d+$/.test(length) || headers.has("content-encoding")) return false;
  return Number(length) !== size;
}

/** Every validator of the earlier response has to be in the new one, unchanged. */
function validatorsMatch(known: Validators, now: Validators): boolean {
  const names = (["etag", "lastModified", "contentMd5"] as const).filter((name) => known[name] !== null);
  return names.length > 0 && names.every((name) => known[name] === now[name]);
}

function validatorsOf(headers: Headers): Validators {
  return {
    etag: headers.get("etag"),
    lastModified: headers.get("last-modified"),
    contentMd5: headers.get("content-md5"),
  };
}

function requireDigest(actual: string, expected: Expected, shown: string): void {
  if (actual !== expected.sha256) throw wrongContent("ADD", shown, actual, expected);
}

/** Returns the error for a content that does not have the expected digest. */
export function wrongContent(
  subject: string,
  shown: string,
  actual: string,
  { sha256, lock }: Expected,
): BoughError {
  const wanted = lock === undefined ? `not sha256:${sha256}` : `but ${lock.path} has sha256:${sha256}`;
  return new BoughError(`${subject} ${shown}: the content has the digest sha256:${actual}, ${wanted}`, {
    hint:
      lock === undefined
        ? "Check the address and the checksum; nothing was stored."
        : wording`${lock.adviceFor(shown)} Nothing was stored.`,
  });
}
