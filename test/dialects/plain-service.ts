/**
 * An image service with the six calls of the specification and polling; everything else gets status 404. It is written from the
 * specification alone, independently of bough's client. A dialect changes parts of it.
 */
import type { Dialect } from "./dialect.ts";

interface PlainService {
  readonly url: string;
  /** The requests, such as `POST /v1/instances`, in the order of arrival. */
  readonly calls: string[];
  /** Commands of instances that were started; those of `disposable` ones are in parentheses. */
  readonly commands: string[];
  /** The bodies of their requests. */
  readonly bodies: string[];
  readonly tags: ReadonlyMap<string, string>;
  /** Paths of requests with a body of unknown length. */
  readonly chunked: string[];
  /** The UUID of the image that an import makes. */
  readonly base: string;
  /** Removes an image, as a service that cleans up does. */
  removeImage(uuid: string): void;
  close(): void;
}

export function startPlainService(dialect: Dialect): PlainService {
  const calls: string[] = [];
  const commands: string[] = [];
  const bodies: string[] = [];
  const chunked: string[] = [];
  const images = new Set<string>();
  const tags = new Map<string, string>();
  const files = new Set<string>();
  const operations = new Map<string, { image?: string; looks: number; stdout: string; kind: string }>();
  const base = crypto.randomUUID();
  const idKey = dialect.idKey ?? "uuid";
  const operationPath = dialect.operationPath ?? "/v1/operations/";

  function startOperation(fields: { image?: string; stdout?: string; kind: string }): string {
    const operation = crypto.randomUUID();
    operations.set(operation, { looks: 0, stdout: "", ...fields });
    return operation;
  }

  function operationAnswer(operation: string): Response {
    const location = dialect.location?.(operation) ?? `${operationPath}${operation}`;
    const body = dialect.namesOperation === "location alone" ? {} : { [idKey]: operation };
    const headers = dialect.namesOperation === "body alone" ? {} : { location };
    return dialect.emptyBodies === true && dialect.namesOperation === "location alone"
      ? new Response(null, { status: 202, headers })
      : Response.json(body, { status: 201, headers });
  }

  function imageOf(reference: string): string | undefined {
    const uuid = reference.startsWith("tag:") ? tags.get(reference.slice(4)) : reference;
    return uuid !== undefined && images.has(uuid) ? uuid : undefined;
  }

  const routes: Record<string, (request: Request, parameter: string) => Promise<Response> | Response> = {
    "GET /v1/images": (request) => {
      const query = new URL(request.url).searchParams;
      const limit = Number(query.get("limit") ?? dialect.maxLimit ?? 50);
      if (dialect.maxLimit !== undefined && limit > dialect.maxLimit) return refused("limit is too large");
      const unknown = [...query.keys()].find(
        (name) => name !== "tag" && dialect.knowsQueries === "tag alone",
      );
      if (unknown !== undefined) return refused(`unknown query parameter ${unknown}`);
      const prefix = dialect.ignoresFilters === true ? "" : (query.get("tag") ?? "");
      const listed = [...tags].filter(([tag]) => tag.startsWith(prefix));
      const records = listed.map(([tag, uuid]) => ({
        [idKey]: uuid,
        tag,
        created_at: "2026-01-01T00:00:00Z",
      }));
      return Response.json(dialect.bareLists === true ? records : { images: records });
    },
    "POST /v1/images/import": async (request) => {
      const body = (await request.json()) as { tag?: string };
      images.add(base);
      if (body.tag !== undefined) tags.set(body.tag, base);
      if (dialect.importAnswers === "image") return Response.json({ [idKey]: base, tag: body.tag ?? null });
      return operationAnswer(startOperation({ kind: "image_import", image: base }));
    },
    "POST /v1/files": async (request) => {
      const hasLength = request.headers.has("content-length");
      if (!hasLength) chunked.push(new URL(request.url).pathname);
      if (!hasLength && dialect.requiresLength === true)
        return new Response("Length Required", { status: 411 });
      const bytes = await request.arrayBuffer();
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      const id = `f-${sha256.slice(0, 12)}`;
      files.add(id);
      return Response.json(
        { [idKey]: id, ...(dialect.idsAlone === true ? {} : { sha256 }) },
        { status: 201 },
      );
    },
    "POST /v1/instances": async (request) => {
      const text = await request.text();
      bodies.push(text);
      const body = JSON.parse(text) as Record<string, unknown> & { image: string; command: string };
      if (imageOf(body.image) === undefined)
        return Response.json({ error: `no such image: ${body.image}` }, { status: 404 });
      const missing = Object.values((body.files ?? {}) as Record<string, { uuid: string }>).find(
        ({ uuid }) => !files.has(uuid),
      );
      if (missing !== undefined)
        return Response.json({ error: `no such file: ${missing.uuid}` }, { status: 404 });
      const words = [body.command, ...((body.args ?? []) as string[])].join(" ");
      commands.push(body.disposable === true ? `(${words})` : words);
      const isKept = body.disposable !== true;
      const image = isKept ? crypto.randomUUID() : undefined;
      if (image !== undefined) images.add(image);
      const stdout = answers.find(([pattern]) => pattern.test(words))?.[1] ?? "";
      return operationAnswer(startOperation({ kind: "instance", stdout, ...(image && { image }) }));
    },
    "GET operation": (_, operation) => {
      const found = operations.get(operation);
      if (found === undefined) return Response.json({ error: "no such operation" }, { status: 404 });
      const isEnded = found.looks++ >= (dialect.looksUntilEnd ?? 1);
      const status = isEnded ? (dialect.endedStatus ?? "SUCCESS") : (dialect.runningStatus ?? "EXECUTING");
      if (!isEnded) return Response.json({ [idKey]: operation, status });
      const result = {
        state: { exit_code: dialect.exitCode ?? 0, timed_out: false },
        stdout: dialect.plainOutput === true ? found.stdout : encoded(found.stdout),
        stderr: dialect.plainOutput === true ? "" : encoded(""),
      };
      return Response.json({
        [idKey]: operation,
        status,
        ...(found.kind === "instance" ? { metadata: { result } } : {}),
        ...(dialect.resultIn === "result_image_uuid"
          ? { result_image_uuid: found.image ?? null }
          : dialect.resultIn === "image object"
            ? { result: { image: { uuid: found.image } } }
            : { result: { image: found.image ?? null } }),
      });
    },
    "PATCH tag": async (request, uuid) => {
      if (!images.has(uuid)) return Response.json({ error: `no such image: ${uuid}` }, { status: 404 });
      const { tag } = (await request.json()) as { tag: string };
      tags.set(tag, uuid);
      return dialect.emptyBodies === true
        ? new Response(null, { status: 204 })
        : Response.json({ uuid, tag });
    },
    ...(dialect.hasOperationList === true && {
      "GET /v1/operations": () =>
        Response.json(
          [...operations.keys()].map((uuid) => ({ uuid, kind: "instance", status: "EXECUTING" })),
        ),
    }),
  };

  function routeOf(request: Request): { name: string; run: () => Promise<Response> | Response } {
    const { pathname } = new URL(request.url);
    const operation = pathname.startsWith(operationPath) ? pathname.slice(operationPath.length) : undefined;
    const tagged = /^\/v1\/images\/([^/]+)\/tag$/.exec(pathname)?.[1];
    const name =
      request.method === "GET" && operation !== undefined && !operation.includes("/")
        ? "GET operation"
        : request.method === "PATCH" && tagged !== undefined
          ? "PATCH tag"
          : `${request.method} ${pathname}`;
    const route = routes[name];
    if (route === undefined) return { name, run: () => unknownRoute(dialect, name) };
    return { name, run: () => route(request, operation ?? tagged ?? "") };
  }

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    fetch(request) {
      const { name, run } = routeOf(request);
      calls.push(name);
      return run();
    },
  });

  return {
    url: `http://127.0.0.1:${server.port}`,
    calls,
    commands,
    bodies,
    tags,
    chunked,
    base,
    removeImage(uuid) {
      images.delete(uuid);
      for (const [tag, image] of tags) if (image === uuid) tags.delete(tag);
    },
    close: () => void server.stop(true),
  };
}

/** Output of the commands with which bough reads files and variables of this service's images. */
const answers: readonly (readonly [RegExp, string])[] = [
  [/passwd/, "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n"],
  [/group/, "root:x:0:\napp:x:1000:\n"],
  [/^env/, "PATH=/usr/bin:/bin\n"],
];

function encoded(text: string) {
  return { value: Buffer.from(text).toString("base64"), encoding: "base64", truncated: false };
}

function refused(error: string): Response {
  return Response.json({ error }, { status: 422 });
}

function unknownRoute({ unknownRoutes }: Dialect, name: string): Response {
  const { status = 404, body = JSON.stringify({ error: `no such route: ${name}` }) } = unknownRoutes ?? {};
  return new Response(body, { status });
}
