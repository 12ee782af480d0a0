/** The six calls of the specification and polling, with responses of a given shape. */
import type { OutputForm, Shape, TagForm } from "./shape.ts";
import { setAt } from "./shape.ts";

export interface ShapedService {
  readonly url: string;
  readonly calls: string[];
  /** The bodies of `POST /v1/instances`. */
  readonly instances: {
    image: string;
    command: string;
    cwd: string;
    files: Record<string, { uuid: string }>;
  }[];
  readonly tags: ReadonlyMap<string, string>;
  /** The UUIDs of the base image, and of the images that commands have made. */
  readonly base: string;
  readonly made: string[];
  close(): void;
}

export const printed = "printed by the command";

export function startShapedService(shape: Shape): ShapedService {
  const calls: string[] = [];
  const instances: ShapedService["instances"] = [];
  const made: string[] = [];
  const tags = new Map<string, string>();
  const files = new Set<string>();
  const base = crypto.randomUUID();
  const operations = new Map<string, { looks: number; image: string; from?: string; exitCode?: number }>();

  function started(fields: { image: string; from?: string; exitCode?: number }, status = 201): Response {
    const id = crypto.randomUUID();
    operations.set(id, { looks: 0, ...fields });
    const body: Record<string, unknown> = { ...shape.operation.also };
    for (const path of shape.operation.paths) setAt(body, path, id);
    const address = recordPath(shape, id);
    if (typeof shape.address === "object") setAt(body, shape.address.path, address);
    const headers = shape.address === "location" ? { location: address } : {};
    return Response.json(body, { status, headers });
  }

  function record(id: string): Response {
    const found = operations.get(id);
    if (found === undefined) return missing();
    const isEnded = found.looks++ > 0;
    const body: Record<string, unknown> = { created_at: "2026-01-01T00:00:00Z" };
    const isCommand = found.exitCode !== undefined;
    const { status } = shape;
    if (status !== "none") {
      const ended = (found.exitCode ?? 0) === 0 ? status.ended : status.failed;
      setAt(body, status.path, isEnded ? ended : status.running);
    }
    if (isEnded) {
      if (isCommand && shape.exitCode !== undefined) setAt(body, shape.exitCode, found.exitCode);
      if (isCommand) setOutput(body, shape.output);
      const { path, as } = shape.image;
      if ((found.exitCode ?? 0) === 0) setAt(body, path, as === "text" ? found.image : { [as]: found.image });
    }
    if (shape.echoes !== undefined && found.from !== undefined) setAt(body, shape.echoes, found.from);
    return Response.json(shape.wrapper === undefined ? body : { [shape.wrapper]: body });
  }

  const routes: Record<string, (request: Request) => Promise<Response> | Response> = {
    "GET /v1/images": () => listed(shape.list, [...tags]),
    "POST /v1/images/import": async (request) => {
      const { tag } = (await request.json()) as { tag?: string };
      if (tag !== undefined) tags.set(tag, base);
      const { imports } = shape;
      if (typeof imports === "object") {
        const body = {};
        setAt(body, imports.path, base);
        return Response.json(body, { status: 201 });
      }
      if (imports === "created") return Response.json({ id: base, tag: tag ?? "" }, { status: 201 });
      if (imports === "operation") return started({ image: base });
      const response = started({ image: base }, 202);
      if (imports === "operation 202") return response;
      const body = (await response.json()) as object;
      return Response.json({ ...body, status: "pending" }, { status: 201, headers: response.headers });
    },
    "POST /v1/files": async (request) => {
      if (shape.wantsForms !== undefined && !request.headers.get("content-type")?.startsWith("multipart/"))
        return refused(shape.wantsForms, "expected multipart/form-data");
      const file = shape.wantsForms === undefined ? request : (await request.formData()).get("file");
      if (file === null || typeof file === "string") return refused(422, "no file");
      const bytes = await file.arrayBuffer();
      const sha256 = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      const { paths, isArray, conflicts } = shape.file;
      const body: Record<string, unknown> = {};
      for (const path of paths) {
        const isHash = /(sha256|hash|digest)$/.test(path);
        const id = isHash ? sha256 : `f-${sha256.slice(0, 12)}`;
        if (!isHash || paths.length === 1) files.add(id);
        setAt(body, path, id);
      }
      return Response.json(isArray === true ? [body] : body, { status: conflicts === true ? 409 : 201 });
    },
    "POST /v1/instances": async (request) => {
      const body = (await request.json()) as ShapedService["instances"][number];
      const unknown = Object.keys(body).find((name) => !specified.includes(name));
      if (shape.refusesFields !== undefined && unknown !== undefined)
        return refused(shape.refusesFields, `unknown field ${unknown}`);
      if (body.image !== base && !made.includes(body.image)) return missing();
      if (Object.values(body.files ?? {}).some(({ uuid }) => !files.has(uuid))) return missing();
      instances.push(body);
      const exitCode = body.command.includes("fail") ? 3 : 0;
      const image = crypto.randomUUID();
      if (exitCode === 0) made.push(image);
      return started({ image, from: body.image, exitCode });
    },
  };

  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const { pathname } = new URL(request.url);
      const call = `${request.method} ${pathname}`;
      calls.push(call);
      if (shape.list === "dropped" && call === "GET /v1/images") {
        const body = new ReadableStream({ start: (stream) => stream.error() });
        return new Response(body);
      }
      const id = [...operations.keys()].find((one) => pathname === recordPath(shape, one));
      if (request.method === "GET" && id !== undefined) return record(id);
      const tagged = /^PATCH \/v1\/images\/([^/]+)\/tag$/.exec(call)?.[1];
      if (tagged !== undefined) {
        tags.set(((await request.json()) as { tag: string }).tag, tagged);
        return new Response(null, { status: 204 });
      }
      return (await routes[call]?.(request)) ?? missing();
    },
    error: () => new Response(null, { status: 500 }),
  });

  return {
    ...{ url: `http://127.0.0.1:${server.port}`, calls, instances, tags, base, made },
    close: () => void server.stop(true),
  };
}

function recordPath({ record }: Shape, id: string): string {
  return record.replace("{id}", id);
}

/** Fields of a command that the specification speaks of. */
const specified = ["image", "command", "args", "shell", "env", "cwd", "files", "timeout"];

function refused(status: number, error: string): Response {
  return Response.json({ error }, { status });
}

function missing(): Response {
  return Response.json({ error: "not found" }, { status: 404 });
}

function setOutput(body: Record<string, unknown>, { path, form }: Shape["output"]): void {
  const value = outputs[form];
  if (value !== undefined) setAt(body, path, value);
}

const outputs: Readonly<Record<OutputForm, unknown>> = {
  text: `${printed}\n`,
  lines: [printed],
  "line objects": [{ text: printed }],
  "base64 value": { value: btoa(`${printed}\n`), encoding: "base64" },
  "base64 data": { data: btoa(`${printed}\n`), encoding: "base64" },
  content: { content: `${printed}\n` },
  nothing: undefined,
};

function listed(list: Shape["list"], tags: readonly (readonly [string, string])[]): Response {
  if (list === "page" || list === "dropped") return new Response("<html>a page</html>");
  if ("status" in list) return Response.json({ error: "no" }, { status: list.status });
  const items = tags.map(([tag, id]) => ({ id, ...tagFields(tag, list.tags) }));
  if (list.path === "") return Response.json(items);
  const body = {};
  setAt(body, list.path, items);
  return Response.json(body);
}

function tagFields(whole: string, form: TagForm): Record<string, unknown> {
  const [name = "", tag = ""] = whole.split(":");
  switch (form) {
    case "tag":
      return { tag: whole };
    case "tags":
      return { tags: [whole] };
    case "name:tag":
      return { name: whole };
    case "name and tag":
      return { name, tag };
    case "repo_tags":
      return { RepoTags: [whole] };
    case "objects":
      return { tags: [{ name, tag }] };
  }
}
