/** An engine that is given images by somebody who means harm. */
import { expect } from "bun:test";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { TestEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";
import { type Canary, makeCanary } from "./canary.ts";

export interface ImportingEngine {
  engine: TestEngine;
  canary: Canary;
  importFrom(url: string): Promise<OperationRecord>;
  /** That an import fails with such a message, changes nothing and leaves nothing. */
  expectRefused(url: string, message: string): Promise<void>;
  /** Of a file in the image that an import has made. */
  textIn(operation: OperationRecord, path: string): Promise<string>;
}

/** It takes no more than 32 MiB and 10,000 files. Without skopeo it has to read itself what is on this machine. */
export async function openImportingEngine({ hasSkopeo = false } = {}): Promise<ImportingEngine> {
  const programs = temporaryDirectory();
  const skopeo = { text: "#!/bin/sh\necho 'handed to skopeo' >&2\nexit 1\n", mode: 0o755 };
  if (!hasSkopeo) writeFiles(programs, { skopeo });
  const engine = await TestEngine.open({
    environment: { PATH: `${programs}:${process.env.PATH}` },
    importLimits: { bytes: 32 * 1024 ** 2, entries: 10_000 },
  });
  const canary = makeCanary(temporaryDirectory());

  async function describePlaces(): Promise<unknown> {
    // An operation's directory goes right after it has ended.
    while (readdirSync(join(engine.directory, "operations")).length > 0) await Bun.sleep(1);
    return { canary: canary.state(), layers: readdirSync(join(engine.directory, "layers")) };
  }
  async function importFrom(url: string): Promise<OperationRecord> {
    return engine.finish(await engine.json("POST", "/v1/images/import", { registry: { url } }));
  }
  return {
    engine,
    canary,
    importFrom,
    async expectRefused(url, message) {
      const before = await describePlaces();
      const operation = await importFrom(url);
      expect(operation.error ?? "none").toContain(message);
      // Of a helper that crashed.
      expect(operation.error).not.toContain("goroutine");
      expect(operation.status).toBe("FAILED");
      expect(await describePlaces()).toEqual(before);
    },
    async textIn({ status, error, result }, path) {
      expect({ status, error }).toEqual({ status: "SUCCESS", error: null });
      return (await engine.fetch("GET", `/v1/inspect/${result?.image}/download?path=${path}`)).text();
    },
  };
}
