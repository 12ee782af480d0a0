/** What Docker refuses of a COPY, and what a person is told of one. */
import { posix } from "node:path";
import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { BuildJob } from "../job.ts";
import type { Staged } from "../staging/staged.ts";
import type { CopyPlan } from "./plan.ts";
import { bringsDirectory, type PlannedItem } from "./planned-items.ts";

/** Docker sends nothing that is ignored, and so does not find it. By default that is a warning. */
export function requireSources({ warnings }: CopyPlan): void {
  const missing = warnings.find((warning) => warning.missing !== undefined)?.missing;
  if (missing === undefined) return;
  throw new BoughError(`no such file or directory in the build context: ${missing}`, {
    hint: "An ignore rule leaves it out. Remove the rule, or re-include the path by one that begins with !.",
  });
}

/** Several sources of one file: Docker leaves the last one there. By default that is taken for a mistake. */
export function requireFiles(
  { name, range }: CopyInstruction | AddInstruction,
  plan: CopyPlan,
  { mode, emit }: BuildJob,
): void {
  const { path } = plan.destination;
  const hint = `Write ${path}/ instead.`;
  if (mode === "default")
    throw new BoughError(
      `${name} of several sources needs a directory as its destination: ${path} is none, and does not end in a slash`,
      { kind: "usage", hint },
    );
  if (bringsDirectory(plan)) throw new BoughError(`cannot copy to non-directory: ${path}`, { hint });
  const message = `all sources go to the one file ${path}, where the last is left, as in Docker: ${path}/ would be a directory`;
  emit({ type: "warning", message, line: range.start });
}

/** Docker puts no directory in a file's place, and no file in a directory's: what is staged counts as if it were in the image. */
export function requireSameKinds(items: Iterable<PlannedItem>, staged: Staged): void {
  if (staged.size === 0) return;
  for (const item of items) {
    const before = staged.get(item.path);
    if (before === undefined) continue;
    const isDirectory = item.kind === "entry" && item.entry.type === "directory";
    const hint = `An instruction before has put a ${before.type} there.`;
    if (isDirectory && before.type !== "directory")
      throw new BoughError(`cannot copy to non-directory: ${item.path}`, { hint });
    if (!isDirectory && before.type === "directory")
      throw new BoughError(`cannot replace to directory ${item.path} with file`, { hint });
  }
}

/** Returns whether a destination without a slash may well be meant as a directory: it looks like no name for this source. */
export function mayGoInto(destination: string, item: PlannedItem): boolean {
  if (item.kind === "document" || item.kind === "repository") return false;
  const source = item.kind === "url" ? new URL(item.url).pathname : item.entry.absolutePath;
  return posix.extname(destination) === "" && posix.basename(source) !== posix.basename(destination);
}
