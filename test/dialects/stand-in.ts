/**
 * A service written from the specification's text alone, as a table of answers: the six calls and a poll, with whatever names, places
 * and habits its author may have chosen. Its commands exit with 3 if they contain `fail`, else with 0.
 */
export interface StandIn {
  /** The answer to `POST /v1/instances`. By default `{"id": ...}`. */
  started?: (operation: StoodIn) => Said;
  /** The answers to its polls, in order; the last is repeated. */
  polls: (operation: StoodIn) => readonly Said[];
  /** The path of an operation's record; by default `/v1/operations/{id}`. */
  record?: (id: string) => string;
  /** The id of the n-th operation. */
  id?: (number: number) => string | number;
  /** The answer to an import; by default the image. */
  imported?: (base: string) => Said;
  /** The answer to `POST /v1/files`; by default `{"id": ...}`. */
  stored?: (sha256: string) => Said;
  /** The answer to `PATCH /v1/images/{id}/tag`. */
  tagged?: () => Said;
  /** The answer to every other request; by default 404. */
  other?: (request: Request) => Said | Response;
  /** Sent before a call is processed, as long as it returns something. */
  before?: (request: Request) => Response | undefined;
  /** What it makes of the image's id. */
  image?: (number: number) => string;
  /** It has a list of instances' results: a failure shows no exit code. */
  showsNoExitCode?: boolean;
  /** It says nothing of output. */
  isSilent?: boolean;
}

/** An operation of a command. */
export interface StoodIn {
  id: string | number;
  command: string;
  /** The image that it starts from, and the one that it makes. */
  base: string;
  image: string;
  exitCode: number;
  hasFailed: boolean;
  output: string;
}

/** An answer: a body of JSON, text, or a status with these. */
export type Said =
  | { status?: number; headers?: Record<string, string>; json?: unknown; text?: string }
  | readonly [status: number, json?: unknown, headers?: Record<string, string>];

export interface RunningStandIn {
  readonly url: string;
  readonly calls: string[];
  readonly commands: string[];
  /** The images that the commands were to start from. */
  readonly bases: string[];
  readonly images: string[];
  readonly base: string;
  readonly tags: Map<string, string>;
  /** Commands that were started while another one was running. */
  readonly early: string[];
  close(): void;
}

export function startStandIn(table: StandIn): RunningStandIn {
  const calls: string[] = [];
  const commands: string[] = [];
  const bases: string[] = [];
  const images: string[] = [];
  const early: string[] = [];
  const tags = new Map<string, string>();
  const operations = new Map<string, { said: readonly Said[]; polled: number }>();
  const base = "img-0";
  const recordOf = table.record ?? ((id: string) => `/v1/operations/${id}`);
  const isRunning = () => [...operations.values()].some(({ said, polled }) => polled < said.length);

  async function start(request: Request): Promise<Response> {
    const body = (await request.json()) as { command: string; args?: string[]; image: string };
    const command = [body.command, ...(body.args ?? [])].join(" ");
    if (isRunning()) early.push(command);
    commands.push(command);
    bases.push(body.image);
    const number = commands.length;
    const hasFailed = command.includes("fail");
    const image = table.image?.(number) ?? `img-${number}`;
    if (!hasFailed) images.push(image);
    const id = table.id?.(number) ?? `op-${number}`;
    const exitCode = hasFailed ? 3 : 0;
    const operation = {
      id,
      command,
      base: body.image,
      image,
      exitCode,
      hasFailed,
      output: `out of ${command}\n`,
    };
    operations.set(String(id), { said: table.polls(operation), polled: 0 });
    return answer(table.started?.(operation) ?? [201, { id }]);
  }

  async function respond(request: Request): Promise<Response> {
    const { pathname } = new URL(request.url);
    const call = `${request.method} ${pathname}`;
    calls.push(call);
    const early = table.before?.(request);
    if (early !== undefined) return early;
    if (call === "POST /v1/instances") return start(request);
    if (call === "POST /v1/images/import") return answer(table.imported?.(base) ?? [201, { image: base }]);
    if (call === "POST /v1/files") {
      const sha256 = new Bun.CryptoHasher("sha256").update(await request.arrayBuffer()).digest("hex");
      return answer(table.stored?.(sha256) ?? [201, { id: `file-${sha256.slice(0, 8)}` }]);
    }
    const tagged = /^PATCH \/v1\/images\/([^/]+)\/tag$/.exec(call)?.[1];
    if (tagged !== undefined) {
      const { tag } = (await request.json()) as { tag: string };
      tags.set(tag, decodeURIComponent(tagged));
      return answer(table.tagged?.() ?? [200, { id: tagged, tag }]);
    }
    const id = [...operations.keys()].find((one) => recordOf(one) === decodeURIComponent(pathname));
    const operation = request.method === "GET" && id !== undefined ? operations.get(id) : undefined;
    if (operation === undefined) {
      const other = table.other?.(request) ?? [404, { error: "not found" }];
      return other instanceof Response ? other : answer(other);
    }
    const said = operation.said[Math.min(operation.polled++, operation.said.length - 1)];
    return answer(said ?? [404]);
  }

  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, idleTimeout: 0, fetch: respond });
  return {
    ...{ url: `http://127.0.0.1:${server.port}`, calls, commands, bases, images, base, tags, early },
    close: () => void server.stop(true),
  };
}

function answer(said: Said): Response {
  if (isTuple(said)) return answer({ status: said[0], json: said[1], headers: said[2] ?? {} });
  const { status = 200, headers = {}, json, text } = said;
  if (text !== undefined) return new Response(text, { status, headers });
  return json === undefined
    ? new Response(null, { status, headers })
    : Response.json(json, { status, headers });
}

function isTuple(said: Said): said is Extract<Said, readonly unknown[]> {
  return Array.isArray(said);
}
