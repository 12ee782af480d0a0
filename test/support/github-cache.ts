/**
 * A service on loopback that speaks the protocol of GitHub's cache, version 2, and the store of files behind it: entries are written
 * once, belong to a branch, and are found by their keys or the newest by a prefix. BuildKit's `type=gha` works with it.
 */
import { randomUUID } from "node:crypto";

export interface GithubEntry {
  key: string;
  version: string;
  /** The branch that wrote it. */
  ref: string;
  content: Uint8Array<ArrayBuffer>;
  isComplete: boolean;
}

type Respond = (request: Request) => Response | undefined | Promise<Response | undefined>;

export interface GithubCache extends AsyncDisposable {
  url: string;
  /** In the order of their creation. */
  entries: GithubEntry[];
  /** Methods and paths of all requests, without signatures. */
  requests: string[];
  /** Bytes of the bodies of all responses. */
  sentBytes: number;
  /** Returns a response in place of the service's; `undefined`: the service responds. */
  intercept: Respond;
  /** Makes a token that opens branches: `refs/heads/main` to write and read, `refs/heads/main:read` to read only. */
  tokenFor(...refs: readonly string[]): string;
  /** Returns the variables that a job has for an action. */
  environmentFor(...refs: readonly string[]): Record<string, string>;
}

interface Right {
  Scope: string;
  Permission: number;
}

const [canRead, canWrite] = [1, 2];
const service = "/twirp/github.actions.results.api.v1.CacheService/";

export function startGithubCache(): GithubCache {
  const tokens = new Map<string, Right[]>();
  const blobs = new Map<string, { entry: GithubEntry; signature: string; blocks: Map<string, Uint8Array> }>();

  const twirpError = (status: number, code: string, msg: string) => Response.json({ code, msg }, { status });
  const signed = (entry: GithubEntry) => {
    const [id, signature] = [randomUUID(), randomUUID()];
    blobs.set(id, { entry, signature, blocks: new Map() });
    return `${cache.url}store/${id}?se=2100-01-01T00%3A00%3A00Z&sig=${signature}%3D`;
  };

  function find(rights: readonly Right[], fields: Record<string, unknown>): GithubEntry | undefined {
    const {
      key,
      restore_keys = [],
      version,
    } = fields as { key: string; restore_keys?: string[]; version: string };
    for (const { Scope, Permission } of rights) {
      if ((Permission & canRead) === 0) continue;
      const own = cache.entries.filter(
        (entry) => entry.isComplete && entry.ref === Scope && entry.version === version,
      );
      const exact = own.findLast((entry) => entry.key === key);
      if (exact !== undefined) return exact;
      for (const prefix of restore_keys) {
        const newest = own.findLast((entry) => entry.key.startsWith(prefix));
        if (newest !== undefined) return newest;
      }
    }
    return undefined;
  }

  async function call(method: string, request: Request): Promise<Response> {
    const rights = tokens.get(request.headers.get("authorization")?.replace(/^Bearer /, "") ?? "");
    if (rights === undefined) return twirpError(401, "unauthenticated", "the token is not valid");
    if (request.headers.get("content-type") !== "application/json")
      return twirpError(404, "bad_route", "JSON only");
    const fields = (await request.json()) as Record<string, unknown>;
    const { key, version } = fields as { key: string; version: string };
    const ref = rights.find(({ Permission }) => (Permission & canWrite) !== 0)?.Scope;
    if (typeof key !== "string" || key === "" || key.length > 512 || key.includes(","))
      return twirpError(400, "invalid_argument", "the key is not valid");
    const own = cache.entries.find(
      (entry) => entry.key === key && entry.version === version && entry.ref === ref,
    );
    switch (method) {
      case "GetCacheEntryDownloadURL": {
        const entry = find(rights, fields);
        if (entry === undefined)
          return Response.json({ ok: false, signed_download_url: "", matched_key: "" });
        return Response.json({ ok: true, signed_download_url: signed(entry), matched_key: entry.key });
      }
      case "CreateCacheEntry": {
        if (ref === undefined) return twirpError(403, "permission_denied", "the token has no writable scope");
        if (own !== undefined)
          return twirpError(409, "already_exists", "cache entry with the same key exists");
        const entry = { key, version, ref, content: new Uint8Array(0), isComplete: false };
        cache.entries.push(entry);
        return Response.json({ ok: true, signed_upload_url: signed(entry) });
      }
      case "FinalizeCacheEntryUpload": {
        if (own === undefined) return twirpError(404, "not_found", "no such entry");
        if (own.content.byteLength !== Number(fields.size_bytes))
          return twirpError(400, "invalid_argument", "the size is another one");
        own.isComplete = true;
        return Response.json({ ok: true, entry_id: String(cache.entries.indexOf(own) + 1) });
      }
      default:
        return twirpError(404, "bad_route", method);
    }
  }

  async function store(id: string, url: URL, request: Request): Promise<Response> {
    const blob = blobs.get(id);
    if (blob === undefined || url.searchParams.get("sig") !== `${blob.signature}=`)
      return new Response("<Error><Code>AuthenticationFailed</Code></Error>", { status: 403 });
    if (request.headers.has("authorization")) return new Response("<Error/>", { status: 400 });
    const { entry, blocks } = blob;
    if (request.method === "GET" || request.method === "HEAD") return download(entry, request);
    const body = await request.bytes();
    switch (url.searchParams.get("comp")) {
      case "block":
        blocks.set(url.searchParams.get("blockid") ?? "", body);
        break;
      case "blocklist": {
        const ids = [
          ...Buffer.from(body)
            .toString()
            .matchAll(/<(?:Latest|Uncommitted)>([^<]+)</g),
        ];
        const parts = ids.map(([, name = ""]) => blocks.get(name));
        if (parts.includes(undefined)) return new Response("<Error/>", { status: 400 });
        entry.content = new Uint8Array(Buffer.concat(parts.filter((part) => part !== undefined)));
        break;
      }
      default:
        if (request.headers.get("x-ms-blob-type") !== "BlockBlob")
          return new Response("<Error/>", { status: 400 });
        entry.content = new Uint8Array(body);
    }
    return new Response(null, { status: 201, headers: { etag: `"${randomUUID()}"`, "x-ms-request-id": id } });
  }

  function download({ content }: GithubEntry, request: Request): Response {
    const range = request.headers.get("x-ms-range") ?? request.headers.get("range");
    const [, start = "0", end = ""] = /^bytes=(\d+)-(\d*)$/.exec(range ?? "") ?? [];
    const first = Number(start);
    const last = Math.min(end === "" ? Number.POSITIVE_INFINITY : Number(end), content.byteLength - 1);
    if (first > 0 && first >= content.byteLength)
      return new Response("<Error><Code>InvalidRange</Code></Error>", { status: 416 });
    const part = content.subarray(first, last + 1);
    const headers = { etag: '"1"', "content-range": `bytes ${first}-${last}/${content.byteLength}` };
    return new Response(part, range === null ? {} : { status: 206, headers });
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: 2 ** 40,
    async fetch(request) {
      const url = new URL(request.url);
      cache.requests.push(
        `${request.method} ${url.pathname.replace(service, "").replace(/[0-9a-f-]{36}$/, "")}`,
      );
      const given = await cache.intercept(request);
      const [, id] = /^\/store\/(.+)$/.exec(url.pathname) ?? [];
      const response =
        given ??
        (id !== undefined
          ? await store(id, url, request)
          : url.pathname.startsWith(service) && request.method === "POST"
            ? await call(url.pathname.slice(service.length), request)
            : new Response("not found", { status: 404 }));
      if (response.body === null || given !== undefined) return response;
      const bytes = await response.bytes();
      cache.sentBytes += bytes.byteLength;
      return new Response(request.method === "HEAD" ? null : bytes, response);
    },
  });

  const cache: GithubCache = {
    url: `http://127.0.0.1:${server.port}/`,
    entries: [],
    requests: [],
    sentBytes: 0,
    intercept: () => undefined,
    tokenFor(...refs) {
      const rights = refs.map((text): Right => {
        const [, Scope = "", only] = /^(.*?)(:read)?$/.exec(text) ?? [];
        return { Scope, Permission: only === undefined ? canRead | canWrite : canRead };
      });
      const part = (value: object) => Buffer.from(JSON.stringify(value)).toString("base64url");
      const claims = { ac: JSON.stringify(rights), nbf: 1, exp: 4_000_000_000, jti: randomUUID() };
      const token = `${part({ alg: "HS256", typ: "JWT" })}.${part(claims)}.${part({ signature: randomUUID() })}`;
      tokens.set(token, rights);
      return token;
    },
    environmentFor: (...refs) => ({
      ACTIONS_CACHE_SERVICE_V2: "True",
      ACTIONS_RESULTS_URL: cache.url,
      ACTIONS_RUNTIME_TOKEN: cache.tokenFor(...(refs.length === 0 ? ["refs/heads/main"] : refs)),
    }),
    [Symbol.asyncDispose]: () => server.stop(true),
  };
  return cache;
}
