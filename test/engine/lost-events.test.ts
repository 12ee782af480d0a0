/** An event that can't be written, as on a full disk, fails only its own operation. An unhandled rejection would fail the test. */
import { expect, test } from "bun:test";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { digestOf } from "../../src/image/digest.ts";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { lastingProcesses } from "../support/processes.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();

/** Puts a directory in the place of an operation's log, as soon as that has an event of this type. */
async function loseEventsAfter(type: string, { uuid }: { uuid: string }): Promise<void> {
  const log = join(engine.directory, "events", `${uuid}.ndjson`);
  while (!readFileSync(log, "utf8").includes(`"type":"${type}"`)) await Bun.sleep(1);
  rmSync(log);
  mkdirSync(log);
}

async function ended({ uuid }: { uuid: string }): Promise<OperationRecord> {
  for (;;) {
    const operation = await engine.json<OperationRecord>("GET", `/v1/operations/${uuid}`);
    if (operation.status !== "EXECUTING") return operation;
    await Bun.sleep(1);
  }
}

test("the start of a silent command", async () => {
  const operation = await engine.start({ image: base, command: "sleep 0.1" });
  await loseEventsAfter("init", operation);
  expect(await ended(operation)).toMatchObject({
    status: "FAILED",
    error: expect.stringContaining("EISDIR"),
  });
});

test("the start and the output of a process beside the command", async () => {
  const operation = await engine.start({ image: base, command: "sleep 100" });
  await loseEventsAfter("spawn", operation);
  const path = `/v1/operations/${operation.uuid}`;
  const beside = await engine.fetch("POST", `${path}/subprocesses`, {
    command: "echo x; echo y",
    shell: true,
  });
  await beside.body?.cancel();
  await engine.fetch("DELETE", path);
  expect((await ended(operation)).status).toBe("CANCELLED");
});

test("the progress of an import, whose download then ends", async () => {
  const config = { mediaType: "application/vnd.oci.image.config.v1+json", digest: digestOf("{}"), size: 2 };
  const manifest = {
    schemaVersion: 2,
    mediaType: "application/vnd.oci.image.manifest.v1+json",
    config,
    layers: [],
  };
  const registry = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      if (url.includes("/blobs/")) return new Promise<Response>(() => {});
      return Response.json(manifest, { headers: { "Content-Type": manifest.mediaType } });
    },
  });
  const url = `docker://127.0.0.1:${registry.port}/x:1`;
  const operation = await engine.json<{ uuid: string }>("POST", "/v1/images/import", { registry: { url } });
  await loseEventsAfter("init", operation);
  expect(await ended(operation)).toMatchObject({
    status: "FAILED",
    error: expect.stringContaining("EISDIR"),
  });
  expect(await lastingProcesses(url)).toEqual([]);
  await registry.stop(true);
});
