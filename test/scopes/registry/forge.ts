/** What whoever may write to a cache's repository can do: change the index of an unsigned cache, and put blobs beside it. */

import { encodeScopeIndex } from "../../../src/builder/scopes/index-file.ts";
import { createIndexReader } from "../../../src/builder/scopes/read-index.ts";
import { prepareArtifact } from "../../../src/builder/scopes/registry/artifact.ts";
import { createArtifactPlace } from "../../../src/builder/scopes/registry/artifact-place.ts";
import type { ScopeIndex } from "../../../src/builder/scopes/scope-index.ts";
import { systemClock } from "../../../src/clock.ts";
import { digestOf } from "../../../src/image/digest.ts";
import type { Descriptor } from "../../../src/image/oci-layout.ts";
import type { BlobStore } from "../../../src/registry/blob-store.ts";
import { openBlobStore } from "../../../src/registry/open-blob-store.ts";
import { tarOf } from "../../support/tar-bytes.ts";

const { signal } = new AbortController();
const gzip = "application/vnd.oci.image.layer.v1.tar+gzip";

/** `reference`: HOST/NAME:TAG. */
interface Cache {
  store: BlobStore;
  tag: string;
  name: string;
}

export function openCache(reference: string): Cache {
  const [, host = "", name = "", tag = ""] = /^([^/]+)\/(.+):([^:/]+)$/.exec(reference) ?? [];
  const dependencies = { fetch, clock: systemClock, environment: {} };
  return { store: openBlobStore(`docker://${host}/${name}`, dependencies), tag, name: `${name}:${tag}` };
}

export async function readCacheIndex({ store, tag, name }: Cache): Promise<ScopeIndex> {
  const cache = { address: store.address, tag, name, label: name };
  const place = createArtifactPlace(cache, { store, clock: systemClock, signal });
  const reader = createIndexReader(place, { warn: () => undefined });
  const found = await reader.read();
  if (found.written === undefined) throw new Error(`there is no cache ${name}`);
  return reader.readSteps(found);
}

/** Writes an index, unsigned. `blobs`: which the manifest names. */
export async function writeCacheIndex(
  { store, tag, name }: Cache,
  index: ScopeIndex,
  blobs: readonly Descriptor[] = [],
): Promise<void> {
  const header = { scope: name, by: "forged", at: Date.now(), merged: [] };
  const files = encodeScopeIndex(index, header);
  const manifest = await prepareArtifact(store, files, { blobs, kept: new Set() }, signal);
  await store.putManifest(tag, manifest, signal);
}

/** Puts a layer with one file into the repository. */
export async function putLayer(
  { store }: Cache,
  path: string,
  content: string,
): Promise<Descriptor & { diffId: string }> {
  const archive = Buffer.from(tarOf([{ name: path, content }]));
  const bytes = Bun.gzipSync(archive);
  const blob = { mediaType: gzip, digest: digestOf(bytes), size: bytes.byteLength };
  await store.putBlob(blob, () => [bytes][Symbol.iterator]() as never, signal);
  return { ...blob, diffId: digestOf(archive) };
}
