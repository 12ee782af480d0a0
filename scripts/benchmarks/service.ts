/**
 * An image service for measurements, run in a separate process. It stores no contents except indexes of scopes, runs nothing, and
 * ends every operation at once. `GET /bench` returns its requests and the time they took; `DELETE /bench` resets both.
 * Options: `--polling` (no events), `--file PATH` (serves that file at any other path, with a validator), `--image-file PATH`
 * (every image has that file as `/large`), `--away MILLISECONDS` (each response takes that long), `--seconds SECONDS` (each
 * command takes that long), `--tls DIRECTORY` (HTTPS, also HTTP/2, with `key.pem` and `cert.pem` of that directory).
 */
const file = fileOf("--file");
const imageFile = fileOf("--image-file");
const awayMilliseconds = process.argv.includes("--away") ? Number(process.argv.at(-1)) : 0;
const commandSeconds = Number(valueOf("--seconds") ?? 0);
const tlsDirectory = valueOf("--tls");
const hasEvents = !process.argv.includes("--polling");

let requests: Record<string, number> = {};
let clients = new Set<number>();
let handlerMilliseconds = 0;
let contents = new Map<string, number>();
let sentBytes = 0;
let count = 0;
const operations = new Map<string, { image: string; endsAt: number }>();
/** Files with indexes of scopes by id, and the files of images that have some by path. */
const indexes = new Map<string, Uint8Array>();
const placed = new Map<string, Record<string, { uuid: string }>>();
const images = [{ uuid: makeId(), tag: "base:1", created_at: "2026-01-01T00:00:00Z", operation_uuid: null }];

const server = Bun.serve({
  hostname: "127.0.0.1",
  port: 0,
  ...(tlsDirectory === undefined
    ? {}
    : {
        tls: { key: Bun.file(`${tlsDirectory}/key.pem`), cert: Bun.file(`${tlsDirectory}/cert.pem`) },
        http2: true,
      }),
  idleTimeout: 0,
  maxRequestBodySize: Number.MAX_SAFE_INTEGER,
  async fetch(request, { requestIP }) {
    const started = performance.now();
    const { pathname, searchParams } = new URL(request.url);
    if (pathname === "/bench") return answerBench(request.method);
    if (file !== undefined) return new Response(file, { headers: { etag: '"1"' } });
    if (awayMilliseconds > 0) await Bun.sleep(awayMilliseconds);
    clients.add(requestIP.call(server, request)?.port ?? 0);
    try {
      return await answer(request, pathname, searchParams);
    } finally {
      handlerMilliseconds += performance.now() - started;
    }
  },
});
process.stdout.write(`${server.url.origin}\n`);

function valueOf(option: string): string | undefined {
  const index = process.argv.indexOf(option);
  return index === -1 ? undefined : process.argv[index + 1];
}

function fileOf(option: string) {
  return process.argv.includes(option) ? Bun.file(process.argv.at(-1) ?? "") : undefined;
}

function answerBench(method: string): Response {
  if (method === "DELETE") {
    requests = {};
    clients = new Set();
    handlerMilliseconds = 0;
    contents = new Map();
    sentBytes = 0;
  }
  const repeated = [...contents.values()].reduce((sum, times) => sum + times - 1, 0);
  return Response.json({
    requests,
    connections: clients.size,
    handlerMilliseconds,
    contents: contents.size,
    repeated,
    sentBytes,
  });
}

async function answer(request: Request, pathname: string, query: URLSearchParams): Promise<Response> {
  const [, , resource = "", id = "", part] = pathname.split("/");
  const call = `${request.method} /v1/${[resource, id === "" ? "" : id === "import" ? id : "ID", part ?? ""].filter(Boolean).join("/")}`;
  requests[call] = (requests[call] ?? 0) + 1;
  switch (call) {
    case "GET /v1/images": {
      const uuid = query.get("uuid");
      if (uuid !== null) return Response.json({ images: [{ ...images[0], uuid, tag: null }] });
      return Response.json({ images: images.filter(({ tag }) => tag.startsWith(query.get("tag") ?? "")) });
    }
    case "POST /v1/files":
      return Response.json(await storeFile(request), { status: 201 });
    case "GET /v1/files/ID":
    case "HEAD /v1/files/ID":
      return Response.json({ uuid: id }, { status: contents.has(id) ? 200 : 404 });
    case "POST /v1/instances": {
      const { files = {} } = (await request.json()) as { files?: Record<string, { uuid: string }> };
      const [uuid, image] = [makeId(), makeId()];
      operations.set(uuid, { image, endsAt: performance.now() + commandSeconds * 1000 });
      if (Object.values(files).some((file) => indexes.has(file.uuid))) placed.set(image, files);
      return Response.json({ uuid, status: "PENDING" }, { status: 201 });
    }
    case "GET /v1/operations/ID":
      return Response.json(recordOf(id));
    case "GET /v1/operations/ID/events":
      return hasEvents ? eventsOf(id) : Response.json({ error: "no such route" }, { status: 404 });
    case "GET /v1/inspect/ID/list": {
      const path = query.get("path") ?? "/";
      const isThere = path === "/" || (path === "/large" && imageFile !== undefined);
      return Response.json(isThere ? { path, files: listFiles() } : { error: "no such path" }, {
        status: isThere ? 200 : 404,
      });
    }
    case "GET /v1/inspect/ID/download": {
      const index = indexes.get(placed.get(id)?.[query.get("path") ?? ""]?.uuid ?? "");
      return new Response(index === undefined ? imageFile : new Blob([new Uint8Array(index)]));
    }
    case "PATCH /v1/images/ID/tag": {
      const { tag } = (await request.json()) as { tag: string };
      if (placed.has(id))
        images.push({ uuid: id, tag, created_at: "2026-01-01T00:00:00Z", operation_uuid: null });
      return Response.json({ uuid: id });
    }
    default:
      return Response.json({ error: `no such route: ${call}` }, { status: 404 });
  }
}

function listFiles() {
  if (imageFile === undefined) return [];
  const type = { is_regular: true, is_dir: false, is_symlink: false, symlink_to: "" };
  return [{ ...type, path: "/large", size: imageFile.size, mode: 0o644, uid: 0, gid: 0, mtime: 0 }];
}

async function storeFile(request: Request) {
  const hasher = new Bun.CryptoHasher("sha256");
  let size = 0;
  let bytes: Uint8Array | undefined;
  const length = Number(request.headers.get("content-length") ?? Number.POSITIVE_INFINITY);
  if (length <= 1024 * 1024) {
    bytes = await request.bytes();
    hasher.update(bytes);
    size = bytes.length;
  } else {
    for await (const chunk of request.body ?? []) {
      hasher.update(chunk);
      size += chunk.byteLength;
    }
  }
  const sha256 = hasher.digest("hex");
  contents.set(sha256, (contents.get(sha256) ?? 0) + 1);
  sentBytes += size;
  const uuid = sha256.replace(/^(.{8})(.{4})(.{4})(.{4})(.{12}).*/, "$1-$2-$3-$4-$5");
  if (/^(bough-cache |\{"steps")/.test(new TextDecoder().decode(bytes?.subarray(0, 20))))
    indexes.set(uuid, bytes ?? new Uint8Array());
  return { uuid, sha256, size };
}

function recordOf(uuid: string) {
  const { image, endsAt = 0 } = operations.get(uuid) ?? {};
  if (performance.now() < endsAt) return { uuid, kind: "instance", status: "EXECUTING" };
  const nothing = { value: "", encoding: "ascii", truncated: false };
  const state = { exit_code: 0, pid: 42, signal: -1, timed_out: false };
  return {
    ...{
      uuid,
      kind: "instance",
      status: "SUCCESS",
      error: null,
      created_at: "2026-01-01T00:00:00Z",
      duration: 0,
    },
    metadata: { result: { state, stdout: nothing, stderr: nothing } },
    result_image_uuid: image,
    result: { image, tag: null },
  };
}

function eventsOf(uuid: string): Response {
  const { image, endsAt = 0 } = operations.get(uuid) ?? {};
  const events: [string, object][] = [
    ["exit", { pid: 42, code: 0, signal: -1, timed_out: false }],
    ["completion", { status: "SUCCESS", error: null, result_image_uuid: image }],
  ];
  const text = events.map(([type, data], index) => {
    const event = JSON.stringify({ id: index + 1, spid: 1, type, data });
    return `id: ${index + 1}\nevent: ${type}\ndata: ${event}\n\n`;
  });
  const stream = async function* () {
    yield ": keepalive\n\n";
    await Bun.sleep(Math.max(0, endsAt - performance.now()));
    yield text.join("");
  };
  return new Response(stream, { headers: { "content-type": "text/event-stream" } });
}

function makeId(): string {
  return `00000000-0000-4000-8000-${String(++count).padStart(12, "0")}`;
}
