import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { asRecord } from "../../../service/http/json.ts";
import { errorCode } from "../../../system-error.ts";
import { isCache } from "./artifact.ts";

/** Blobs of other writers, which no manifest names yet, are younger. */
const minAgeMilliseconds = 60 * 60 * 1000;

/**
 * Removes the blobs of an OCI layout that none of its caches names, so that a directory does not grow with each write. Removes
 * nothing from a layout that has anything else, or something that can't be read: others may name blobs in another way.
 */
export async function cleanDirectory(directory: string, now: number): Promise<void> {
  const blobs = join(directory, "blobs/sha256");
  const manifests = listIn(await readJson(join(directory, "index.json")), "manifests");
  if (manifests === undefined) return;
  const named = new Set<string>();
  for (const digest of manifests.map(nameIn)) {
    const manifest = digest === undefined ? undefined : await readJson(join(blobs, digest));
    const layers = listIn(manifest, "layers");
    if (digest === undefined || layers === undefined || !isCache(manifest)) return;
    for (const name of [digest, nameIn(asRecord(manifest)?.config), ...layers.map(nameIn)]) {
      if (name === undefined) return;
      named.add(name);
    }
  }
  for (const name of await readdir(blobs)) {
    if (named.has(name)) continue;
    const place = join(blobs, name);
    const found = await stat(place).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < now - minAgeMilliseconds) await rm(place, { force: true });
  }
}

/** No manifest or list is larger. */
const maxBytes = 8 * 1024 * 1024;

async function readJson(path: string): Promise<unknown> {
  try {
    if ((await stat(path)).size > maxBytes) return undefined;
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? ""))
      return undefined;
    throw error;
  }
}

function listIn(json: unknown, field: "manifests" | "layers"): unknown[] | undefined {
  const list = asRecord(json)?.[field];
  return Array.isArray(list) ? list : undefined;
}

/** Returns the name of the file of a blob. */
function nameIn(descriptor: unknown): string | undefined {
  const digest = asRecord(descriptor)?.digest;
  return typeof digest === "string" ? /^sha256:([0-9a-f]{64})$/.exec(digest)?.[1] : undefined;
}
