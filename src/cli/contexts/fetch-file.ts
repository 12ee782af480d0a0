import { closeSync, mkdirSync, openSync, utimesSync, writeSync } from "node:fs";
import { join } from "node:path";
import { isHeader } from "../../builder/archives/open-archive.ts";
import { redactUrl } from "../../builder/remote-files/source-url.ts";
import { detectCompression } from "../../image/compression.ts";
import { blockBytes } from "../../image/tar-header.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import { contextGroup } from "./context-source.ts";
import { download, type Fetching } from "./fetch-archive.ts";
import type { FetchedContext } from "./fetched-context.ts";
import { onDisk, requireSize } from "./unpack-context.ts";

/** BuildKit's name for the file. */
const fileName = "context";

/**
 * Downloads the URL of a `--build-context`. As in BuildKit, the context has one file, which is called `context`: an archive is not
 * unpacked, unlike that of a URL as CONTEXT.
 */
export function fetchFile(
  url: string,
  { access, contexts, log }: Pick<Fetching, "access" | "contexts" | "log">,
): Promise<FetchedContext> {
  const shown = redactUrl(url, access.buildArgs);
  const name = `${access.subject} ${shown}`;
  const group = contextGroup(shown);
  log.info(`downloading ${shown}`);
  return download(url, access, async (content, headers) => {
    using started = contexts.begin(group);
    const tree = join(started.path, "tree");
    onDisk(tree, () => mkdirSync(tree));
    const modified = modifiedSeconds(headers);
    const limits = { name, maxBytes: access.maxAddBytes };
    const { sha256, bytes, isArchive } = await write(content, join(tree, fileName), limits);
    onDisk(tree, () => utimesSync(join(tree, fileName), modified, modified));
    const key = `${sha256}-${modified}`;
    const held = contexts.find(group, key) ?? started.keep(key);
    const unpacked = isArchive ? ", which is not unpacked, as in Docker" : "";
    log.info(
      `the file \`${fileName}\` came from ${shown} (${formatBytes(bytes)}, sha256:${sha256})${unpacked}`,
    );
    return { held, tree: join(held.path, "tree"), place: shown, name, shown, sha256 };
  });
}

/** Writes the file. Only root may read it, as in BuildKit. */
async function write(
  content: AsyncIterable<Uint8Array>,
  path: string,
  limits: Parameters<typeof requireSize>[1],
): Promise<{ sha256: string; bytes: number; isArchive: boolean }> {
  const hasher = new Bun.CryptoHasher("sha256");
  const file = onDisk(path, () => openSync(path, "wx", 0o600));
  let bytes = 0;
  let beginning = Buffer.alloc(0);
  try {
    for await (const chunk of content) {
      bytes += chunk.byteLength;
      requireSize(bytes, limits);
      hasher.update(chunk);
      if (beginning.byteLength < blockBytes)
        beginning = Buffer.concat([beginning, chunk.subarray(0, blockBytes - beginning.byteLength)]);
      for (let written = 0; written < chunk.byteLength; )
        written += onDisk(path, () => writeSync(file, chunk, written));
    }
  } finally {
    closeSync(file);
  }
  const isArchive = detectCompression(beginning) !== "none" || isHeader(beginning);
  return { sha256: hasher.digest("hex"), bytes, isArchive };
}

/** Returns the file's time by the server, in seconds; 1970 if the server gives none, as in Docker. */
function modifiedSeconds(headers: Headers): number {
  const seconds = Date.parse(headers.get("last-modified") ?? "") / 1000;
  return Number.isNaN(seconds) ? 0 : Math.max(seconds, 0);
}
