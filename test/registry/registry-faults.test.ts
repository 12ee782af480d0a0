/** What bough's own client of registries does about faults, on loopback: repeats, resumed transfers, redirects, hostile answers. */

import { expect, test } from "bun:test";
import { type Clock, systemClock } from "../../src/clock.ts";
import { digestOf } from "../../src/image/digest.ts";
import type { BlobStore } from "../../src/registry/blob-store.ts";
import { waitBeforeRetry } from "../../src/registry/exchange.ts";
import { openBlobStore } from "../../src/registry/open-blob-store.ts";
import { Secret } from "../../src/secret.ts";
import { blob, type Received, startFakeRegistry } from "./fake-registry.ts";

const { signal } = new AbortController();

/** Waits for nothing but the limits of a whole request, which never pass. */
function impatientClock() {
  const waits: number[] = [];
  let skipped = 0;
  const clock: Clock = {
    now: () => systemClock.now() + skipped,
    async sleep(milliseconds, signal) {
      if (milliseconds >= 60_000) return systemClock.sleep(milliseconds, signal);
      waits.push(milliseconds);
      skipped += milliseconds;
    },
  };
  return { clock, waits };
}

const open = (host: string, clock: Clock = impatientClock().clock): BlobStore =>
  openBlobStore(`docker://${host}/team/app`, { fetch, clock, environment: {} });
const read = async (store: BlobStore) =>
  Buffer.concat(await Array.fromAsync(await store.openBlob(blob, signal)));
async function* bytes(): AsyncGenerator<Uint8Array> {
  yield blob.bytes.subarray(0, 1000);
  yield blob.bytes.subarray(1000);
}
const put = (store: BlobStore) => store.putBlob(blob, bytes, signal);
const status = (code: number, headers: Record<string, string> = {}, body = "") =>
  new Response(body, { status: code, headers });

test.each<[string, Parameters<typeof waitBeforeRetry>[0], number | undefined]>([
  ["a broken connection", { isTransient: true, attempt: 1, retries: 2, random: 0, status: undefined }, 250],
  ["the next one", { isTransient: true, attempt: 2, retries: 2, random: 1, status: 500 }, 250],
  ["the last one", { isTransient: true, attempt: 3, retries: 2, random: 0, status: 500 }, undefined],
  ["what stays", { isTransient: false, attempt: 1, retries: 2, random: 0, status: 404 }, undefined],
  ["no repeats", { isTransient: true, attempt: 1, retries: 0, random: 0, status: 429 }, undefined],
  ["a limit", { isTransient: true, attempt: 5, retries: 2, random: 0, status: 429 }, 4000],
  [
    "a limit with a time",
    { isTransient: true, attempt: 1, retries: 2, random: 0, status: 429, retryAfterMilliseconds: 7000 },
    7000,
  ],
  [
    "hours",
    { isTransient: true, attempt: 1, retries: 2, random: 0, status: 503, retryAfterMilliseconds: 4e6 },
    undefined,
  ],
])("the wait after %s", (_, failure, wait) => {
  expect(waitBeforeRetry(failure)).toBe(wait);
});

test.each<[string, (request: Received, count: number) => Response | undefined, waits: number]>([
  ["429", (_, count) => (count === 1 ? status(429, { "retry-after": "3" }) : undefined), 3000],
  ["503", (_, count) => (count === 1 ? status(503, { "retry-after": "2" }) : undefined), 2000],
])("a %s is waited for as long as it says", async (_, respond, wait) => {
  let count = 0;
  await using registry = startFakeRegistry((request) =>
    request.target === "/v2/" ? undefined : respond(request, ++count),
  );
  const { clock, waits } = impatientClock();
  expect(await read(open(registry.host, clock))).toEqual(blob.bytes);
  expect(waits).toEqual([wait]);
});

test.each([500, 502, 504])("an upload that fails with %d begins again", async (code) => {
  let failures = 1;
  await using registry = startFakeRegistry(({ method, target }) =>
    method === "PUT" && target.includes("uploads") && failures-- > 0 ? status(code) : undefined,
  );
  await put(open(registry.host));
  const upload = `PUT blobs/uploads/1?state=s&digest=${encodeURIComponent(blob.digest)}`;
  expect(registry.calls().slice(1)).toEqual(["POST blobs/uploads/", upload, "POST blobs/uploads/", upload]);
  const last = registry.requests.at(-1);
  expect(last?.headers.get("content-length")).toBe("200000");
  expect(digestOf(last?.body ?? "")).toBe(blob.digest);
});

test.each<[string, number, RegExp]>([
  ["refuses", 403, /PUT http:\S+\/uploads\/1 responded with 403 Forbidden: denied: you may not/],
  ["is full", 507, /responded with 507/],
])("an upload to a registry that %s is tried once", async (_, code, message) => {
  const body = JSON.stringify({ errors: [{ code: "DENIED", message: "you may not" }] });
  await using registry = startFakeRegistry(({ method }) =>
    method === "PUT" ? status(code, {}, body) : undefined,
  );
  await expect(put(open(registry.host))).rejects.toThrow(message);
  expect(registry.requests).toHaveLength(3);
});

/** Closes the connection in the middle of a body. */
const cut = (from: number, to: number) =>
  new Response(
    new ReadableStream({
      async pull(controller) {
        controller.enqueue(blob.bytes.subarray(from, to));
        await Bun.sleep(5);
        controller.error(new Error("cut"));
      },
    }),
    {
      status: from === 0 ? 200 : 206,
      headers: from === 0 ? {} : { "content-range": `bytes ${from}-${blob.size - 1}/${blob.size}` },
    },
  );

test.each([
  ["that serves ranges", true],
  ["without ranges", false],
])("a download that breaks off is continued, from a registry %s", async (_, hasRanges) => {
  let gets = 0;
  await using registry = startFakeRegistry(({ method, headers }) => {
    if (method !== "GET" || ++gets === 1) return undefined;
    const start = hasRanges ? Number(/\d+/.exec(headers.get("range") ?? "")?.[0] ?? 0) : 0;
    if (gets < 4) return cut(start, start + 40_000);
    if (start === 0) return undefined;
    const range = `bytes ${start}-${blob.size - 1}/${blob.size}`;
    return new Response(blob.bytes.subarray(start), { status: 206, headers: { "content-range": range } });
  });
  expect(await read(open(registry.host))).toEqual(blob.bytes);
  expect(gets).toBeGreaterThan(3);
});

test.each<[string, () => Response, RegExp]>([
  ["other bytes", () => new Response(Buffer.alloc(blob.size, "other")), /the digest sha256:\w+, not/],
  ["more bytes", () => new Response(Buffer.alloc(blob.size + 1, "blob")), /has more than the 200000 bytes/],
  ["no bytes", () => new Response(""), /has 0 of the 200000 bytes/],
])("a blob of %s fails at its end", async (_, respond, message) => {
  await using registry = startFakeRegistry(({ target }) => (target === "/v2/" ? undefined : respond()));
  await expect(read(open(registry.host))).rejects.toThrow(message);
});

test("a redirect to another host is followed without credentials, and not in circles", async () => {
  await using storage = startFakeRegistry(() => new Response(blob.bytes));
  await using registry = startFakeRegistry(({ headers, target }) => {
    if (!headers.has("authorization")) return status(401, { "www-authenticate": 'Basic realm="r"' });
    return target === "/v2/" ? undefined : status(307, { location: `http://${storage.host}/x?signature=s` });
  });
  const credentials = { username: "ann", password: Secret.of("secret") };
  const store = openBlobStore(`docker://${registry.host}/team/app`, {
    ...{ fetch, credentials, environment: {} },
    clock: impatientClock().clock,
  });
  expect(await read(store)).toEqual(blob.bytes);
  expect(storage.requests.map(({ headers }) => headers.has("authorization"))).toEqual([false]);
  await using circle = startFakeRegistry(({ target }) =>
    target === "/v2/" ? undefined : status(302, { location: target }),
  );
  await expect(read(open(circle.host))).rejects.toThrow("redirects more than 5 times");
});

test.each([
  ["https://storage.example:port/x?signature=secret", /redirects to an invalid address/],
  [
    "s3://user:secret@storage/x?signature=secret",
    /redirects to an address that begins with s3:, not with http/,
  ],
])("no signature of a redirect is shown if that can't be followed: %s", async (location, message) => {
  await using registry = startFakeRegistry(({ target }) =>
    target === "/v2/" ? undefined : status(307, { location }),
  );
  const error = await read(open(registry.host)).catch(String);
  expect(error).toMatch(message);
  expect(error).not.toContain("secret");
});

const plain = "http://other.example/x";
test.each<[string, () => Response, (store: BlobStore) => Promise<unknown>]>([
  [
    "token server",
    () => status(401, { "www-authenticate": `Bearer realm="${plain}"` }),
    (store) => store.hasBlob(blob, signal),
  ],
  ["place for an upload", () => status(202, { location: plain }), put],
  ["place of a blob", () => status(307, { location: plain }), read],
])("a %s without TLS is refused to a registry with TLS, unless it is trusted", async (_, respond, call) => {
  const asked: string[] = [];
  const openTrusted = (isInsecure: boolean) =>
    openBlobStore("docker://registry.example/team/app", {
      ...{ clock: impatientClock().clock, environment: {}, isInsecure },
      async fetch(input) {
        const { origin, pathname } = new URL(input instanceof Request ? input.url : input);
        asked.push(origin);
        if (pathname === "/v2/") return new Response("{}");
        return origin === "https://registry.example" ? respond() : status(404);
      },
    });
  await expect(call(openTrusted(false))).rejects.toThrow(`${plain}, which is not encrypted`);
  expect(new Set(asked)).toEqual(new Set(["https://registry.example"]));
  await expect(call(openTrusted(true))).rejects.toThrow();
  expect(asked.at(-1)).toBe("http://other.example");
});

test.each([
  [201, true],
  [202, false],
  [403, false],
  [404, false],
  [500, false],
])("mounting a blob with the answer %d is %p", async (code, isMounted) => {
  await using registry = startFakeRegistry(({ method }) =>
    method === "POST" ? status(code, { location: "/v2/team/app/blobs/uploads/1" }) : undefined,
  );
  expect(await open(registry.host).mountBlob(blob, "team/base", signal)).toBe(isMounted);
  const mount = `POST blobs/uploads/?from=team%2Fbase&mount=${encodeURIComponent(blob.digest)}`;
  // The registry has begun an upload instead, which nobody needs.
  const cancel = code === 202 ? ["DELETE blobs/uploads/1"] : [];
  const since = registry.calls().lastIndexOf(mount);
  expect(registry.calls().slice(since)).toEqual([mount, ...cancel]);
});

test("an upload that a mount has begun, and that can't be ended, is left to the registry", async () => {
  await using registry = startFakeRegistry(({ method }) =>
    method === "POST" ? status(202, { location: "http://127.0.0.1:1/upload" }) : undefined,
  );
  expect(await open(registry.host).mountBlob(blob, "team/base", signal)).toBe(false);
});

test.each([400, 404, 405])("a tag that can't be removed (%d) is removed by its digest", async (code) => {
  const manifest = JSON.stringify({ schemaVersion: 2 });
  await using registry = startFakeRegistry(({ method, target }) => {
    if (method === "DELETE") return status(target.endsWith("/main") ? code : 202);
    return target.endsWith("/manifests/main") ? new Response(manifest) : undefined;
  });
  await open(registry.host).removeManifest("main", signal);
  expect(registry.calls().slice(1)).toEqual([
    "DELETE manifests/main",
    "GET manifests/main",
    `DELETE manifests/${digestOf(manifest)}`,
  ]);
});

test.each<[string, () => Response, RegExp]>([
  ["another manifest", () => new Response("{}"), /returns something else for the manifest/],
  ["a manifest of 5 MiB", () => new Response(Buffer.alloc(5 << 20)), /more than 4194304 bytes/],
])("a registry that returns %s is refused", async (_, respond, message) => {
  await using registry = startFakeRegistry(({ target }) => (target === "/v2/" ? undefined : respond()));
  await expect(open(registry.host).getManifest(blob.digest, signal)).rejects.toThrow(message);
});

const manifest = { mediaType: "application/vnd.oci.image.manifest.v1+json", bytes: Buffer.from("{}") };
const other = digestOf("other");
test.each<[string, (store: BlobStore) => Promise<void>]>([
  ["a blob", put],
  ["a manifest", (store) => store.putManifest("1", manifest, signal)],
])("a registry that says another digest for %s than was sent is not believed", async (_, send) => {
  const answering = (stored: string) =>
    startFakeRegistry(({ method }) =>
      method === "PUT" ? status(201, { "docker-content-digest": stored }) : undefined,
    );
  await using wrong = answering(other);
  await expect(send(open(wrong.host))).rejects.toThrow(
    `${wrong.host} has stored ${other} in place of sha256:`,
  );
  // A registry may say the digest by another algorithm, or nonsense.
  await using strange = answering("md5:1");
  await send(open(strange.host));
});

test("a registry that never answers is given up", async () => {
  const { promise: hangs, resolve } = Promise.withResolvers<void>();
  await using registry = startFakeRegistry(({ target }) => {
    if (target === "/v2/") return undefined;
    resolve();
    return new Promise<never>(() => {});
  });
  const clock: Clock = {
    ...systemClock,
    async sleep(milliseconds) {
      if (milliseconds >= 60_000) await hangs;
    },
  };
  await expect(open(registry.host, clock).hasBlob(blob, signal)).rejects.toThrow("no answer within 60 s");
});

test("a registry whose first answer breaks off leaves no timer behind", async () => {
  const limits: AbortSignal[] = [];
  const clock: Clock = {
    ...systemClock,
    sleep(milliseconds, stop) {
      if (milliseconds >= 60_000 && stop !== undefined) limits.push(stop);
      return systemClock.sleep(milliseconds, stop);
    },
  };
  const store = openBlobStore("docker://registry.example/team/app", {
    ...{ clock, isInsecure: true, environment: { BOUGH_RETRY: "0" } },
    fetch: async () => cut(0, 10),
  });
  await expect(store.hasBlob(blob, signal)).rejects.toThrow();
  expect(limits.map(({ aborted }) => aborted)).toEqual([true, true]);
});

test.each<[string, string[], number, boolean]>([
  ["a blob that another client is just sending", ["DIGEST_INVALID", "MANIFEST_BLOB_UNKNOWN"], 2, true],
  ["what is no manifest to it", ["MANIFEST_INVALID"], 1, false],
])("a manifest that a registry refuses for %s is sent %j: %d times", async (_, codes, times, isStored) => {
  let count = 0;
  await using registry = startFakeRegistry(({ method, target }) => {
    if (method !== "PUT" || !target.includes("/manifests/")) return undefined;
    if (++count > 1) return status(201);
    return status(400, {}, JSON.stringify({ errors: codes.map((code) => ({ code })) }));
  });
  const manifest = { mediaType: "application/vnd.oci.image.manifest.v1+json", bytes: Buffer.from("{}") };
  const sent = open(registry.host).putManifest("main", manifest, signal);
  expect(
    await sent.then(
      () => true,
      () => false,
    ),
  ).toBe(isStored);
  expect(count).toBe(times);
});
