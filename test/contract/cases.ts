/** The responses that every service must give, call by call. The client compares each response with the API's document. */

import { expect } from "bun:test";
import { readTar } from "../../src/image/tar-reader.ts";
import type { InstanceResult, OperationEvent, OperationRecord } from "../../src/service/wire/operation.ts";
import { isTerminal } from "../../src/service/wire/operation.ts";
import { inChunks } from "../support/tar-bytes.ts";
import type { Answer, CallParts } from "./client.ts";
import { validateEvent } from "./events.ts";
import type { ContractService } from "./services.ts";

export interface Contract {
  service: ContractService;
  call(call: string, parts?: CallParts): Promise<Answer>;
}

const sha256 = (bytes: Uint8Array) => new Bun.CryptoHasher("sha256").update(bytes).digest("hex");

async function spawn({ service, call }: Contract, request: object): Promise<string> {
  const json = { image: service.image, disposable: true, ...request };
  const { status, body, headers } = await call("POST /instances", { json });
  const { uuid } = body as { uuid: string };
  expect(status).toBe(201);
  expect(headers.get("location")).toBe(`/v1/operations/${uuid}`);
  return uuid;
}

async function finish({ call }: Contract, operationId: string): Promise<OperationRecord> {
  for (;;) {
    const { body } = await call("GET /operations/{operationId}", { path: { operationId } });
    if (isTerminal((body as OperationRecord).status)) return body as OperationRecord;
    await Bun.sleep(20);
  }
}

async function events(
  contract: Contract,
  operationId: string,
  parts: CallParts = {},
): Promise<OperationEvent[]> {
  const given = { ...parts, path: { operationId } };
  const { body } = await contract.call("GET /operations/{operationId}/events", given);
  const frames = new TextDecoder().decode(body as Uint8Array).split("\n\n");
  return frames.flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    if (data === undefined) return [];
    const event = JSON.parse(data) as OperationEvent;
    expect(frame).toBe(`id: ${event.id}\nevent: ${event.type}\ndata: ${data}`);
    return [validateEvent(event)];
  });
}

/** Starts a command, calls `use` while it runs, then cancels it. */
async function whileRunning(contract: Contract, use: (operationId: string) => Promise<void>): Promise<void> {
  const operationId = await spawn(contract, { command: "sleep", args: ["100"] });
  await use(operationId);
  await contract.call("DELETE /operations/{operationId}", { path: { operationId } });
  expect((await finish(contract, operationId)).status).toBe("CANCELLED");
}

async function getProcess({ call }: Contract, operationId: string, spid: number): Promise<InstanceResult> {
  const path = { operationId, spid };
  return (await call("GET /operations/{operationId}/subprocesses/{spid}", { path })).body as InstanceResult;
}

async function processEnd(contract: Contract, operationId: string, spid: number): Promise<InstanceResult> {
  for (;;) {
    const result = await getProcess(contract, operationId, spid);
    if (result.state?.exit_code !== -1 || result.state.signal !== -1) return result;
    await Bun.sleep(20);
  }
}

async function createProcess({ call }: Contract, operationId: string, json: object): Promise<number> {
  const parts = { path: { operationId }, json };
  const { body } = await call("POST /operations/{operationId}/subprocesses", parts);
  return (body as { spid: number }).spid;
}

const text = (body: unknown) => new TextDecoder().decode(body as Uint8Array);

export const cases: readonly [name: string, run: (contract: Contract) => Promise<void>][] = [
  [
    "whoami",
    async ({ call }) => {
      const { body } = await call("GET /whoami");
      const permissions = ["import", "spawn", "spawn_disposable", "list", "cancel", "set_image_tag"];
      expect(Object.keys((body as { permissions: object }).permissions)).toEqual(permissions);
      expect(body).toMatchObject({ operations_stat: { running_instances: 0, running_imports: 0 } });
    },
  ],
  [
    "files: upload, look up, list",
    async ({ call }) => {
      const bytes = crypto.getRandomValues(new Uint8Array(5000));
      const parts = { path: { sha256: sha256(bytes) } };
      await call("HEAD /files/{sha256}", { ...parts, error: 404 });
      await call("GET /files/{sha256}", { ...parts, error: 404 });
      const { body } = await call("POST /files", { bytes });
      expect(body).toMatchObject({ sha256: sha256(bytes), size: 5000 });
      await call("HEAD /files/{sha256}", parts);
      expect((await call("GET /files/{sha256}", parts)).body).toMatchObject(body as object);
      const again = await call("POST /files", { bytes });
      expect(again.body).toMatchObject({ uuid: (body as { uuid: string }).uuid, sha256: sha256(bytes) });
      const { files } = (await call("GET /files", { query: { limit: 1000, offset: 0 } })).body as {
        files: { sha256: string }[];
      };
      expect(files.map((file) => file.sha256)).toContain(sha256(bytes));
    },
  ],
  [
    "images: several tags, listed by prefix with the exact one first, and removed one at a time",
    async ({ service: { image }, call }) => {
      const path = { imageUUID: image };
      for (const tag of ["several:1-rc", "several:1", "several:2"]) {
        const { body } = await call("PATCH /images/{imageUUID}/tag", { path, json: { tag } });
        expect(body).toMatchObject({ uuid: image, tag });
      }
      const list = async (query: Record<string, string | number>) => {
        const { images } = (await call("GET /images", { query })).body as {
          images: { uuid: string; tag: string | null }[];
        };
        return images;
      };
      const tags = async (tag: string) => (await list({ tag })).map((record) => record.tag);
      expect((await tags("several:")).toSorted()).toEqual(["several:1", "several:1-rc", "several:2"]);
      expect(await tags("several:1")).toEqual(["several:1", "several:1-rc"]);
      expect((await list({ uuid: image, tagged: "1" })).map((record) => record.uuid)).toContain(image);
      expect(await list({ limit: 1, offset: 0 })).toHaveLength(1);
      expect(await list({ since: "2100-01-01T00:00:00Z" })).toEqual([]);
      expect(await list({ until: "2000-01-01T00:00:00Z" })).toEqual([]);
      const remove = (tag: string, error?: number) =>
        call("DELETE /images/{imageUUID}/tag", {
          path,
          query: { tag },
          ...(error === undefined ? {} : { error }),
        });
      expect((await remove("several:1")).status).toBe(204);
      expect((await tags("several:")).toSorted()).toEqual(["several:1-rc", "several:2"]);
      await remove("several:1", 404);
      await remove("several:1-rc");
      await remove("several:2");
      expect(await tags("several:")).toEqual([]);
      expect(await tags("busybox:")).toEqual(["busybox:latest"]);
    },
  ],
  [
    "images: import",
    async (contract) => {
      const { importable, canImport } = contract.service;
      const request = { registry: { url: importable }, tag: "imported:1", timeout: 60 };
      const { body, headers } = await contract.call("POST /images/import", { json: request });
      const { uuid } = body as { uuid: string };
      expect(headers.get("location")).toBe(`/v1/operations/${uuid}`);
      const operation = await finish(contract, uuid);
      expect(operation).toMatchObject({ kind: "image_import", metadata: request });
      expect((await events(contract, uuid)).map(({ type }) => type)).toEqual(
        expect.arrayContaining(["init", "shutdown", "completion"]),
      );
      expect(operation.status).toBe(canImport ? "SUCCESS" : "FAILED");
      if (!canImport) return;
      expect(operation.result_image_uuid).toBe(operation.result?.image ?? "");
      const { headers: found } = await contract.call("GET /inspect/", { query: { tag: "imported:1" } });
      expect(found.get("location")).toBe(`/v1/inspect/${operation.result_image_uuid}/`);
    },
  ],
  [
    "inspect: by tag and by id",
    async ({ service: { image }, call }) => {
      const { headers } = await call("GET /inspect/", { query: { tag: "busybox:latest" } });
      expect(headers.get("location")).toBe(`/v1/inspect/${image}/`);
      const { body } = await call("GET /inspect/{image_uuid}/", { path: { image_uuid: image } });
      expect(body).toMatchObject({ uuid: image, tag: "busybox:latest" });
    },
  ],
  [
    "inspect: lists of a directory, a link and a file",
    async ({ service: { image }, call }) => {
      const list = async (path: string) => {
        const parts = { path: { image_uuid: image }, query: { path } };
        return (await call("GET /inspect/{image_uuid}/list", parts)).body as {
          path: string;
          files: { path: string; is_dir: boolean; is_symlink: boolean; symlink_to: string; owner: string }[];
        };
      };
      const { path, files } = await list("/");
      const etc = files.find((file) => /^\/?etc$/.test(file.path));
      expect({ path, etc }).toMatchObject({ path: "/", etc: { is_dir: true, owner: "root" } });
      const link = (await list("/bin")).files.find((file) => /(^|\/)sh$/.test(file.path));
      expect(link).toMatchObject({ is_symlink: true, symlink_to: "busybox" });
      expect((await list("/etc/passwd")).files).toMatchObject([{ is_regular: true, uid: 0, gid: 0 }]);
    },
  ],
  [
    "inspect: a file's bytes and a directory's archive",
    async ({ service: { image }, call }) => {
      const of = (path: string) => ({ path: { image_uuid: image }, query: { path } });
      const { body } = await call("GET /inspect/{image_uuid}/download", of("/etc/passwd"));
      expect(text(body)).toContain("root:x:0:0:root:/root:/bin/sh\n");
      await call("HEAD /inspect/{image_uuid}/download", of("/etc/passwd"));
      const archive = await call("GET /inspect/{image_uuid}/archive", of("/etc"));
      const names: string[] = [];
      for await (const { name } of readTar(inChunks(archive.body as Uint8Array))) names.push(name);
      expect(names.slice(0, 2)).toEqual(["./", expect.stringMatching(/^\.\/[^/]+$/)]);
      expect(names).toContain("./passwd");
      await call("HEAD /inspect/{image_uuid}/archive", of("/etc"));
    },
  ],
  [
    "inspect: grep",
    async ({ service: { image }, call }) => {
      const grep = async (pattern: string) => {
        const query = { pattern, path: "/etc/passwd", case: "sensitive", max_count: 5, max_total: 5 };
        const parts = { path: { image_uuid: image }, query };
        return (await call("GET /inspect/{image_uuid}/grep", parts)).body as { matches: object[] };
      };
      expect(await grep("^root")).toMatchObject({
        path: "/etc/passwd",
        patterns: ["^root"],
        truncated: false,
        matches: [
          {
            path: "/etc/passwd",
            line_number: 1,
            absolute_offset: 0,
            line_text: "root:x:0:0:root:/root:/bin/sh",
            line_bytes: 30,
            submatches: [{ text: "root", start: 0, end: 4 }],
            type: "match",
          },
        ],
      });
      expect((await grep("nobody is called like this")).matches).toEqual([]);
    },
  ],
  [
    "instances: a command's result, record, summary and events",
    async (contract) => {
      const { call, service } = contract;
      const { body } = await call("POST /files", { bytes: Buffer.from("content") });
      const { uuid } = body as { uuid: string };
      const request = {
        command: "echo out; echo err >&2; exit 3",
        shell: true,
        args: [],
        env: { A: "b" },
        cwd: "/tmp",
        uid: 0,
        gid: 0,
        hostname: "contract",
        files: { "/a": { uuid, uid: 1, gid: 2, mode: "0600" }, "/b": { uuid, mode: 0o755 } },
        stdin: { value: "in", encoding: "ascii", close: true },
        networking: { enabled: false },
        resources_limits: { max_layer_bytes: 10_000_000 },
        preserve_env: false,
        timeout: 60,
        truncate_output_at: 1000,
        disposable: false,
      };
      const operationId = await spawn(contract, request);
      const operation = await finish(contract, operationId);
      const { stdin: _, files: __, networking: ___, ...recorded } = request;
      expect(operation).toMatchObject({
        kind: "instance",
        status: "SUCCESS",
        error: null,
        image_uuid: service.image,
        metadata: {
          ...recorded,
          image: service.image,
          result: {
            state: { exit_code: 3, signal: -1, timed_out: false },
            stdout: { value: "out\n", encoding: "ascii", truncated: false },
            stderr: { value: "err\n", encoding: "ascii", truncated: false },
          },
        },
      });
      expect(operation.result_image_uuid).toBe(operation.result?.image ?? "");
      const inflight = { path: { operationId }, query: { inflight: "1" } };
      expect((await call("GET /operations/{operationId}", inflight)).body).toEqual(operation);

      const query = { status: "SUCCESS", kind: "instance", limit: 1, offset: 0 };
      const [summary] = (await call("GET /operations", { query })).body as OperationRecord[];
      expect(summary).toMatchObject({
        uuid: operationId,
        image_uuid: service.image,
        result_image_uuid: operation.result_image_uuid,
      });

      const all = await events(contract, operationId, { query: { follow: "1" } });
      const types = all.map(({ type, spid }) => `${type} ${spid}`);
      // The two streams have no order between them.
      for (const stream of ["stdout 1", "stderr 1"]) {
        const others = types.filter((type) => type === stream || !type.startsWith("std"));
        expect(others).toEqual(["init 0", "spawn 1", stream, "exit 1", "shutdown 0", "completion 0"]);
      }
      expect(all.map(({ id }) => id)).toEqual(all.map((_, index) => index + 1));
      const data = Object.fromEntries(all.map((event) => [event.type, event.data]));
      expect(data.spawn).toMatchObject({
        command: request.command,
        args: [],
        shell: true,
        cwd: "/tmp",
        uid: 0,
        gid: 0,
        timeout: 60,
        truncate_at: 1000,
        env: { A: "b" },
      });
      expect(data.exit).toMatchObject({ code: 3, signal: -1, timed_out: false });
      expect(data.completion).toMatchObject({
        status: "SUCCESS",
        result_image_uuid: operation.result_image_uuid,
        error: null,
      });
      const middle = all[2]?.id ?? 0;
      const rest = all.filter(({ id }) => id > middle);
      expect(await events(contract, operationId, { headers: { "Last-Event-Id": String(middle) } })).toEqual(
        rest,
      );
      expect(await events(contract, operationId, { query: { since: middle } })).toEqual(rest);
      const ofSandbox = await events(contract, operationId, { query: { spid: 0, follow: "0" } });
      expect(ofSandbox.map(({ type }) => type)).toEqual(["init", "shutdown", "completion"]);
      expect(await getProcess(contract, operationId, 1)).toMatchObject({
        state: { exit_code: 3, signal: -1 },
        stdout: { value: "out\n", encoding: "ascii" },
      });
    },
  ],
  [
    "instances: by tag; cancelled, but not twice",
    async (contract) => {
      const { call } = contract;
      const operationId = await spawn(contract, {
        image: "tag:busybox:latest",
        command: "sleep",
        args: ["100"],
      });
      const path = { operationId };
      expect((await call("DELETE /operations/{operationId}", { path })).status).toBe(202);
      expect(await finish(contract, operationId)).toMatchObject({
        status: "CANCELLED",
        result_image_uuid: null,
      });
      const last = (await events(contract, operationId, { query: { follow: "1" } })).at(-1);
      expect(last).toMatchObject({ type: "completion", data: { status: "CANCELLED" } });
      await call("DELETE /operations/{operationId}", { path, error: 409 });
    },
  ],
  [
    "subprocesses: a command's exit code and output",
    async (contract) => {
      await whileRunning(contract, async (operationId) => {
        const json = { command: "echo out; echo err >&2; exit 3", shell: true, env: { A: "b" }, cwd: "/tmp" };
        const spid = await createProcess(contract, operationId, json);
        expect(spid).toBe(2);
        expect(await processEnd(contract, operationId, spid)).toMatchObject({
          state: { exit_code: 3, signal: -1, timed_out: false },
          stdout: { value: "out\n", encoding: "ascii", truncated: false },
          stderr: { value: "err\n", encoding: "ascii", truncated: false },
        });
        const own = await events(contract, operationId, { query: { spid } });
        expect(own.map(({ type }) => type).toSorted()).toEqual(["exit", "spawn", "stderr", "stdout"]);
      });
    },
  ],
  [
    "subprocesses: writing to standard input and closing it",
    async (contract) => {
      await whileRunning(contract, async (operationId) => {
        const stdin = { value: "one ", encoding: "ascii", close: false };
        const spid = await createProcess(contract, operationId, { command: "cat", stdin });
        expect((await getProcess(contract, operationId, spid)).state).toMatchObject({
          exit_code: -1,
          signal: -1,
        });
        const write = (json: object, error?: number) =>
          contract.call("POST /operations/{operationId}/subprocesses/{spid}/stdin", {
            path: { operationId, spid },
            json,
            ...(error === undefined ? {} : { error }),
          });
        expect((await write({ value: "two " })).status).toBe(202);
        expect((await write({ value: "three\n", encoding: "ascii", close: true })).status).toBe(202);
        const { state, stdout } = await processEnd(contract, operationId, spid);
        expect({ state, stdout }).toMatchObject({
          state: { exit_code: 0 },
          stdout: { value: "one two three\n", encoding: "ascii" },
        });
        await write({ value: "four" }, 409);
      });
    },
  ],
  [
    "subprocesses: a signal",
    async (contract) => {
      await whileRunning(contract, async (operationId) => {
        const kill = (spid: number, signal: string, error?: number) =>
          contract.call("DELETE /operations/{operationId}/subprocesses/{spid}", {
            path: { operationId, spid },
            query: { signal },
            ...(error === undefined ? {} : { error }),
          });
        for (const [signal, number] of [
          ["TERM", 15],
          ["SIGKILL", 9],
          ["9", 9],
        ] as const) {
          const spid = await createProcess(contract, operationId, { command: "sleep", args: ["100"] });
          await kill(spid, "NOPE", 400);
          expect((await kill(spid, signal)).status).toBe(202);
          const { state } = await processEnd(contract, operationId, spid);
          expect(state).toMatchObject({ exit_code: -1, signal: number });
          await kill(spid, signal, 409);
        }
      });
    },
  ],
  [
    "subprocesses: killed with the operation",
    async (contract) => {
      let gone = "";
      await whileRunning(contract, async (operationId) => {
        gone = operationId;
        expect(await createProcess(contract, operationId, { command: "sleep", args: ["100"] })).toBe(2);
      });
      expect((await getProcess(contract, gone, 2)).state).toMatchObject({ exit_code: -1, signal: 9 });
      const path = { operationId: gone };
      const json = { command: "true" };
      await contract.call("POST /operations/{operationId}/subprocesses", { path, json, error: 409 });
    },
  ],
];
