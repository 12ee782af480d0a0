/** A front that lets only the specification's six calls and the poll through to an engine, with the fields that it names. */
import type { TestEngine } from "../support/engine.ts";

interface SixCalls {
  url: string;
  /** Requests for instances so far. */
  started: { command: string; args?: string[] }[];
  stop(): void;
}

const fields = ["image", "command", "args", "shell", "env", "cwd", "files", "timeout"];
const calls = [
  /^POST \/v1\/(images\/import|instances|files)$/,
  /^GET \/v1\/operations\/[^/]+$/,
  /^PATCH \/v1\/images\/[^/]+\/tag$/,
];

export function serveSixCalls(engine: TestEngine): SixCalls {
  const started: SixCalls["started"] = [];
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    async fetch(request) {
      const call = `${request.method} ${new URL(request.url).pathname}`;
      if (!calls.some((known) => known.test(call)))
        return Response.json({ error: "not found" }, { status: 404 });
      if (call !== "POST /v1/instances") return engine.engine.fetch(request);
      const body = (await request.json()) as (typeof started)[number];
      const unknown = Object.keys(body).find((name) => !fields.includes(name));
      if (unknown !== undefined) return Response.json({ error: `unknown field ${unknown}` }, { status: 400 });
      started.push(body);
      return engine.engine.fetch(
        new Request(request.url, { method: "POST", body: JSON.stringify({ ...body, disposable: false }) }),
      );
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, started, stop: () => void server.stop(true) };
}
