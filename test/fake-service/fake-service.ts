/**
 * A scripted image service over real HTTP. It responds to the calls of the wire protocol from memory, records every
 * request, and runs nothing: the test sets the outcome of each command.
 */
import { answerWith } from "./answer.ts";
import { streamEvents } from "./event-route.ts";
import { getFile, listFiles, storeFile } from "./file-routes.ts";
import { importImage, listImages, tagImage, untagImage } from "./image-routes.ts";
import { findByTag, getImage, grep, inspect } from "./inspect-routes.ts";
import { startInstance } from "./instance-route.ts";
import { cancelOperation, getOperation, listOperations } from "./operation-routes.ts";
import type { FakeServiceOptions, Intercept, RouteCall } from "./options.ts";
import { type RecordedRequest, record } from "./recording.ts";
import { createState, type FakeState } from "./state.ts";
import { createProcess, getProcess, killProcess, writeToProcess } from "./subprocess-routes.ts";

export interface FakeService {
  /** The base address, prefix included. */
  readonly url: string;
  /** Requests in the order of arrival. */
  readonly requests: RecordedRequest[];
  readonly state: FakeState;
  /** May be set and unset at any time. */
  intercept: Intercept | undefined;
  /** Returns a response to send in place of that of a processed request. */
  overrule: ((recorded: RecordedRequest) => Response | undefined) | undefined;
  /** Returns requests of one method and path (without prefix), such as `POST /v1/files`, or those that match a pattern. */
  requestsTo(call: string | RegExp): RecordedRequest[];
  /** Forgets the requests so far. */
  clearRequests(): void;
  /** Handles a request without a socket, with the same memory. */
  handle(request: Request): Promise<Response>;
  close(): Promise<void>;
}

export async function startFakeService(options: FakeServiceOptions = {}): Promise<FakeService> {
  const state = createState(options.run, options.clock);
  const requests: RecordedRequest[] = [];
  const prefix = options.prefix ?? "";

  async function handle(request: Request): Promise<Response> {
    const recorded = record(request, prefix, requests);
    recorded.inFlight = requests.filter((other) => !other.answered).length;
    try {
      const intercepted = await service.intercept?.(request, recorded);
      const answer = intercepted ?? state.dated(await route(request, recorded));
      const response = service.overrule?.(recorded) ?? answer;
      recorded.status = response.status;
      return options.gzip === true ? answerWith.gzip(request, response) : response;
    } finally {
      recorded.answered = true;
    }
  }

  async function route(request: Request, recorded: RecordedRequest): Promise<Response> {
    if (options.token !== undefined && recorded.headers.authorization !== `Bearer ${options.token}`) {
      return answerWith.error(401, "invalid or missing token");
    }
    if (!new URL(request.url).pathname.startsWith(`${prefix}/v1/`))
      return answerWith.error(404, "no such route");
    const call = `${recorded.method} ${recorded.path}`;
    for (const { pattern, six, handler } of routes) {
      const match = pattern.exec(call);
      if (match === null || (options.sixCallsOnly === true && six !== true)) continue;
      if (handler === streamEvents && options.events === false) break;
      return await handler({
        state,
        options,
        request,
        recorded,
        parameter: decodeURIComponent(match[1] ?? ""),
        further: decodeURIComponent(match[2] ?? ""),
      });
    }
    return answerWith.error(404, "no such route");
  }

  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    // 0 would end event streams after ten seconds, and the default refuses bodies over 128 MiB.
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    fetch: handle,
    error: (error) => answerWith.error(500, `the fake service failed: ${error.message}`),
  });

  const service: FakeService = {
    url: `http://127.0.0.1:${server.port}${prefix}`,
    requests,
    state,
    intercept: options.intercept,
    overrule: undefined,
    requestsTo: (call) =>
      requests.filter(({ method, path }) =>
        typeof call === "string" ? `${method} ${path}` === call : call.test(`${method} ${path}`),
      ),
    clearRequests: () => {
      requests.length = 0;
    },
    handle,
    close: () => server.stop(true),
  };
  return service;
}

interface Route {
  pattern: RegExp;
  handler: (call: RouteCall) => Response | Promise<Response>;
  /** True for the calls that every server of the specification has. */
  six?: true;
}

const routes: readonly Route[] = [
  { pattern: /^GET \/v1\/whoami$/, handler: describeAccount },
  { pattern: /^GET \/v1\/images$/, handler: listImages },
  { pattern: /^POST \/v1\/images\/import$/, handler: importImage, six: true },
  { pattern: /^PATCH \/v1\/images\/([^/]+)\/tag$/, handler: tagImage, six: true },
  { pattern: /^DELETE \/v1\/images\/([^/]+)\/tag$/, handler: untagImage },
  { pattern: /^GET \/v1\/files$/, handler: listFiles },
  { pattern: /^(?:GET|HEAD) \/v1\/files\/([^/]+)$/, handler: getFile },
  { pattern: /^POST \/v1\/files$/, handler: storeFile, six: true },
  { pattern: /^POST \/v1\/instances$/, handler: startInstance, six: true },
  { pattern: /^GET \/v1\/operations$/, handler: listOperations },
  { pattern: /^GET \/v1\/operations\/([^/]+)$/, handler: getOperation, six: true },
  { pattern: /^DELETE \/v1\/operations\/([^/]+)$/, handler: cancelOperation },
  { pattern: /^GET \/v1\/operations\/([^/]+)\/events$/, handler: streamEvents },
  { pattern: /^POST \/v1\/operations\/([^/]+)\/subprocesses$/, handler: createProcess },
  { pattern: /^GET \/v1\/operations\/([^/]+)\/subprocesses\/([^/]+)$/, handler: getProcess },
  { pattern: /^DELETE \/v1\/operations\/([^/]+)\/subprocesses\/([^/]+)$/, handler: killProcess },
  { pattern: /^POST \/v1\/operations\/([^/]+)\/subprocesses\/([^/]+)\/stdin$/, handler: writeToProcess },
  { pattern: /^GET \/v1\/inspect\/$/, handler: findByTag },
  { pattern: /^GET \/v1\/inspect\/([^/]+)\/$/, handler: getImage },
  { pattern: /^GET \/v1\/inspect\/([^/]+)\/grep$/, handler: grep },
  { pattern: /^(?:GET|HEAD) \/v1\/inspect\/([^/]+)\/(?:list|download|archive)$/, handler: inspect },
];

function describeAccount({ options }: RouteCall): Response {
  return Response.json({
    token_uuid: "00000000-0000-4000-8000-000000000000",
    token_expiration: null,
    permissions: {
      import: true,
      spawn: true,
      spawn_disposable: true,
      list: true,
      cancel: true,
      set_image_tag: true,
    },
    limits: { instance_max_timeout: 86_400 },
    operations_stat: { running_instances: 0, running_imports: 0 },
    ...(options.extensions === undefined ? {} : { extensions: options.extensions }),
  });
}
