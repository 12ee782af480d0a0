import { BoughError } from "../errors.ts";
import type { Descriptor } from "../image/oci-layout.ts";
import { readAtMost, tap } from "../streams.ts";
import { type BlobChecks, MissingBlobError, verified } from "./blob-store.ts";
import type { RegistryClient } from "./client.ts";
import { RegistryError } from "./registry-error.ts";

type Blob = Pick<Descriptor, "digest" | "size">;

interface DownloadOptions {
  signal: AbortSignal;
  checks: BlobChecks | undefined;
  /** Called for each registry that has failed, as long as another one is left. */
  onFailure?(client: RegistryClient, error: RegistryError): void;
  /** Called for each chunk, with the registry that has sent it. */
  onChunk?(client: RegistryClient): void;
}

/**
 * Opens a blob of the first registry that has it. A transfer that breaks off continues at the same byte, from the next registry if
 * this one has failed for good.
 */
export async function downloadBlob(
  clients: readonly [RegistryClient, ...RegistryClient[]],
  blob: Blob,
  { signal, checks, onFailure = () => undefined, onChunk = () => undefined }: DownloadOptions,
): Promise<AsyncIterable<Uint8Array>> {
  const left = [...clients];
  const giveUp = (error: BoughError) => {
    const client = left.shift();
    if (client !== undefined && error instanceof RegistryError) onFailure(client, error);
  };
  const first = await openNext(left, blob, 0, { giveUp, signal });
  const places = clients.map(({ repository }) => repository.address).join(" or ");
  const chunks = tap(continued(left, blob, first, { giveUp, signal }), () => {
    if (left[0] !== undefined) onChunk(left[0]);
  });
  return verified(chunks, blob, `${places}: the blob`, checks);
}

interface Continuation {
  /** Removes the first of the registries that are left. */
  giveUp(error: BoughError): void;
  signal: AbortSignal;
}

/** Opens the rest of a blob. Gives up registries that fail, and throws the error of the last one. */
async function openNext(
  left: RegistryClient[],
  blob: Blob,
  start: number,
  { giveUp, signal }: Continuation,
): Promise<AsyncIterable<Uint8Array>> {
  for (;;) {
    const [client, next] = left;
    if (client === undefined) throw new Error("unreachable: the last registry is never removed");
    try {
      return await client.repeat(() => openFrom(client, blob, start, signal), signal);
    } catch (error) {
      signal.throwIfAborted();
      if (next === undefined || !(error instanceof BoughError)) throw error;
      giveUp(error);
    }
  }
}

async function* continued(
  left: RegistryClient[],
  blob: Blob,
  first: AsyncIterable<Uint8Array>,
  { giveUp, signal }: Continuation,
): AsyncGenerator<Uint8Array> {
  let bytes = 0;
  let emptyAttempts = 0;
  /** Gives up the registry that has failed, unless another attempt may succeed. Throws if it is the last one. */
  const handleFailure = (error: RegistryError, received: number) => {
    emptyAttempts = received === 0 ? emptyAttempts + 1 : 0;
    if (error.isTransient && emptyAttempts <= (left[0]?.retries ?? 0)) return;
    if (left.length === 1) throw error;
    emptyAttempts = 0;
    giveUp(error);
  };
  for (let chunks = first; ; ) {
    let [received, fault]: [number, RegistryError | undefined] = [0, undefined];
    try {
      for await (const chunk of chunks) {
        received += chunk.byteLength;
        bytes += chunk.byteLength;
        yield chunk;
      }
      // Some servers end a connection as if a body that lacks bytes were complete.
      if (bytes >= blob.size || (received === 0 && left.length === 1)) return;
      if (received === 0) left.shift();
    } catch (error) {
      if (!(error instanceof RegistryError)) throw error;
      handleFailure(error, received);
      fault = error;
    }
    if (bytes >= blob.size) return;
    try {
      chunks = await openNext(left, blob, bytes, { giveUp, signal });
    } catch (error) {
      signal.throwIfAborted();
      throw fault ?? error;
    }
  }
}

/** Opens the rest of a blob, also on a server without support for ranges, which sends all of it. */
async function openFrom(
  client: RegistryClient,
  { digest }: Pick<Descriptor, "digest">,
  start: number,
  signal: AbortSignal,
): Promise<AsyncIterable<Uint8Array>> {
  const scopes = [`repository:${client.repository.name}:pull`];
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

/** Reads a part of a blob. Returns `undefined` if the registry lacks the blob, or sends only whole ones. */
export async function downloadPart(
  client: RegistryClient,
  { digest }: Pick<Descriptor, "digest">,
  { start, size }: { start: number; size: number },
  signal: AbortSignal,
): Promise<Uint8Array | undefined> {
  const scopes = [`repository:${client.repository.name}:pull`];
  const headers = { range: `bytes=${start}-${start + size - 1}` };
  const request = { method: "GET", path: `blobs/${digest}`, scopes, headers, handles: [404, 416] } as const;
  return client.repeat(async () => {
    const { status, headers: answered, body } = await client.open(request, signal);
    if (status !== 206 || answered.get("content-range")?.startsWith(`bytes ${start}-`) !== true) {
      await body.cancel();
      return undefined;
    }
    const { bytes, isWhole } = await readAtMost(size, body);
    return isWhole && bytes.byteLength === size ? bytes : undefined;
  }, signal);
}

async function* without(count: number, chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  let left = count;
  for await (const chunk of chunks) {
    const skipped = Math.min(left, chunk.byteLength);
    left -= skipped;
    if (skipped < chunk.byteLength) yield chunk.subarray(skipped);
  }
}
