import { digestOf, isDigest } from "../image/digest.ts";
import { manifestTypes } from "../image/oci-layout.ts";
import { type BlobStore, cheapWriteIntervalMilliseconds, typeOfManifest } from "./blob-store.ts";
import type { RegistryClient, RegistryResponse } from "./client.ts";
import { downloadBlob, downloadPart } from "./download.ts";
import { shownAddress } from "./exchange.ts";
import { RegistryError, WrongDigestError, WrongManifestError } from "./registry-error.ts";
import { isDowngrade } from "./repository.ts";

/** Blobs up to this size are sent from memory: a stream for each would take longer. */
const maxHeldBytes = 1024 * 1024;

/** Opens a repository of a registry. */
export function createRegistryStore(client: RegistryClient): BlobStore {
  const { address, name } = client.repository;
  const pull = [`repository:${name}:pull`];
  const push = [`repository:${name}:pull,push`];

  /** Begins an upload. Returns its address, or `undefined` if the registry has mounted the blob. */
  async function begin(query: string, scopes: readonly string[], signal: AbortSignal) {
    const headers = { "content-length": "0" };
    const response = await client.once(
      { method: "POST", path: `blobs/uploads/${query}`, scopes, headers },
      signal,
    );
    return response.status === 201 ? undefined : uploadAddress(response, client);
  }

  /** Cancels an upload that is not needed. If that fails, the registry's own cleanup removes it some day. */
  async function endUpload(session: URL, scopes: readonly string[], signal: AbortSignal): Promise<void> {
    try {
      await client.once({ method: "DELETE", path: session, scopes }, signal);
    } catch (error) {
      signal.throwIfAborted();
      if (!(error instanceof RegistryError)) throw error;
    }
  }

  return {
    address,
    async getManifest(reference, signal) {
      const { status, headers, bytes } = await client.send(
        {
          method: "GET",
          path: `manifests/${reference}`,
          scopes: pull,
          headers: { accept: manifestTypes.join(", ") },
          handles: [404],
        },
        signal,
      );
      if (status === 404) return undefined;
      const digest = digestOf(bytes);
      if (isDigest(reference) && digest !== reference)
        throw new WrongManifestError(client.repository.registry, reference);
      return { digest, mediaType: mediaTypeOf(headers, bytes), bytes };
    },
    async findDigest(tag, signal) {
      const { status, headers } = await client.send(
        {
          method: "HEAD",
          path: `manifests/${tag}`,
          scopes: pull,
          headers: { accept: manifestTypes.join(", ") },
          handles: [404, 405],
        },
        signal,
      );
      if (status === 404) return undefined;
      const digest = headers.get("docker-content-digest");
      return isDigest(digest) ? digest : (await this.getManifest(tag, signal))?.digest;
    },
    async putManifest(reference, manifest, signal) {
      await putManifest(client, reference, manifest, signal);
    },
    async removeManifest(reference, signal) {
      const scopes = [`repository:${name}:delete,pull,push`];
      const remove = (which: string, handles: number[]) =>
        client.send({ method: "DELETE", path: `manifests/${which}`, scopes, handles }, signal);
      const isByDigest = isDigest(reference);
      const { status } = await remove(reference, isByDigest ? [404] : [400, 404, 405]);
      if (isByDigest || status < 300) return;
      // Some registries remove manifests by digest only, and some of those find none by a tag.
      const found = await this.getManifest(reference, signal);
      if (found !== undefined) await remove(found.digest, [404]);
    },
    async hasBlob({ digest }, signal) {
      const request = {
        method: "HEAD",
        path: `blobs/${digest}`,
        scopes: pull,
        handles: [404],
      } as const;
      const { status } = await client.send(request, signal);
      return status !== 404;
    },
    lock: async () => undefined,
    openBlob: (blob, signal, checks) => downloadBlob([client], blob, { signal, checks }),
    readPart: (blob, part, signal) => downloadPart(client, blob, part, signal),
    async putBlob({ digest, size }, open, signal) {
      const held = size <= maxHeldBytes ? await collect(open(), size) : undefined;
      await client.repeat(async () => {
        const location = await begin("", push, signal);
        if (location === undefined) return;
        location.searchParams.set("digest", digest);
        const headers = { "content-type": "application/octet-stream", "content-length": String(size) };
        const body = () => held ?? open();
        const stored = await client.once(
          { method: "PUT", path: location, scopes: push, headers, body },
          signal,
        );
        requireDigest(client, digest, stored.headers);
      }, signal);
    },
    minWriteIntervalMilliseconds: cheapWriteIntervalMilliseconds,
    async mountBlob({ digest }, from, signal) {
      const scopes = [...push, `repository:${from}:pull`];
      const query = `?${new URLSearchParams({ from, mount: digest })}`;
      try {
        const session = await client.repeat(() => begin(query, scopes, signal), signal);
        // A registry that can't mount the blob begins an upload, which the caller may not need: it may have to pack the blob first.
        if (session !== undefined) await endUpload(session, scopes, signal);
        return session === undefined;
      } catch (error) {
        // The user may lack access to the other repository, and other failures of a mount need not affect an upload.
        if (error instanceof RegistryError && error.status !== undefined) return false;
        throw error;
      }
    },
  };
}

/** Returns the `Location` of an upload, which may be relative. If it lacks TLS, the registry is behind a proxy that has it. */
function uploadAddress(
  { headers, url }: RegistryResponse,
  { isInsecure }: Pick<RegistryClient, "isInsecure">,
): URL {
  const location = URL.parse(headers.get("location") ?? "", url.href);
  if (!headers.has("location") || location === null || !/^https?:$/.test(location.protocol))
    throw new RegistryError(
      `POST ${shownAddress(url)} responded without a Location for the upload: is ${url.host} a registry?`,
      { isTransient: false },
    );
  if (location.host === url.host) location.protocol = url.protocol;
  if (isDowngrade(url, location) && !isInsecure)
    throw new RegistryError(
      `POST ${shownAddress(url)} redirects the upload to ${shownAddress(location)}, which is not encrypted`,
      { isTransient: false },
    );
  return location;
}

function mediaTypeOf(headers: Headers, bytes: Uint8Array): string {
  const [type = ""] = (headers.get("content-type") ?? "").split(";");
  return type.startsWith("application/vnd.") ? type.trim() : typeOfManifest(bytes);
}

async function collect(chunks: AsyncIterable<Uint8Array>, size: number): Promise<Uint8Array> {
  const bytes = new Uint8Array(size);
  let filled = 0;
  for await (const chunk of chunks) {
    if (filled + chunk.byteLength > size) throw new Error(`a blob has more than its ${size} bytes`);
    bytes.set(chunk, filled);
    filled += chunk.byteLength;
  }
  if (filled < size) throw new Error(`a blob has only ${filled} of its ${size} bytes`);
  return bytes;
}

/** Stores a manifest. Returns the headers of the response. */
export async function putManifest(
  client: RegistryClient,
  reference: string,
  { mediaType, bytes }: { mediaType: string; bytes: Uint8Array },
  signal: AbortSignal,
): Promise<RegistryResponse["headers"]> {
  const { headers } = await client.send(
    {
      ...{ method: "PUT", path: `manifests/${reference}` },
      scopes: [`repository:${client.repository.name}:pull,push`],
      ...{ headers: { "content-type": mediaType }, body: () => bytes },
    },
    signal,
  );
  requireDigest(client, digestOf(bytes), headers);
  return headers;
}

/** Throws if the registry's response names another digest. Some registries name none. */
function requireDigest(client: RegistryClient, sent: string, headers: RegistryResponse["headers"]): void {
  const stored = headers.get("docker-content-digest");
  if (isDigest(stored) && stored !== sent)
    throw new WrongDigestError(client.repository.registry, sent, stored);
}
