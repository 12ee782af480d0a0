import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";

/** The same tree, `state.tree`, in every image; `/` is always there. */
export function inspect({ state, recorded, parameter }: RouteCall): Response {
  if (state.findImage(parameter) === undefined) return answerWith.error(404, `no image ${parameter}`);
  const path = recorded.query.path ?? "/";
  const entry = path === "/" ? { type: "directory" as const } : state.tree.get(path);
  if (entry === undefined) return answerWith.error(404, `no such path: ${path}`);
  if (recorded.path.endsWith("/archive")) return new Response(new Uint8Array(10_240));
  if (recorded.path.endsWith("/download")) {
    return entry.type === "file" ? new Response(entry.content ?? "") : answerWith.error(400, "not a file");
  }
  const listed =
    entry.type === "directory"
      ? [...state.tree].filter(([other]) => parentOf(other) === path)
      : [[path, entry] as const];
  const files = listed.map(([name, { type }]) => ({
    path: name,
    is_dir: type === "directory",
    is_regular: type === "file",
    is_symlink: type === "symlink",
  }));
  return Response.json({ path, files });
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
