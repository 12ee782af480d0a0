import { mkdirSync, utimesSync } from "node:fs";
import { join } from "node:path";
import { createHashedStream } from "../../builder/archives/hashed-stream.ts";
import { isHeader, peek } from "../../builder/archives/open-archive.ts";
import { modifiedSeconds, redactUrl } from "../../builder/remote-files/source-url.ts";
import { detectCompression } from "../../image/compression.ts";
import { blockBytes } from "../../image/tar-header.ts";
import { tap } from "../../streams.ts";
import { formatBytes } from "../../terminal/quantity.ts";
import { contextGroup } from "./context-source.ts";
import { download, type Fetching } from "./fetch-archive.ts";
import type { FetchedContext } from "./fetched-context.ts";
import { onDisk, requireSize, writeContent } from "./unpack-context.ts";

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
    const modified = modifiedSeconds(headers.get("last-modified"));
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
  let bytes = 0;
  const counted = tap(content, (chunk) => {
    bytes += chunk.byteLength;
    requireSize(bytes, limits);
  });
  await using hashed = createHashedStream(counted);
  const { beginning, whole } = await peek(hashed, blockBytes);
  await writeContent(whole(), path, path);
  const isArchive = detectCompression(beginning) !== "none" || isHeader(beginning);
  return { sha256: await hashed.finish(), bytes, isArchive };
}
