import { closeSync, lstatSync, openSync, readdirSync, readlinkSync, readSync, type Stats } from "node:fs";
import { basename } from "node:path";
import { answerJson, RequestError } from "../http/answers.ts";
import { readText } from "../http/query.ts";
import type { Call, Route } from "../http/router.ts";
import { streamArchive } from "../inspect/archive.ts";
import { type ImageView, openImageView } from "../inspect/image-view.ts";
import { requireImage } from "../records/images.ts";
import { type ResolvedPath, resolveInRoot } from "../sandbox/root-path.ts";

/** Reads images without starting anything. Links are followed, inside the image. */
export const inspectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/inspect/:uuid/list",
    async answer(call) {
      const { inside, path, stats, view } = await find(call);
      try {
        const files = stats.isDirectory()
          ? readdirSync(path, "buffer")
              .sort(Buffer.compare)
              .map((name) => describeEntry(name, inDirectory(path, name)))
          : [describeEntry(Buffer.from(basename(inside)), Buffer.from(path))];
        return answerJson({ path: inside, files });
      } finally {
        view.close();
      }
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/download",
    async answer(call) {
      const { inside, path, stats, view } = await find(call);
      try {
        if (!stats.isFile()) throw new RequestError(400, `${inside} is not a regular file`);
        const body = call.request.method === "HEAD" ? null : streamFile(path);
        const headers = { "Content-Type": "application/octet-stream", "Content-Length": String(stats.size) };
        return new Response(body, { headers });
      } finally {
        view.close();
      }
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/archive",
    async answer(call) {
      const { path, stats, view } = await find(call);
      const headers = { "Content-Type": "application/x-tar" };
      if (call.request.method !== "HEAD") {
        return new Response(streamArchive(call.state, path, stats, view), { headers });
      }
      view.close();
      return new Response(null, { headers });
    },
  },
];

/** What the query's `path` leads to, in a view that the caller closes. */
async function find({
  state,
  url,
  parameters,
}: Call): Promise<ResolvedPath & { stats: Stats; view: ImageView }> {
  const path = readText(url, "path") ?? "/";
  if (!path.startsWith("/") || path.includes("\0")) throw new RequestError(400, "path must be absolute");
  const image = requireImage(state.database, parameters.uuid ?? "");
  const view = await openImageView(state, image);
  try {
    const found = resolveInRoot(view.root, path, { followLast: true });
    const { stats } = found;
    if (stats === undefined) throw new RequestError(404, `there is no ${path} in image ${image.uuid}`);
    return { ...found, stats, view };
  } catch (error) {
    view.close();
    throw error;
  }
}

/** Names are bytes, and not all of them are UTF-8. */
function inDirectory(path: string, name: Buffer): Buffer {
  return Buffer.concat([Buffer.from(`${path}/`), name]);
}

function describeEntry(name: Buffer, path: Buffer): Record<string, unknown> {
  const stats = lstatSync(path);
  return {
    path: name.toString(),
    size: stats.size,
    uid: stats.uid,
    gid: stats.gid,
    mode: stats.mode,
    mtime: Math.floor(stats.mtimeMs / 1000),
    nlink: stats.nlink,
    is_dir: stats.isDirectory(),
    is_regular: stats.isFile(),
    is_symlink: stats.isSymbolicLink(),
    symlink_to: stats.isSymbolicLink() ? readlinkSync(path, "utf8") : null,
  };
}

/**
 * An open file stays readable when the view that it was found in is gone. A descriptor, not a FileHandle: one that a reader
 * has left behind is an uncaught error once it is collected.
 */
function streamFile(path: string): ReadableStream<Uint8Array> {
  const descriptor = openSync(path, "r");
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      const buffer = new Uint8Array(256 * 1024);
      const count = readSync(descriptor, buffer);
      if (count > 0) {
        controller.enqueue(buffer.subarray(0, count));
        return;
      }
      closeSync(descriptor);
      controller.close();
    },
    cancel: () => closeSync(descriptor),
  });
}
