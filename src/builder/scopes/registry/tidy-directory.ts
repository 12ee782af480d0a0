import { readdir, readFile, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { asRecord } from "../../../service/http/json.ts";
import { errorCode } from "../../../system-error.ts";

/** Blobs of other writers, which no manifest names yet, are younger. */
const minAgeMilliseconds = 60 * 60 * 1000;

/** Removes the blobs of an OCI layout that none of its manifests names, so that a directory does not grow with each write. */
export async function tidyDirectory(directory: string, now: number): Promise<void> {
  const blobs = join(directory, "blobs/sha256");
  const named = new Set<string>();
  const waiting = digestsIn(await readJson(join(directory, "index.json")));
  for (let digest = waiting.pop(); digest !== undefined; digest = waiting.pop()) {
    const name = digest.slice("sha256:".length);
    if (named.has(name)) continue;
    named.add(name);
    waiting.push(...digestsIn(await readJson(join(blobs, name))));
  }
  for (const name of await readdir(blobs)) {
    if (named.has(name)) continue;
    const place = join(blobs, name);
    const found = await stat(place).catch(() => undefined);
    if (found !== undefined && found.mtimeMs < now - minAgeMilliseconds) await rm(place, { force: true });
  }
}

/** No manifest is larger: layers are not read as one. */
const maxManifestBytes = 8 * 1024 * 1024;

async function readJson(path: string): Promise<unknown> {
  try {
    if ((await stat(path)).size > maxManifestBytes) return undefined;
    return JSON.parse(await readFile(path, "utf8"));
  } catch (error) {
    // Not a manifest, or it does not exist.
    if (error instanceof SyntaxError || ["ENOENT", "ENOTDIR"].includes(errorCode(error) ?? ""))
      return undefined;
    throw error;
  }
}

function digestsIn(json: unknown): string[] {
  const record = asRecord(json);
  const descriptors = [record?.config, record?.layers, record?.manifests].flat();
  return descriptors.flatMap((descriptor) => {
    const digest = asRecord(descriptor)?.digest;
    return typeof digest === "string" && /^sha256:[0-9a-f]{64}$/.test(digest) ? [digest] : [];
  });
}
