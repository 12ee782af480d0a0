/** What every BlobStore does: a directory, and repositories of Debian's docker-registry. */

import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { digestOf } from "../../src/image/digest.ts";
import { mediaTypes } from "../../src/image/oci-layout.ts";
import { type BlobStore, MissingBlobError } from "../../src/registry/blob-store.ts";
import { openBlobStore, type StoreDependencies } from "../../src/registry/open-blob-store.ts";
import { Secret } from "../../src/secret.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(180_000);

const credentials = { username: "ann", password: "p:a ss\"'wörd" };
const dependencies: StoreDependencies = { fetch, clock: systemClock, environment: {} };
const { signal } = new AbortController();
const registries: Registry[] = [];
let stores: Record<string, BlobStore>;

beforeAll(async () => {
  registries.push(
    ...(await Promise.all([
      Registry.start(),
      Registry.start(credentials),
      Registry.start(credentials, undefined, { hasTls: true }),
    ])),
  );
  const [open, closed, secured] = registries.map(({ host }) => `docker://${host}/team/cache`);
  const login = {
    ...dependencies,
    credentials: { ...credentials, password: Secret.of(credentials.password) },
  };
  stores = {
    directory: openBlobStore(`dir:${join(temporaryDirectory(), "new/layout")}`, dependencies),
    registry: openBlobStore(open ?? "", dependencies),
    "registry with a password": openBlobStore(closed ?? "", login),
    "registry with a password and a certificate of its own": openBlobStore(secured ?? "", login),
  };
});
afterAll(() => Promise.all(registries.map((registry) => registry.stop())));

const bytesOf = (text: string) => new TextEncoder().encode(text);
const blobOf = (bytes: Uint8Array) => ({ digest: digestOf(bytes), size: bytes.byteLength });
async function* chunksOf(bytes: Uint8Array, size = 64 * 1024): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += size) yield bytes.slice(at, at + size);
}
const textOf = async (chunks: AsyncIterable<Uint8Array>) =>
  Buffer.concat(await Array.fromAsync(chunks)).toString();

describe.each([
  "directory",
  "registry",
  "registry with a password",
  "registry with a password and a certificate of its own",
])("a %s", (kind) => {
  const store = () => stores[kind] as BlobStore;

  test.each([
    ["small", bytesOf("a blob")],
    ["empty", new Uint8Array()],
    ["large", new Uint8Array(3_000_000).fill(7)],
  ])("keeps a %s blob", async (_, bytes) => {
    const blob = blobOf(bytes);
    expect(await store().hasBlob(blob, signal)).toBe(false);
    await expect(store().openBlob(blob, signal)).rejects.toBeInstanceOf(MissingBlobError);
    await store().putBlob(blob, () => chunksOf(bytes), signal);
    expect(await store().hasBlob(blob, signal)).toBe(true);
    expect(digestOf(await textOf(await store().openBlob(blob, signal)))).toBe(blob.digest);
  });

  test("refuses a blob that is not what its digest says, in both directions", async () => {
    const blob = blobOf(bytesOf("right"));
    const put = store().putBlob(blob, () => chunksOf(bytesOf("wrong")), signal);
    await expect(put).rejects.toThrow(/digest/);
    expect(await store().hasBlob(blob, signal)).toBe(false);
    const kept = bytesOf("kept");
    await store().putBlob(blobOf(kept), () => chunksOf(kept), signal);
    const opened = await store().openBlob({ ...blobOf(kept), size: 2 }, signal);
    await expect(textOf(opened)).rejects.toThrow("has more than the 2 bytes");
  });

  test("keeps manifests by tag and digest, moves tags and has others' none", async () => {
    const config = bytesOf("{}");
    await store().putBlob(blobOf(config), () => chunksOf(config), signal);
    const manifestOf = (annotations: object) => ({
      mediaType: mediaTypes.manifest,
      bytes: bytesOf(
        JSON.stringify({
          schemaVersion: 2,
          mediaType: mediaTypes.manifest,
          config: { mediaType: mediaTypes.config, ...blobOf(config) },
          layers: [],
          annotations,
        }),
      ),
    });
    const [first, second] = [manifestOf({ a: "1" }), manifestOf({ a: "2" })];
    expect(await store().getManifest("main", signal)).toBeUndefined();
    await store().putManifest("main", first, signal);
    expect(await store().getManifest("main", signal)).toEqual({ ...first, digest: digestOf(first.bytes) });
    await store().putManifest("main", second, signal);
    expect((await store().getManifest("main", signal))?.digest).toBe(digestOf(second.bytes));
    expect((await store().getManifest(digestOf(first.bytes), signal))?.bytes).toEqual(first.bytes);
    await store().putManifest(digestOf(second.bytes), second, signal);
    expect(await store().getManifest("other", signal)).toBeUndefined();
    expect(await store().getManifest(digestOf("none"), signal)).toBeUndefined();
  });
});

test.each(["wrong", "longer than it was"])(
  "a directory's damaged blob is written again: %s",
  async (damage) => {
    const path = temporaryDirectory();
    const store = openBlobStore(`dir:${path}`, dependencies);
    const bytes = bytesOf("right");
    const put = () => store.putBlob(blobOf(bytes), () => chunksOf(bytes), signal);
    await put();
    writeFileSync(join(path, "blobs/sha256", digestOf(bytes).slice(7)), damage);
    await put();
    expect(await textOf(await store.openBlob(blobOf(bytes), signal))).toBe("right");
  },
);

test.each([
  "",
  "registry.example/app",
  "docker://",
  "docker://registry.example/App",
  "docker://registry.example/app:1",
  "docker://registry.example/a/../b",
  "dir:relative",
])("%j is not an address", (address) => {
  expect(() => openBlobStore(address, dependencies)).toThrow(/invalid (address|repository)/);
});

test.each([
  ["docker://busybox", "docker://docker.io/library/busybox"],
  ["docker://index.docker.io/team/app", "docker://docker.io/team/app"],
  ["docker://localhost:5000/app", "docker://localhost:5000/app"],
  ["dir:/a b", "dir:/a b"],
])("the address of %s is %s", (written, address) => {
  expect(openBlobStore(written, dependencies).address).toBe(address);
});
