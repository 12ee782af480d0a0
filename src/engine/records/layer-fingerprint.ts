import { lstatSync, readdirSync, readlinkSync } from "node:fs";
import type { Pace } from "../../pace.ts";
import { errorCode } from "../../system-error.ts";
import { hashInPieces } from "./stored-content.ts";

/**
 * Returns one SHA-256 of a layer's directory: names, types, modes, owners, contents and files' modification times. A layer never
 * changes, so a different fingerprint means damage. Returns `undefined` if the layer can't be read.
 *
 * @param onBytes called with the number of bytes read since its last call
 */
export async function fingerprintLayer(
  directory: string,
  pace: Pace,
  onBytes: (bytes: number) => void,
): Promise<string | undefined> {
  const hasher = new Bun.CryptoHasher("sha256");
  const waiting = [Buffer.alloc(0)];
  try {
    for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
      const path =
        name.length === 0 ? Buffer.from(directory) : Buffer.concat([Buffer.from(`${directory}/`), name]);
      const stats = lstatSync(path);
      const row: unknown[] = [name.toString("latin1"), stats.mode, stats.uid, stats.gid];
      if (stats.isDirectory()) {
        const names = readdirSync(path, "buffer").sort(Buffer.compare);
        for (const below of names)
          waiting.push(name.length === 0 ? below : Buffer.concat([name, Buffer.from("/"), below]));
      } else if (stats.isSymbolicLink()) row.push(readlinkSync(path, "latin1"));
      else if (stats.isFile()) row.push(stats.size, stats.mtimeMs, await hashFile(path, pace, onBytes));
      else row.push(stats.rdev);
      hasher.update(`${JSON.stringify(row)}\n`);
      const pause = pace.step();
      if (pause !== undefined) await pause;
    }
  } catch (error) {
    if (["EIO", "ENOENT", "ENOTDIR", "EUCLEAN"].includes(errorCode(error) ?? "")) return undefined;
    throw error;
  }
  return hasher.digest("hex");
}

async function hashFile(path: Buffer, pace: Pace, onBytes: (bytes: number) => void): Promise<string | null> {
  const pieces = hashInPieces(path);
  for (;;) {
    const { done, value } = pieces.next();
    if (done === true) return value ?? null;
    onBytes(value);
    const pause = pace.step();
    if (pause !== undefined) await pause;
  }
}
