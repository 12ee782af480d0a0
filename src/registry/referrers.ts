/**
 * Manifests that refer to another one as their subject, such as its signatures.
 * https://github.com/opencontainers/distribution-spec/blob/main/spec.md#listing-referrers
 */
import type { Clock } from "../clock.ts";
import { BoughError } from "../errors.ts";
import { digestOf } from "../image/digest.ts";
import { type Descriptor, mediaTypes } from "../image/oci-layout.ts";
import { asRecord, asText, parseRecord } from "../service/http/json.ts";
import { type BlobStore, parseDescriptor } from "./blob-store.ts";
import type { RegistryClient } from "./client.ts";
import { createRegistryStore, putManifest } from "./registry-store.ts";

/** A manifest that names another one as its subject. */
export interface Referrer extends Descriptor {
  /** Its type, such as the media type of a Sigstore bundle. Some registries leave it out. */
  artifactType?: string;
}

export interface Referrers {
  /** The repository of the referrers. */
  store: BlobStore;
  /** Lists the referrers of a manifest. */
  list(subject: Pick<Descriptor, "digest">, signal: AbortSignal): Promise<Referrer[]>;
  /** Stores a manifest that names its subject. `referrer`: its descriptor for the list of referrers. */
  add(
    subject: Pick<Descriptor, "digest">,
    referrer: Referrer,
    bytes: Uint8Array,
    signal: AbortSignal,
  ): Promise<void>;
}

/** The statuses of a registry without the referrers API. */
const unsupportedStatuses = [400, 404, 405];
const maxPages = 100;
/** The limit of attempts to write the index under a tag: another writer may have replaced it since it was read. */
const maxWrites = 5;
const rewriteDelayMilliseconds = 200;

export function createReferrers(client: RegistryClient, clock: Pick<Clock, "sleep">): Referrers {
  const store = createRegistryStore(client);
  const { name } = client.repository;

  /** Returns `undefined` if the registry lacks the referrers API. */
  async function listByApi(digest: string, signal: AbortSignal): Promise<Referrer[] | undefined> {
    const found: Referrer[] = [];
    let path: string | URL = `referrers/${digest}`;
    for (let page = 1; page <= maxPages; page++) {
      const response = await client.send(
        {
          ...{ method: "GET", path, scopes: [`repository:${name}:pull`], handles: unsupportedStatuses },
          headers: { accept: mediaTypes.index },
        },
        signal,
      );
      const index = response.status === 200 ? parseRecord(response.bytes) : undefined;
      if (asText(index?.mediaType) !== mediaTypes.index || !Array.isArray(index?.manifests)) return undefined;
      found.push(...readReferrers(response.bytes));
      const next = nextPage(response.headers, response.url);
      if (next === undefined) break;
      path = next;
    }
    return found;
  }

  async function listByTag(digest: string, signal: AbortSignal): Promise<Referrer[]> {
    const index = await store.getManifest(fallbackTag(digest), signal);
    return index === undefined ? [] : readReferrers(index.bytes);
  }

  /** Adds a referrer to the index under the fallback tag. */
  async function addByTag(digest: string, referrer: Referrer, signal: AbortSignal): Promise<void> {
    const tag = fallbackTag(digest);
    for (let written = 0; ; written++) {
      const index = await store.getManifest(tag, signal);
      const record = index === undefined ? undefined : parseRecord(index.bytes);
      const manifests: unknown[] = Array.isArray(record?.manifests) ? record.manifests : [];
      if (manifests.some((entry) => parseDescriptor(entry)?.digest === referrer.digest)) return;
      if (written === maxWrites) break;
      // Another writer has replaced it, or the registry still returns the old index.
      if (written > 0) await clock.sleep(written * rewriteDelayMilliseconds, signal);
      const text = JSON.stringify({
        ...{ schemaVersion: 2, mediaType: mediaTypes.index },
        ...record,
        manifests: [...manifests, referrer],
      });
      await store.putManifest(tag, { mediaType: mediaTypes.index, bytes: Buffer.from(text) }, signal);
    }
    throw new BoughError(`other writers keep replacing ${client.repository.address}:${tag}`, {
      hint: "Try again: each writer adds its referrers to the index under this tag.",
    });
  }

  return {
    store,
    async list({ digest }, signal) {
      return (await listByApi(digest, signal)) ?? (await listByTag(digest, signal));
    },
    async add({ digest }, referrer, bytes, signal) {
      const headers = await putManifest(
        client,
        referrer.digest,
        { mediaType: referrer.mediaType, bytes },
        signal,
      );
      // With this header, the registry confirms that its list has the manifest.
      if (headers.get("oci-subject") === null) await addByTag(digest, referrer, signal);
    },
  };
}

/** Returns the descriptor of a manifest for a list of referrers. */
export function referrerOf(
  bytes: Uint8Array,
  artifactType: string,
  annotations: Readonly<Record<string, string>>,
): Referrer {
  const { byteLength: size } = bytes;
  return { mediaType: mediaTypes.manifest, digest: digestOf(bytes), size, artifactType, annotations };
}

/** https://github.com/opencontainers/distribution-spec/blob/main/spec.md#referrers-tag-schema */
function fallbackTag(digest: string): string {
  return digest.replace(":", "-");
}

function readReferrers(bytes: Uint8Array): Referrer[] {
  const manifests = parseRecord(bytes)?.manifests;
  return (Array.isArray(manifests) ? manifests : []).flatMap((entry) => {
    const descriptor = parseDescriptor(entry);
    const artifactType = asText(asRecord(entry)?.artifactType);
    return descriptor === undefined ? [] : [{ ...descriptor, ...(artifactType && { artifactType }) }];
  });
}

/** Returns the address in a `Link` to the next page. https://www.rfc-editor.org/rfc/rfc8288 */
function nextPage(headers: Headers, url: URL): URL | undefined {
  const [, target = ""] = /<([^>]*)>\s*;\s*rel="?next"?/.exec(headers.get("link") ?? "") ?? [];
  const next = target === "" ? null : URL.parse(target, url.href);
  return next?.origin === url.origin ? next : undefined;
}
