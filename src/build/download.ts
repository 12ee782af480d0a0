import { BoughError } from "../errors.ts";
import { explainFault } from "../service/connection.ts";
import type { UploadedFile } from "../service/service.ts";
import type { UrlEntry } from "../store/urls.ts";
import type { BuildJob } from "./job.ts";

/** What a URL's content is, and that the service has it or had it when it was last fetched. */
export interface UrlContent {
  sha256: string;
  size: number;
}

/**
 * Spec 1, `ADD`: where the cached validators still hold, by one conditional HEAD, nothing is fetched; else the body
 * goes from the source's socket into `POST /v1/files`. `checksum`: the SHA-256 it must have.
 */
export async function addFromUrl(
  url: string,
  checksum: string | undefined,
  build: BuildJob,
): Promise<UrlContent> {
  const shown = withoutCredentials(url);
  const known = build.store.urls.get(shown);
  if (
    known !== undefined &&
    (checksum === undefined || checksum === known.sha256) &&
    (await isUnchanged(url, known, build))
  ) {
    build.emit({ type: "url-cache-hit", url: shown });
    return known;
  }
  return download(url, checksum, build);
}

/** Streams the body into the service. With an `expected` digest, a body that has another is never stored. */
export async function download(
  url: string,
  expected: string | undefined,
  build: BuildJob,
): Promise<UploadedFile> {
  const shown = withoutCredentials(url);
  build.emit({ type: "downloading", url: shown });
  const response = await request(url, { method: "GET" }, build);
  if (!response.ok || response.body === null) {
    await response.body?.cancel();
    throw new BoughError(
      `ADD ${shown}: the server answers ${response.status} ${response.statusText}`.trimEnd(),
    );
  }
  const body = expected === undefined ? response.body : verified(response.body, expected, shown);
  const total = Number(response.headers.get("content-length") ?? Number.NaN);
  const onBytes = (bytes: number) =>
    build.emit({ type: "download-progress", bytes, total: Number.isNaN(total) ? undefined : total });
  const file = await build.service.uploadStream(body, onBytes).catch((error: unknown) => {
    build.signal.throwIfAborted();
    throw error instanceof BoughError ? error : brokenSource(url, error);
  });
  build.store.uploads.set(file.sha256, file.uuid);
  build.store.uploads.flush();
  build.store.urls.set(shown, { ...validatorsOf(response.headers), sha256: file.sha256, size: file.size });
  build.emit({ type: "downloaded", url: shown, bytes: file.size, sha256: file.sha256 });
  return file;
}

/** A URL as it may be shown and stored. */
export function withoutCredentials(url: string): string {
  const parsed = new URL(url);
  parsed.username = "";
  parsed.password = "";
  return parsed.href;
}

type Validators = Pick<UrlEntry, "etag" | "lastModified" | "contentMd5">;

async function isUnchanged(url: string, known: UrlEntry, build: BuildJob): Promise<boolean> {
  if (known.etag === null && known.lastModified === null && known.contentMd5 === null) return false;
  const headers: Record<string, string> = {};
  if (known.etag !== null) headers["If-None-Match"] = known.etag;
  if (known.lastModified !== null) headers["If-Modified-Since"] = known.lastModified;
  const response = await request(url, { method: "HEAD", headers }, build);
  if (response.status === 304) return true;
  return response.ok && validatorsMatch(known, validatorsOf(response.headers));
}

/** Every validator that was given then has to be given again, and be the same. */
export function validatorsMatch(known: Validators, now: Validators): boolean {
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

const maximalRedirects = 10;

/** Follows redirects itself: one from https to http is refused. The bytes stay as they are sent, compressed or not. */
async function request(
  url: string,
  init: { method: "GET" | "HEAD"; headers?: Record<string, string> },
  build: BuildJob,
): Promise<Response> {
  const { target, authorization } = splitCredentials(url);
  let address = target;
  for (let redirects = 0; redirects <= maximalRedirects; redirects++) {
    const sameOrigin = address.origin === target.origin;
    const response = await reach(address, build, {
      method: init.method,
      headers: {
        "Accept-Encoding": "identity",
        ...init.headers,
        ...(authorization !== undefined && sameOrigin ? { Authorization: authorization } : {}),
      },
      redirect: "manual",
      decompress: false,
      signal: build.signal,
    });
    const location = response.headers.get("location");
    if (![301, 302, 303, 307, 308].includes(response.status) || location === null) return response;
    await response.body?.cancel();
    const next = new URL(location, address);
    if (!/^https?:$/.test(next.protocol) || (address.protocol === "https:" && next.protocol === "http:")) {
      throw new BoughError(
        `ADD ${withoutCredentials(url)}: the server redirects to ${withoutCredentials(next.href)}, which is less secure; refused`,
        {
          hint: "Name the final address in the Dockerfile if you trust it.",
        },
      );
    }
    address = next;
  }
  throw new BoughError(`ADD ${withoutCredentials(url)}: more than ${maximalRedirects} redirects`);
}

async function reach(address: URL, build: BuildJob, init: BunFetchRequestInit): Promise<Response> {
  try {
    return await build.fetchUrl(address.href, init);
  } catch (error) {
    build.signal.throwIfAborted();
    throw brokenSource(address.href, error);
  }
}

function brokenSource(url: string, error: unknown): BoughError {
  const { reason, received } = explainFault(error);
  return new BoughError(`ADD ${withoutCredentials(url)}: ${reason}`, {
    hint: received ? "Run the build again." : "Is the address right, and can this machine reach it?",
    cause: error,
  });
}

function splitCredentials(url: string): { target: URL; authorization: string | undefined } {
  const target = new URL(withoutCredentials(url));
  const { username, password } = new URL(url);
  if (username === "" && password === "") return { target, authorization: undefined };
  const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return { target, authorization: `Basic ${Buffer.from(pair).toString("base64")}` };
}

/** Passes the bytes on, and breaks the stream at its end if they are not the expected ones: then nothing is stored. */
function verified(
  body: ReadableStream<Uint8Array>,
  expected: string,
  url: string,
): ReadableStream<Uint8Array> {
  const hash = new Bun.CryptoHasher("sha256");
  return body.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        hash.update(chunk);
        controller.enqueue(chunk);
      },
      flush(controller) {
        const actual = hash.digest("hex");
        if (actual === expected) return;
        controller.error(
          new BoughError(`ADD ${url}: the content has the digest sha256:${actual}, not sha256:${expected}`, {
            hint: "Check the address and the checksum; nothing was stored.",
          }),
        );
      },
    }),
  );
}
