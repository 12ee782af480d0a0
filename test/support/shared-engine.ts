import { afterAll } from "bun:test";
import type { BusyboxImageOptions } from "./busybox-image.ts";
import { TestEngine } from "./engine.ts";

/**
 * Opens an engine for all tests of a file, and closes it after them. `base` is its busybox image: with a tag, or made with
 * `options`.
 */
export async function openSharedEngine(
  options?: BusyboxImageOptions,
): Promise<{ engine: TestEngine; base: string }> {
  const engine = await TestEngine.open();
  afterAll(() => engine.close());
  const base = await (options === undefined ? engine.importBase() : engine.importConfigured(options));
  return { engine, base };
}
