import { tarOf } from "../support/tar-bytes.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import type { FakeTree, FakeTreeEntry } from "./state.ts";

/** Follows links only at the end of a path, by their text, as the service does. */
export function inspect({ state, recorded, parameter }: RouteCall): Response {
  const image = state.findImage(parameter);
  if (image === undefined) return answerWith.error(404, `no image ${parameter}`);
  const tree = state.treeOf(image.uuid);
  const path = recorded.query.path ?? "/";
  const entry = path === "/" ? { type: "directory" as const } : tree.get(path);
  if (entry === undefined) return answerWith.error(404, `no such path: ${path}`);
  if (recorded.path.endsWith("/archive"))
    return new Response(archiveOf(tree, path), { headers: { "content-type": "application/x-tar" } });
  if (recorded.path.endsWith("/download")) {
    const headers = { "content-type": "application/octet-stream" };
    return entry.type === "file"
      ? new Response(Buffer.from(entry.content ?? ""), { headers })
      : answerWith.error(404, "not a file");
  }
  const listed =
    entry.type === "directory"
      ? [...tree].filter(([other]) => parentOf(other) === path)
      : [[path, entry] as const];
  return Response.json({ path, files: listed.map(describe) });
}

const flags = { file: "0", symlink: "2", directory: "5", pipe: "6" };

function archiveOf(tree: FakeTree, directory: string): Uint8Array<ArrayBuffer> {
  const prefix = directory === "/" ? "/" : `${directory}/`;
  const below = [...tree]
    .filter(([path]) => path.startsWith(prefix))
    .sort(([one], [other]) => (one < other ? -1 : 1));
  const entries = below.map(([path, { type, mode = modeOf(type), ...entry }]) => {
    const name = `./${path.slice(prefix.length)}${type === "directory" ? "/" : ""}`;
    return { ...entry, name, flag: flags[type], mode, content: type === "file" ? (entry.content ?? "") : "" };
  });
  return tarOf([{ name: "./", flag: "5", mode: 0o755 }, ...entries]);
}

function modeOf(type: FakeTreeEntry["type"]): number {
  return type === "directory" ? 0o755 : 0o644;
}

export function findByTag({ state, recorded }: RouteCall): Response {
  const { tag } = recorded.query;
  if (tag === undefined) return answerWith.error(400, "tag is required");
  const image = state.findImage(`tag:${tag}`);
  if (image === undefined) return answerWith.error(404, `no image ${tag}`);
  return new Response(null, { status: 302, headers: { location: `/v1/inspect/${image.uuid}/` } });
}

export function getImage({ state, parameter }: RouteCall): Response {
  const image = state.images.get(parameter);
  return image === undefined ? answerWith.error(404, `no image ${parameter}`) : Response.json(image);
}

/** Supports one pattern and one path. */
export function grep({ state, recorded, parameter }: RouteCall): Response {
  const { pattern, path = "/" } = recorded.query;
  const image = state.findImage(parameter);
  if (image === undefined) return answerWith.error(404, `no image ${parameter}`);
  const tree = state.treeOf(image.uuid);
  if (pattern === undefined) return answerWith.error(400, "pattern is required");
  if (path !== "/" && !tree.has(path)) return answerWith.error(404, `no such path: ${path}`);
  const files = [...tree].filter(([name]) => path === "/" || name === path || name.startsWith(`${path}/`));
  const matches = files.flatMap(([name, { content = "" }]) =>
    grepText(name, String(content), new RegExp(pattern)),
  );
  return Response.json({ path, patterns: [pattern], matches, truncated: false });
}

function grepText(path: string, content: string, pattern: RegExp) {
  let offset = 0;
  return content.split("\n").flatMap((line, index) => {
    const start = line.search(pattern);
    const text = pattern.exec(line)?.[0] ?? "";
    const match = {
      path,
      line_number: index + 1,
      absolute_offset: offset,
      line_text: line,
      line_bytes: line.length + 1,
      submatches: [{ text, start, end: start + text.length }],
      type: "match",
    };
    offset += line.length + 1;
    return start === -1 ? [] : [match];
  });
}

function describe([path, { type, content = "", target = "", ...entry }]: readonly [string, FakeTreeEntry]) {
  const { mode = modeOf(type), uid = 0, gid = 0 } = entry;
  return {
    path,
    size: Buffer.byteLength(content),
    owner: uid === 0 ? "root" : uid,
    group: gid === 0 ? "root" : gid,
    uid,
    gid,
    mode,
    mtime: 0,
    nlink: 1,
    is_dir: type === "directory",
    is_regular: type === "file",
    is_symlink: type === "symlink",
    is_socket: false,
    is_fifo: type === "pipe",
    symlink_to: target,
  };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
