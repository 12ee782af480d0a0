import { describe, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import type { OperationEvent, OperationRecord, WireBytes } from "../../src/service/wire/operation.ts";
import { TestEngine } from "../support/engine.ts";
import { commandLines } from "../support/processes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

const list = (query: string) => engine.json<OperationRecord[]>("GET", `/v1/operations${query}`);
const get = (uuid: string) => engine.json<OperationRecord>("GET", `/v1/operations/${uuid}`);
const cancel = (uuid: string, by = engine) => by.fetch("DELETE", `/v1/operations/${uuid}`);
const running = (command: string) => engine.start({ image: base, command });

test("starting responds with 201, the UUID and a Location", async () => {
  const response = await engine.fetch("POST", "/v1/instances", {
    image: base,
    command: "true",
    shell: true,
    cwd: "/",
  });
  const { uuid } = (await response.json()) as { uuid: string };
  expect(response.status).toBe(201);
  expect(response.headers.get("Location")).toBe(`/v1/operations/${uuid}`);
  const operation = await engine.finish({ uuid });
  expect(operation).toMatchObject({
    uuid,
    kind: "instance",
    status: "SUCCESS",
    error: null,
    duration: expect.any(Number),
    metadata: {
      command: "true",
      image: base,
      shell: true,
      result: { state: { exit_code: 0, timed_out: false, signal: -1 } },
    },
    result_image_uuid: base,
    result: { image: base, tag: null },
  });
});

test("an unknown operation is 404 for every call", async () => {
  for (const [method, path] of [
    ["GET", ""],
    ["DELETE", ""],
    ["GET", "/events"],
  ] as const) {
    const response = await engine.fetch(method, `/v1/operations/nope${path}`);
    expect(await response.json()).toEqual({ error: "there is no operation nope", status: 404 });
  }
});

describe("the list of operations", () => {
  test("has each operation without its output, filtered by kind and status, in pages", async () => {
    const failed = await engine.finish(
      await engine.start({ image: base, command: "true", cwd: "/etc/passwd/x" }),
    );
    const { uuid } = await running("echo quiet; sleep 100");
    expect(await list("?status=EXECUTING")).toEqual([
      expect.objectContaining({ uuid, kind: "instance", status: "EXECUTING", result: null }),
    ]);
    expect((await list("?limit=1&offset=1")).map((operation) => operation.uuid)).toEqual([failed.uuid]);
    expect((await list("?status=FAILED")).map((operation) => operation.uuid)).toEqual([failed.uuid]);
    expect((await list("?kind=image_import")).map(({ kind }) => kind)).toEqual(["image_import"]);
    expect(await list("?since=2100-01-01")).toEqual([]);
    await cancel(uuid);
    await engine.finish({ uuid });
    expect(JSON.stringify(await list(""))).not.toContain("quiet\\n");
  });

  test("refuses an unknown status", async () => {
    const response = await engine.fetch("GET", "/v1/operations?status=DONE");
    expect(await response.json()).toEqual({
      error: expect.stringContaining("status must be one of PENDING"),
      status: 400,
    });
  });
});

describe("cancelling", () => {
  test("ends the command and its children, and makes no image", async () => {
    const { uuid } = await running("echo begun; sleep 27.1 & sleep 27.1");
    await firstOutput(uuid);
    expect((await cancel(uuid)).status).toBe(202);
    const operation = await engine.finish({ uuid });
    expect(operation).toMatchObject({ status: "CANCELLED", result: { image: null } });
    expect(commandLines().filter((line) => line.includes("sleep 27.1"))).toEqual([]);
    const again = await cancel(uuid);
    expect(await again.json()).toEqual({
      error: `operation ${uuid} has already ended (CANCELLED)`,
      status: 409,
    });
  });

  test("works at any moment after the start", async () => {
    const started = await Promise.all(Array.from({ length: 8 }, () => running("sleep 100")));
    for (const { uuid } of started) {
      await Bun.sleep(7);
      await cancel(uuid);
    }
    for (const { uuid } of started) expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
  });

  test("works from another engine on the same directory", async () => {
    const other = await TestEngine.open({ directory: engine.directory });
    const { uuid } = await running("echo begun; sleep 100");
    await firstOutput(uuid);
    expect((await cancel(uuid, other)).status).toBe(202);
    expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
    const events = await (await engine.fetch("GET", `/v1/operations/${uuid}/events`)).text();
    expect(events).toContain('"code":137,"signal":9');
    // The output has nothing but the command's own.
    expect(events).not.toContain("unshare:");
    await other.engine.close();
  });

  test("happens to running operations when the engine is closed", async () => {
    const closing = await TestEngine.open({ directory: engine.directory });
    const { uuid } = await closing.start({ image: base, command: "sleep 100" });
    await closing.engine.close();
    expect((await get(uuid)).status).toBe("CANCELLED");
  });
});

describe("events", () => {
  test("cover a command from its start to its end", async () => {
    const request = {
      image: base,
      command: "echo out; echo err >&2; exit 3",
      env: { A: "b" },
      cwd: "/tmp",
    };
    const { uuid } = await engine.start(request);
    const events = await engine.events(uuid);
    expect(events.map(({ id }) => id)).toEqual(events.map((_, index) => index + 1));
    const types = events.map(({ type, spid }) => `${type} ${spid}`);
    // The order of the two streams is undefined.
    for (const stream of ["stdout 1", "stderr 1"]) {
      const others = types.filter((type) => type === stream || !type.startsWith("std"));
      expect(others).toEqual(["init 0", "spawn 1", stream, "exit 1", "shutdown 0", "completion 0"]);
    }
    const data = Object.fromEntries(events.map((event) => [event.type, event.data]));
    expect(data.spawn).toMatchObject({
      command: request.command,
      args: [],
      shell: true,
      cwd: "/tmp",
      uid: 0,
      gid: 0,
      env: { A: "b" },
    });
    expect(data.stdout).toEqual({ value: "out\n", encoding: "ascii" });
    expect(data.exit).toMatchObject({
      code: 3,
      signal: -1,
      timed_out: false,
      duration_ms: expect.any(Number),
    });
    expect(data.completion).toMatchObject({ status: "SUCCESS", error: null, result_image_uuid: base });
  });

  test("come while the command runs", async () => {
    const { uuid } = await running("echo early; sleep 100");
    expect(await firstOutput(uuid)).toMatchObject({ value: "early\n" });
    expect((await get(uuid)).status).toBe("EXECUTING");
    await cancel(uuid);
    await engine.finish({ uuid });
  });

  test("include the start of a silent command", async () => {
    const { uuid } = await running("sleep 100");
    const spawn = await firstEvent(uuid, "spawn");
    expect(spawn.data.pid).toBeGreaterThan(1);
    await cancel(uuid);
    await engine.finish({ uuid });
  });

  test("start after Last-Event-Id", async () => {
    const { uuid } = await running("echo x");
    const all = await engine.events(uuid);
    expect(await engine.events(uuid, 2)).toEqual(all.slice(2));
    expect(await engine.events(uuid, 99)).toEqual([]);
    const bad = await engine.fetch("GET", `/v1/operations/${uuid}/events`, undefined, {
      "Last-Event-Id": "x",
    });
    expect(bad.status).toBe(400);
  });

  test("end at once without follow", async () => {
    const { uuid } = await running("sleep 100");
    await firstEvent(uuid, "spawn");
    const response = await engine.fetch("GET", `/v1/operations/${uuid}/events`);
    expect(response.headers.get("Content-Type")).toBe("text/event-stream");
    expect(await response.text()).toContain("event: init\n");
    await cancel(uuid);
    await engine.finish({ uuid });
  });

  test("are 410 if their file was removed", async () => {
    const { uuid } = await running("true");
    await engine.finish({ uuid });
    rmSync(join(engine.directory, "events", `${uuid}.ndjson`));
    const response = await engine.fetch("GET", `/v1/operations/${uuid}/events`);
    expect(response.status).toBe(410);
  });

  test("can be followed from another engine on the same directory", async () => {
    const other = await TestEngine.open({ directory: engine.directory });
    const { uuid } = await running("for i in 1 2 3; do echo $i; sleep 0.1; done");
    const output = (await other.events(uuid))
      .filter(({ type }) => type === "stdout")
      .map(({ data }) => data.value);
    expect(output.join("")).toBe("1\n2\n3\n");
    await other.engine.close();
  });
});

describe("the rest of the API:", () => {
  test("an unknown path and a wrong method are JSON errors", async () => {
    const unknown = await engine.fetch("GET", "/v2/nothing");
    expect(await unknown.json()).toEqual({ error: "there is no /v2/nothing", status: 404 });
    const wrong = await engine.fetch("PUT", "/v1/images");
    expect(await wrong.json()).toEqual({ error: "/v1/images does not support PUT", status: 405 });
    expect(wrong.headers.get("Allow")).toBe("GET");
  });

  test("whoami has the platform and the limits", async () => {
    const whoami = await engine.json("GET", "/v1/whoami");
    expect(whoami).toMatchObject({ token_expiration: null, limits: { instance_max_timeout: 315_360_000 } });
    expect(whoami.platform).toMatch(/^linux\/(amd64|arm64)$/);
  });
});

async function firstOutput(uuid: string): Promise<Record<string, unknown>> {
  return (await firstEvent(uuid, "stdout")).data;
}

async function firstEvent(uuid: string, type: string): Promise<OperationEvent> {
  const response = await engine.fetch("GET", `/v1/operations/${uuid}/events?follow=true`);
  let text = "";
  for await (const chunk of response.body ?? []) {
    text += new TextDecoder().decode(chunk);
    const data = new RegExp(`^event: ${type}\ndata: (.*)\n\n`, "m").exec(text)?.[1];
    if (data !== undefined) return JSON.parse(data) as OperationEvent;
  }
  throw new Error(`no ${type} in ${text}`);
}

describe("output too large for the record", () => {
  const command = "yes é | head -c 900000; yes | head -c 600000 >&2";

  test.each([
    ["complete", 2_000_000, [900_000, false], [600_000, false]],
    ["cut at truncate_output_at", 500_001, [500_001, true], [500_001, true]],
  ])("is in the response for the record, %s", async (_, limit, stdout, stderr) => {
    const { uuid } = await engine.finish(
      await engine.start({ image: base, command, truncate_output_at: limit, disposable: true }),
    );
    const result = (await get(uuid)).metadata?.result;
    const bytesOf = (output: WireBytes | undefined) => [
      Buffer.from(output?.value ?? "", output?.encoding === "base64" ? "base64" : "utf8").length,
      output?.truncated,
    ];
    expect(bytesOf(result?.stdout)).toEqual(stdout);
    expect(bytesOf(result?.stderr)).toEqual(stderr);
    expect(result?.state?.exit_code).toBe(0);
    expect(result).not.toHaveProperty("output_in_events");
  });

  test("counts as truncated if the events were removed", async () => {
    const { uuid } = await engine.finish(
      await engine.start({ image: base, command, truncate_output_at: 2_000_000, disposable: true }),
    );
    rmSync(join(engine.directory, "events", `${uuid}.ndjson`));
    const result = (await get(uuid)).metadata?.result;
    expect(result?.stdout).toEqual({ value: "", encoding: "ascii", truncated: true });
    expect(result?.state?.exit_code).toBe(0);
  });
});
