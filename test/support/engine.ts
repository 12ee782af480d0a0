import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Engine, type EngineOptions, openEngine } from "../../src/engine/engine.ts";
import { createHandler } from "../../src/engine/routes/handler.ts";
import { createEngineService, type EngineServiceOptions } from "../../src/engine/service/engine-service.ts";
import type { Service } from "../../src/service/client.ts";
import { type HostFile, HostFiles } from "../../src/service/wire/file.ts";
import type { InstanceBody, InstanceRequest } from "../../src/service/wire/instance.ts";
import type { OperationEvent, OperationRecord } from "../../src/service/wire/operation.ts";
import { type BusyboxImageOptions, makeBusyboxLayout } from "./busybox-image.ts";
import { removeHome } from "./homes.ts";
import { keepTrialOf, passTrialTo } from "./runtime-trial.ts";

/** A standard input that stays open: a command that runs `cat` waits there until `closeInput` is called. */
export const openInput = { value: "", encoding: "ascii", close: false };

type InProcess = "core" | "settle" | "hasChanged" | "running";

interface Requests {
  fetch(request: Request): Promise<Response>;
}

/** An engine, which can't read this process's files if it runs in another one. */
type ReachableEngine = Requests & Omit<Engine, InProcess> & Partial<Pick<Engine, InProcess>>;

/** Opens an engine that also answers requests. */
export async function openAnsweringEngine(options: EngineOptions): Promise<Engine & Requests> {
  const engine = await openEngine(options);
  return Object.assign(engine, { fetch: createHandler(engine.core) });
}

/** An engine with a separate directory, with the calls that tests make often. */
export class TestEngine {
  readonly directory: string;
  readonly engine: ReachableEngine;

  private constructor(directory: string, engine: ReachableEngine) {
    this.directory = directory;
    this.engine = engine;
  }

  static async open(options: Partial<EngineOptions> = {}): Promise<TestEngine> {
    const directory = options.directory ?? mkdtempSync(join(tmpdir(), "bough-engine-"));
    if (options.environment === undefined) passTrialTo(directory);
    const engine = await openAnsweringEngine({
      clock: systemClock,
      environment: { PATH: process.env.PATH },
      ...options,
      directory,
    });
    return new TestEngine(directory, engine);
  }

  /** Wraps an engine that runs elsewhere and has the image `busybox:latest`. */
  static over(engine: ReachableEngine): TestEngine {
    return new TestEngine(engine.directory, engine);
  }

  async close(): Promise<void> {
    await this.engine.close();
    keepTrialOf(this.directory);
    removeHome(this.directory);
  }

  /** Sends a request that would change something, before which the engine cleans up after killed ones. */
  async recover(): Promise<void> {
    await this.fetch("DELETE", `/v1/operations/${crypto.randomUUID()}`);
  }

  /** Sends a request. Bytes and text in `body` are sent unchanged, anything else as JSON. */
  fetch(
    method: string,
    path: string,
    body?: unknown,
    headers: Record<string, string> = {},
  ): Promise<Response> {
    const isRaw = body === undefined || typeof body === "string" || body instanceof Uint8Array;
    return this.engine.fetch(
      new Request(`http://engine${path}`, {
        method,
        headers,
        ...(body === undefined ? {} : { body: isRaw ? (body as string) : JSON.stringify(body) }),
      }),
    );
  }

  async json<T = Record<string, unknown>>(method: string, path: string, body?: unknown): Promise<T> {
    const response = await this.fetch(method, path, body);
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
    return JSON.parse(text) as T;
  }

  /** Imports the busybox image (or `url`) and returns its UUID. */
  async importBase(tag = "busybox:latest", url?: string): Promise<string> {
    const source = url ?? (await makeBusyboxLayout(join(this.directory, "layout")));
    const operation = await this.finish(
      await this.json("POST", "/v1/images/import", { registry: { url: source }, tag }),
    );
    if (operation.status !== "SUCCESS") throw new Error(`import of ${source}: ${operation.error}`);
    return operation.result?.image ?? "";
  }

  /** Imports a busybox image with these options, without a tag. Returns its UUID. */
  async importConfigured(options: BusyboxImageOptions): Promise<string> {
    const url = await makeBusyboxLayout(join(this.directory, `layout-${crypto.randomUUID()}`), options);
    const operation = await this.finish(await this.json("POST", "/v1/images/import", { registry: { url } }));
    return operation.result?.image ?? "";
  }

  upload(content: string | Uint8Array): Promise<{ uuid: string; sha256: string; size: number }> {
    return this.json("POST", "/v1/files", content);
  }

  /** Runs an instance with files of this machine. */
  async runWith(
    image: string,
    files: Iterable<HostFile>,
    command: string,
    request: Partial<InstanceRequest> = {},
  ): Promise<Finished> {
    const uuid = await this.spawn({ image, command, host_files: new HostFiles(() => files), ...request });
    return describe(await this.finish({ uuid }));
  }

  /** Starts an instance without a request. */
  spawn(request: Pick<InstanceRequest, "image" | "command"> & Partial<InstanceRequest>): Promise<string> {
    return this.service().spawn({ shell: true, cwd: "/", disposable: false, ...request });
  }

  /** The engine as the service of this process. */
  service(options: Partial<EngineServiceOptions> = {}): Service {
    if (this.engine.core === undefined) throw new Error("this engine is elsewhere");
    const { signal } = new AbortController();
    return createEngineService(this.engine.core, { clock: systemClock, signal, ...options });
  }

  start(request: Partial<InstanceBody>): Promise<{ uuid: string }> {
    return this.json("POST", "/v1/instances", { shell: true, cwd: "/", disposable: false, ...request });
  }

  /** Closes the standard input of an instance's command. */
  async closeInput({ uuid }: { uuid: string }): Promise<void> {
    const end = { value: "", close: true };
    const response = await this.fetch("POST", `/v1/operations/${uuid}/subprocesses/1/stdin`, end);
    if (!response.ok) throw new Error(`the input of ${uuid} can't be closed: ${await response.text()}`);
  }

  /** Runs an instance to its end. */
  async run(image: string, command: string, request: Partial<InstanceBody> = {}): Promise<Finished> {
    return describe(await this.finish(await this.start({ image, command, ...request })));
  }

  async finish({ uuid }: { uuid: string }): Promise<OperationRecord> {
    await this.events(uuid);
    return this.json<OperationRecord>("GET", `/v1/operations/${uuid}`);
  }

  /** All events of an operation, once it has ended. */
  async events(uuid: string, lastEventId = 0): Promise<OperationEvent[]> {
    const response = await this.fetch("GET", `/v1/operations/${uuid}/events?follow=true`, undefined, {
      "Last-Event-Id": String(lastEventId),
    });
    return parseEvents(await response.text());
  }
}

export interface Finished {
  operation: OperationRecord;
  image: string | undefined;
  exitCode: number | undefined;
  stdout: string;
  stderr: string;
}

function describe(operation: OperationRecord): Finished {
  const result = operation.metadata?.result;
  return {
    operation,
    image: operation.result?.image ?? undefined,
    exitCode: result?.state?.exit_code,
    stdout: decode(result?.stdout),
    stderr: decode(result?.stderr),
  };
}

export function decode(value: { value: string; encoding: string } | undefined): string {
  return Buffer.from(value?.value ?? "", value?.encoding === "base64" ? "base64" : "utf8").toString();
}

function parseEvents(text: string): OperationEvent[] {
  return text
    .split("\n\n")
    .filter((frame) => frame.startsWith("id: "))
    .map((frame) => JSON.parse(frame.slice(frame.indexOf("data: ") + "data: ".length)) as OperationEvent);
}
