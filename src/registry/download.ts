import type { Descriptor } from "../image/oci-layout.ts";
import { MissingBlobError } from "./blob-store.ts";
import type { RegistryClient } from "./client.ts";
import { RegistryError } from "./registry-error.ts";
import { verified } from "./verified.ts";

interface DownloadOptions {
  scopes: readonly string[];
  signal: AbortSignal;
}

/** Opens a blob of a registry. A transfer that breaks off is continued where it was. */
export async function downloadBlob(
  client: RegistryClient,
  blob: Pick<Descriptor, "digest" | "size">,
  options: DownloadOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const { address } = client.repository;
  const first = await client.repeat(() => openFrom(client, blob, 0, options), options.signal);
  return verified(continued(client, blob, first, options), blob, `${address}: the blob`);
}

async function* continued(
  client: RegistryClient,
  blob: Pick<Descriptor, "digest" | "size">,
  first: AsyncIterable<Uint8Array>,
  options: DownloadOptions,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let fruitless = 0;
  for (let chunks = first; ; ) {
    let [received, fault]: [number, RegistryError | undefined] = [0, undefined];
    try {
      for await (const chunk of chunks) {
        received += chunk.byteLength;
        bytes += chunk.byteLength;
        yield chunk;
      }
      // Some servers end a connection as if a body that lacks bytes were complete.
      if (bytes >= blob.size || received === 0) return;
    } catch (error) {
      fruitless = received === 0 ? fruitless + 1 : 0;
      if (!(error instanceof RegistryError) || !error.isPassing || fruitless > client.retries) throw error;
      fault = error;
    }
    if (bytes >= blob.size) return;
    try {
      chunks = await client.repeat(() => openFrom(client, blob, bytes, options), options.signal);
    } catch (error) {
      options.signal.throwIfAborted();
      throw fault ?? error;
    }
  }
}

/** Opens the rest of a blob. A server that knows no ranges sends all of it. */
async function openFrom(
  client: RegistryClient,
  { digest }: Pick<Descriptor, "digest">,
  start: number,
  { scopes, signal }: DownloadOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const headers = start === 0 ? {} : { range: `bytes=${start}-` };
  const {
    status,
    headers: answered,
    body,
  } = await client.open({ method: "GET", path: `blobs/${digest}`, scopes, headers, handles: [404] }, signal);
  if (status === 404) {
    await body.cancel();
    throw new MissingBlobError(`${client.repository.address} has no blob ${digest}`);
  }
  const isRest = status === 206 && answered.get("content-range")?.startsWith(`bytes ${start}-`) === true;
  return start === 0 || isRest ? body : without(start, body);
}

async function* without(count: number, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.byteLength);
    left -= skipped;
    if (skipped < chunk.byteLength) yield chunk.subarray(skipped);
  }
}
