import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import type { FakeTreeEntry } from "./state.ts";

/** The same tree, `state.tree`, in every image; `/` is always there. */
export function inspect({ state, recorded, parameter }: RouteCall): Response {
  if (state.findImage(parameter) === undefined) return answerWith.error(404, `no image ${parameter}`);
  const path = recorded.query.path ?? "/";
  const entry = path === "/" ? { type: "directory" as const } : state.tree.get(path);
  if (entry === undefined) return answerWith.error(404, `no such path: ${path}`);
  if (recorded.path.endsWith("/archive"))
    return new Response(new Uint8Array(10_240), { headers: { "content-type": "application/x-tar" } });
  if (recorded.path.endsWith("/download")) {
    const headers = { "content-type": "application/octet-stream" };
    return entry.type === "file"
      ? new Response(entry.content ?? "", { headers })
      : answerWith.error(404, "not a file");
  }
  const listed =
    entry.type === "directory"
      ? [...state.tree].filter(([other]) => parentOf(other) === path)
      : [[path, entry] as const];
  return Response.json({ path, files: listed.map(describe) });
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

/** One pattern, one path. */
export function grep({ state, recorded, parameter }: RouteCall): Response {
  const { pattern, path = "/" } = recorded.query;
  if (state.findImage(parameter) === undefined) return answerWith.error(404, `no image ${parameter}`);
  if (pattern === undefined) return answerWith.error(400, "pattern is required");
  if (path !== "/" && !state.tree.has(path)) return answerWith.error(404, `no such path: ${path}`);
  const files = [...state.tree].filter(
    ([name]) => path === "/" || name === path || name.startsWith(`${path}/`),
  );
  const matches = files.flatMap(([name, { content = "" }]) => grepText(name, content, new RegExp(pattern)));
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

function describe([path, { type, content = "", target = "" }]: readonly [string, FakeTreeEntry]) {
  return {
    path,
    size: content.length,
    owner: "root",
    group: "root",
    uid: 0,
    gid: 0,
    mode: type === "directory" ? 0o755 : 0o644,
    mtime: 0,
    nlink: 1,
    is_dir: type === "directory",
    is_regular: type === "file",
    is_symlink: type === "symlink",
    is_socket: false,
    is_fifo: false,
    symlink_to: target,
  };
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
