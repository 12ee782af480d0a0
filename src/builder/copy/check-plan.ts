/** The checks by which Docker refuses a COPY, and the warnings about one. */
import { posix } from "node:path";
import type { AddInstruction, CopyInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import type { ImageInspection } from "../cache/image-inspection.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { titleOf } from "../location.ts";
import { parentDirectories, pathInImage } from "../state/path-in-image.ts";
import type { Staged, StagedEntry } from "../state/staged.ts";
import type { StageState } from "../state/state.ts";
import { namesDirectory } from "./destination.ts";
import type { CopyPlan, PlannedCopy } from "./plan.ts";
import { copiesDirectory, type PlannedItem, PlannedItems } from "./planned-items.ts";

/** Throws if the plan is impossible, and warns of results that the user may not expect. */
export function checkPlan(
  instruction: CopyInstruction | AddInstruction,
  { plan, dependsOnImage }: PlannedCopy,
  build: BuildJob,
): void {
  const { destination, excluded, largeContext } = plan;
  const line = instruction.range.start;
  const title = titleOf(instruction);
  if (
    dependsOnImage &&
    !build.services.supports.inspection() &&
    plan.items[Symbol.iterator]().some((item) => mayGoInto(destination.path, item))
  ) {
    const { path } = destination;
    const message = `the service can't tell whether ${path} is a directory in the image, so bough treats it as a file: write ${path}/ to copy into a directory`;
    build.emit({ type: "warning", message, line });
  }
  // Docker does not find such a source in the context that it is sent. By default it is only a warning.
  if (build.asked.dialect.copiesAsBuildKit && plan.refusal !== undefined) throw plan.refusal;
  if (plan.isOneFile) requireFiles(instruction, plan, build);
  if (excluded.length > 0) build.emit({ type: "excluded", title, line, paths: excluded });
  if (largeContext !== undefined) {
    const { name } = build.source.context;
    const context = name === undefined ? {} : { context: name };
    build.emit({ type: "large-context", title, line, ...context, ...largeContext });
  }
}

/** Checks several sources for one file. Docker keeps the last one there; by default that is considered a mistake. */
function requireFiles(
  { name, range }: CopyInstruction | AddInstruction,
  plan: CopyPlan,
  { asked, emit }: BuildJob,
): void {
  const { path } = plan.destination;
  const hint = `Write ${path}/ instead.`;
  if (!asked.dialect.copiesAsBuildKit)
    throw new BoughError(
      `${name} with several sources needs a directory as its destination: ${path} is not a directory and does not end with a slash`,
      { kind: "usage", hint },
    );
  if (copiesDirectory(plan)) throw new BoughError(`cannot copy to non-directory: ${path}`, { hint });
  const message = `all sources are copied to the same file ${path}, which keeps only the last, as in Docker: write ${path}/ for a directory`;
  emit({ type: "warning", message, line: range.start });
}

/** Throws if a file is staged in place of a directory that a destination needs. */
export async function requireDirectories(
  destination: string,
  stage: StageState,
  services: BuildServices,
): Promise<void> {
  const path = pathInImage(stage.config.WorkingDir, destination);
  const above = parentDirectories(path);
  await requireNoFiles(namesDirectory(destination) ? [...above, path] : above, stage, services);
}

/** Throws if a file is staged in place of a directory. The service would name the instruction of that file instead. */
export async function requireNoFiles(
  directories: readonly string[],
  { staged, layer }: StageState,
  { inspection }: BuildServices,
): Promise<void> {
  const file = directories.find((path) => staged.get(path)?.type === "file");
  if (file === undefined) return;
  // If the service can't show the image, it may have a directory of that name, into which the file is meant to go.
  if (!(await inspection.isDirectory(layer.image, "/"))) return;
  throw new BoughError(`${file} is not a directory`, {
    hint: "An earlier instruction has put a file there.",
  });
}

/** Checks the target paths of a copy, in the image and among staged entries, before anything is placed, as Docker does. */
export async function requireCopyTargets(
  items: Iterable<PlannedItem>,
  { path }: CopyPlan["destination"],
  stage: StageState,
  services: BuildServices,
): Promise<void> {
  requireSameKinds(items, stage.staged);
  await requireNoLinks(items, path, stage, services);
}

/**
 * Throws if a directory would replace a file or a file a directory, as Docker does. Staged entries count as if they were in the
 * image, and so do those of an earlier source of the same instruction.
 */
function requireSameKinds(items: Iterable<PlannedItem>, staged: Staged): void {
  const mayMeet = !(items instanceof PlannedItems) || items.mayMeet();
  if (staged.size === 0 && !mayMeet) return;
  const brought = new Map<string, PlannedKind>();
  for (const item of items) {
    const kind = kindOf(item);
    const before = staged.get(item.path);
    if (before !== undefined)
      requireSameKind(item.path, kind, before.type, `An earlier instruction has put a ${before.type} there.`);
    if (!mayMeet) continue;
    const other = brought.get(item.path) ?? kind;
    requireSameKind(
      item.path,
      kind,
      other,
      `Another source of this instruction has a ${other} of that name.`,
    );
    brought.set(item.path, kind);
  }
}

/** Throws if a directory would replace a link, wherever in the image that leads. Docker allows a link only as the destination. */
async function requireNoLinks(
  items: Iterable<PlannedItem>,
  destination: string,
  stage: StageState,
  services: BuildServices,
): Promise<void> {
  for await (const path of linksInPlaceOf(directoriesOf(items), destination, stage, services.inspection))
    throw new BoughError(`cannot copy to non-directory: ${path}`, {
      hint: `The image has a link there, and the source has a directory. Copy the directory's contents to ${path}/ instead: a destination may be a link.`,
    });
}

function* directoriesOf(items: Iterable<PlannedItem>): Generator<string, undefined> {
  for (const item of items)
    if (item.kind === "entry" && item.entry.type === "directory" && item.isBelowSource && !item.isSourceRoot)
      yield item.path;
}

type PlannedKind = StagedEntry["type"];

function kindOf(item: PlannedItem): PlannedKind {
  if (item.kind === "repository") return "directory";
  return item.kind === "entry" ? item.entry.type : "file";
}

function requireSameKind(path: string, kind: PlannedKind, before: PlannedKind, hint: string): void {
  if (kind === "directory" && before !== "directory")
    throw new BoughError(`cannot copy to non-directory: ${path}`, { hint });
  if (kind !== "directory" && before === "directory")
    throw new BoughError(`cannot replace to directory ${path} with file`, { hint });
}

/** Returns true if a destination without a slash probably means a directory, as it does not look like a name for this source. */
function mayGoInto(destination: string, item: PlannedItem): boolean {
  if (item.kind === "document" || item.kind === "repository") return false;
  const source = item.kind === "url" ? new URL(item.url).pathname : item.entry.absolutePath;
  return posix.extname(destination) === "" && posix.basename(source) !== posix.basename(destination);
}

/**
 * Finds links that an image has in the place of directories below a destination, such as `/lib`. Looks from the top down, only
 * below directories that the image has.
 *
 * @param directories absolute paths, each after the one that contains it
 */
async function* linksInPlaceOf(
  directories: Iterable<string>,
  destination: string,
  { layer, staged }: Pick<StageState, "layer" | "staged">,
  inspection: ImageInspection,
): AsyncGenerator<string, undefined> {
  const shared = new Set([destination]);
  let isThere: boolean | undefined;
  for (const path of directories) {
    if (staged.has(path) || !shared.has(posix.dirname(path))) continue;
    // Looked up only now: most copies contain no directory.
    isThere ??= destination === "/" || (await inspection.isDirectory(layer.image, destination));
    if (!isThere) return;
    const type = await inspection.typeAt(layer.image, path);
    if (type === "symlink") yield path;
    if (type === "directory") shared.add(path);
  }
}
