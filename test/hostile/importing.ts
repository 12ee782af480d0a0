/** An engine for imports of malicious images. */
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
  /** Checks that an import fails with this message, changes no file and leaves none. */
  expectRefused(url: string, message: string): Promise<void>;
  /** Returns the text of a file in an imported image. */
  textIn(operation: OperationRecord, path: string): Promise<string>;
}

/** Opens an engine that takes at most 32 MiB and 10,000 files. Without skopeo, it must read images on disk itself. */
export async function openImportingEngine({ hasSkopeo = false } = {}): Promise<ImportingEngine> {
  const programs = temporaryDirectory();
  const skopeo = { text: "#!/bin/sh\necho 'handed to skopeo' >&2\nexit 1\n", mode: 0o755 };
  if (!hasSkopeo) writeFiles(programs, { skopeo });
  const engine = await TestEngine.open({
    environment: { PATH: `${programs}:${process.env.PATH}` },
    importLimits: { bytes: 32 * 1024 ** 2, entries: 10_000 },
  });
  const canary = makeCanary(temporaryDirectory());

  async function describeState(): Promise<unknown> {
    // An operation's directory is removed just after the operation has ended.
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
      const before = await describeState();
      const operation = await importFrom(url);
      expect(operation.error ?? "none").toContain(message);
      // The output of a helper that crashed.
      expect(operation.error).not.toContain("goroutine");
      expect(operation.status).toBe("FAILED");
      expect(await describeState()).toEqual(before);
    },
    async textIn({ status, error, result }, path) {
      expect({ status, error }).toEqual({ status: "SUCCESS", error: null });
      return (await engine.fetch("GET", `/v1/inspect/${result?.image}/download?path=${path}`)).text();
    },
  };
}
