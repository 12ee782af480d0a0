/** A registry on loopback, in memory, that lists referrers: Debian's is older than these lists. */
import { digestOf } from "../../src/image/digest.ts";

export interface ReferrersRegistry extends AsyncDisposable {
  host: string;
  /** Manifests by `REPOSITORY@DIGEST` and `REPOSITORY:TAG`. Tests replace some. */
  manifests: Map<string, StoredText>;
  blobs: Map<string, Buffer>;
  /** Methods and paths of all requests. */
  requests: string[];
}

interface StoredText {
  mediaType: string;
  text: string;
}

export function startReferrersRegistry(): ReferrersRegistry {
  const manifests: ReferrersRegistry["manifests"] = new Map();
  const blobs: ReferrersRegistry["blobs"] = new Map();
  const requests: string[] = [];
  const missing = () => Response.json({ errors: [{ code: "MANIFEST_UNKNOWN" }] }, { status: 404 });

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const url = new URL(request.url);
      requests.push(`${request.method} ${url.pathname}`);
      if (url.pathname === "/v2/") return new Response("{}");
      const [, repository = "", kind, reference = ""] =
        /^\/v2\/(.+)\/(manifests|blobs|referrers)\/(.*)$/.exec(url.pathname) ?? [];
      const key = `${repository}${reference.startsWith("sha256:") ? "@" : ":"}${reference}`;
      const body = Buffer.from(await request.arrayBuffer());
      if (kind === "referrers") return listOf(repository, reference);
      if (kind === "blobs") return blob(request.method, url, reference, body);
      if (request.method === "PUT") {
        const stored = { mediaType: request.headers.get("content-type") ?? "", text: body.toString() };
        const digest = digestOf(body);
        for (const name of [key, `${repository}@${digest}`]) manifests.set(name, stored);
        const subject = JSON.parse(stored.text).subject?.digest;
        return new Response(null, {
          status: 201,
          headers: { "docker-content-digest": digest, ...(subject && { "oci-subject": subject }) },
        });
      }
      const found = manifests.get(key);
      if (found === undefined) return missing();
      const headers = { "content-type": found.mediaType, "docker-content-digest": digestOf(found.text) };
      return new Response(request.method === "HEAD" ? null : found.text, { headers });
    },
  });

  function listOf(repository: string, subject: string): Response {
    const found = [...manifests].flatMap(([name, { mediaType, text }]) => {
      const manifest = JSON.parse(text);
      if (!name.startsWith(`${repository}@`) || manifest.subject?.digest !== subject) return [];
      const { artifactType, annotations } = manifest;
      const digest = name.slice(repository.length + 1);
      return [{ mediaType, digest, size: Buffer.byteLength(text), artifactType, annotations }];
    });
    const mediaType = "application/vnd.oci.image.index.v1+json";
    const index = { schemaVersion: 2, mediaType, manifests: found };
    return Response.json(index, { headers: { "content-type": mediaType } });
  }

  function blob(method: string, url: URL, reference: string, body: Buffer): Response {
    if (method === "POST")
      return new Response(null, { status: 202, headers: { location: `${url.pathname}upload` } });
    const digest = url.searchParams.get("digest");
    if (method === "PUT" && digest !== null) {
      blobs.set(digest, body);
      return new Response(null, { status: 201 });
    }
    const found = blobs.get(reference);
    return found === undefined ? missing() : new Response(method === "HEAD" ? null : found);
  }

  return {
    ...{ host: `127.0.0.1:${server.port}`, manifests, blobs, requests },
    [Symbol.asyncDispose]: () => server.stop(true),
  };
}
