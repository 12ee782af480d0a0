import type { WorkdirInstruction } from "../../dockerfile/instruction.ts";
import { requireNoFiles } from "../copy/check-plan.ts";
import { stageDirectories } from "../copy/stage-items.ts";
import type { BuildJob } from "../job.ts";
import { isRoot, type Owner, resolveFileOwner, root } from "../owners/ownership.ts";
import { isSameOrAbove, parentDirectories } from "../state/path-in-image.ts";
import { addStaged } from "../state/staged.ts";
import { changeWorkdir, keepWorkdir, type StageState } from "../state/state.ts";

/**
 * Performs a WORKDIR, which makes its directory if it is missing. Usually the next RUN makes it, by starting in it. Two kinds of
 * directories would be missed that way and are staged: one that another WORKDIR leaves before a RUN, and one that USER owns.
 */
export async function performWorkdir(
  { range: { start: line } }: Pick<WorkdirInstruction, "range">,
  path: string,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (path === "") return keepWorkdir(stage);
  const next = changeWorkdir(stage, path);
  const isThere = (directory: string) => build.services.facts.isDirectory(stage.layer.image, directory);
  const left = stage.config.WorkingDir;
  const entered = next.config.WorkingDir;
  await requireNoFiles([...parentDirectories(entered), entered], stage, build.services);
  const isLost = stage.workdirIsPending && !isSameOrAbove(left, entered) && !(await isThere(left));
  const staged = isLost ? addStaged(stage.staged, stageDirectories([left], root, line, stage)) : stage.staged;

  const owner = await resolveWorkdirOwner(entered, line, stage, build);
  if (isRoot(owner) || (await isThere(entered))) return { ...next, staged };
  const paths = [...parentDirectories(entered), entered];
  const made = stageDirectories(paths, owner, line, { ...stage, staged });
  return { ...next, staged: addStaged(staged, made), workdirIsPending: false };
}

/** Changes to a WORKDIR and stages its directory, for a layer of its own. */
export async function stageWorkdir(
  { range: { start: line } }: Pick<WorkdirInstruction, "range">,
  path: string,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (path === "") return keepWorkdir(stage);
  const next = { ...changeWorkdir(stage, path), workdirIsPending: false };
  const { WorkingDir } = next.config;
  if (WorkingDir === "/") return next;
  const owner = await resolveWorkdirOwner(WorkingDir, line, stage, build);
  const made = stageDirectories([...parentDirectories(WorkingDir), WorkingDir], owner, line, stage);
  return { ...next, staged: addStaged(stage.staged, made) };
}

/**
 * Returns root, with a warning, if the service can't say who USER is, or if a command of bough's own would have to make the
 * directory on a service that may know nothing but the calls of the specification.
 */
async function resolveWorkdirOwner(
  path: string,
  line: number,
  stage: StageState,
  build: BuildJob,
): Promise<Owner> {
  const user = stage.config.User;
  if (user === undefined || ["root", "root:root", "0", "0:0"].includes(user)) return root;
  const owner = await resolveFileOwner(user, line, stage, build);
  const isServed = build.asked.dialect.looksUpUsers || (await build.services.supports.userNumbers());
  if (owner.names === undefined && isServed) return owner;
  const why =
    owner.names === undefined
      ? `the service makes the directory of a WORKDIR`
      : `the service can't say who ${user} is`;
  const otherwise = isServed ? ", or write USER as a number" : "";
  const message = `${why}, so ${path} belongs to root if the image lacks it: make it in a RUN before USER${otherwise}`;
  build.emit({ type: "warning", message, line });
  return root;
}
