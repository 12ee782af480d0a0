import { expect } from "bun:test";
import { existsSync, readFileSync, writeFileSync } from "node:fs";

/** Compares a text with its golden file. `UPDATE_GOLDEN=1` writes the file first. */
export function expectGolden(path: string, actual: string): void {
  if (process.env.UPDATE_GOLDEN === "1") writeFileSync(path, actual);
  if (!existsSync(path)) throw new Error(`there is no ${path}: UPDATE_GOLDEN=1 writes it`);
  expect(actual).toBe(readFileSync(path, "utf8"));
}
