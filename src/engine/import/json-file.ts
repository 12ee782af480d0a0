import { BoughError } from "../../errors.ts";
import { maxJsonBytes } from "../import-limits.ts";
import { type ImportFile, readPart } from "./image-files.ts";

export type Json = Record<string, unknown>;

/** Reads a small file of an image. */
export async function readSmall(file: ImportFile): Promise<Uint8Array> {
  if (file.size > maxJsonBytes) {
    throw new BoughError(`${file.name} is too large for a manifest: ${file.size} bytes`);
  }
  return Buffer.concat(await Array.fromAsync(readPart(file.place)));
}

/** Parses JSON in UTF-8. */
export function parseJson(bytes: Uint8Array, name: string): unknown {
  try {
    return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch {
    throw new BoughError(`${name} is not JSON`);
  }
}

export function asObject(value: unknown, name: string): Json {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw new BoughError(`${name} is malformed: expected an object`);
}

/** Returns a list of objects; an empty one if the value is missing. */
export function asObjects(value: unknown, name: string): Json[] {
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new BoughError(`${name} is malformed: expected a list`);
  return value.map((item) => asObject(item, name));
}

/** Returns a list of texts; an empty one if the value is missing. */
export function asTexts(value: unknown, name: string): string[] {
  if (value === undefined || value === null) return [];
  if (Array.isArray(value) && value.every((item) => typeof item === "string")) return value;
  throw new BoughError(`${name} is malformed: expected a list of strings`);
}

export function optionalText(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
