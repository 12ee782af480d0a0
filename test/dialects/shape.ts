/** The forms that a service may give its responses, as data. A path is keys joined by dots. */
export interface Shape {
  /** The paths of a new operation's id in the response, and other fields of it. */
  operation: { paths: readonly string[]; also?: Record<string, unknown> };
  /** Where its record is; `{id}` stands for the id. */
  record: string;
  /** How the response names the record's address: in `Location`, or at a path of the body. */
  address?: "location" | { path: string };
  /** What the record is put into. */
  wrapper?: string;
  /** The paths of the status; `running` and `ended` are its words. `undefined`: it has none. */
  status: { path: string; running: string; ended: string; failed: string } | "none";
  /** The path of the resulting image, and its form there. */
  image: { path: string; as: "text" | "uuid" | "id" };
  /** The base image beside it. */
  echoes?: string;
  /** The path of the exit code; `undefined`: it has none. */
  exitCode: string | undefined;
  output: { path: string; form: OutputForm };
  file: { paths: readonly string[]; isArray?: boolean; conflicts?: boolean };
  imports: "operation" | "operation 202" | "pending" | { path: string } | "created";
  /** How it refuses a file that is not in a form; `undefined`: it takes the bare bytes. */
  wantsForms?: 400 | 415 | 422;
  /** How it refuses fields that the specification does not name. */
  refusesFields?: 400 | 422;
  list: { path: string; tags: TagForm } | { status: number } | "dropped" | "page";
}

export type OutputForm =
  | "text"
  | "lines"
  | "line objects"
  | "base64 value"
  | "base64 data"
  | "content"
  | "nothing";
export type TagForm = "tag" | "tags" | "name:tag" | "name and tag" | "repo_tags" | "objects";

/** Sets a value at a path, below any objects that are there. */
export function setAt(record: Record<string, unknown>, path: string, value: unknown): void {
  const keys = path.split(".");
  const last = keys.pop() ?? "";
  let place = record;
  for (const key of keys) {
    const inner = place[key];
    const next = (typeof inner === "object" && inner !== null ? inner : {}) as Record<string, unknown>;
    place[key] = next;
    place = next;
  }
  place[last] = value;
}
