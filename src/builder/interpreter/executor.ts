import type {
  AddInstruction,
  CopyInstruction,
  Instruction,
  WorkdirInstruction,
} from "../../dockerfile/instruction.ts";
import { warnsOfUndefined } from "../../dockerfile/variable-replacement.ts";
import type { Lookup } from "../../dockerfile/words/words.ts";
import { foreignPlatform } from "../bases/base.ts";
import { inheritEnvironment, startFromImage } from "../bases/from.ts";
import { sourceDirectory } from "../contexts/named-context.ts";
import { requireNoFiles } from "../copy/check-plan.ts";
import { findFiles } from "../copy/copy.ts";
import { type CopyDestination, namesDirectory } from "../copy/destination.ts";
import { planCopy } from "../copy/plan.ts";
import { copiesDirectory } from "../copy/planned-items.ts";
import { stageDirectories } from "../copy/stage-items.ts";
import type { Dialect } from "../dialect.ts";
import { type AskedBuild, type BuildJob, withSourceDirectory } from "../job.ts";
import { isRoot, type Owner, resolveFileOwner, root } from "../owners/ownership.ts";
import type { PrefetchedSources } from "../prefetch.ts";
import { specialFilesOf } from "../staging/special-files.ts";
import { addStep } from "../state/history.ts";
import { isSameOrAbove, parentDirectories, pathInImage } from "../state/path-in-image.ts";
import { type Arguments, variableLookup } from "../state/scope.ts";
import { addStaged } from "../state/staged.ts";
import { changeUser, changeWorkdir, keepWorkdir, type StageState } from "../state/state.ts";
import { makeFilesLayer, makeFoundFilesLayer } from "../steps/files-step.ts";
import { performRunInstruction } from "../steps/run-step.ts";
import type { Backend } from "./backend.ts";
import { createdBy } from "./created-by.ts";

/**
 * Creates the executor of one step of a build. It asks the service, stages files and makes layers. `ordinal`: the number of
 * layer-making instructions before the step; for a FROM with triggers, the ordinal of the first trigger.
 */
export function createExecutor(build: BuildJob, ordinal: number): Backend<StageState> {
  const { dockerfile, buildArgs, contexts } = build.asked;
  const { files } = build.source;
  const { signal } = build.services;
  const { emit } = build;
  const { escape } = dockerfile;
  let nextOrdinal = ordinal;
  /** The sources of a COPY, if they were found in advance. */
  let prefetched: PrefetchedSources | undefined;
  const jobOf = async (instruction: CopyInstruction | AddInstruction): Promise<BuildJob> => {
    const directory = sourceDirectory(instruction, contexts);
    return directory === undefined ? build : withSourceDirectory(build, directory);
  };
  return {
    dialect: build.asked.dialect,
    escape,
    buildArgs,
    contexts,
    assumedVariables: undefined,
    warn: (warning, { range }: Instruction) => emit({ type: "warning", ...warning, line: range.start }),
    warnsAboutUndefined: ({ name }) => warnsOfUndefined(name, build.asked.dialect.keepsConfiguration),

    platformOf: (from, globals) =>
      foreignPlatform(from, build.platforms, variableLookup({ args: globals }), escape),
    startFromStage: async (from) => build.stages.baseOf(from),
    triggersOf: (from) => build.stages.triggersOf(from),
    linkTrigger: (trigger, from) => build.stages.linkTrigger(trigger, from),
    startFromImage: (reference, from, platform) => startFromImage(reference, from, platform, build),
    loadImageEnv: (instruction, stage) => inheritEnvironment(instruction, stage, build),
    addToHistory: (instruction, stage, lookup, globals) =>
      addToHistory(instruction, stage, { lookup, globals }, build.asked),
    async changeWorkdir(instruction, path = "/", stage) {
      const ordinal = nextOrdinal++;
      if (!(await build.services.supports.fileLayers()))
        return performWorkdir(instruction, path, stage, build);
      const staged = await stageWorkdir(instruction, path, stage, build);
      return makeFilesLayer(instruction, ordinal, staged, build);
    },
    changeUser: (user, stage) => (user === undefined ? stage : changeUser(stage, user)),

    async copyOptions(instruction, { config, staged, layer }) {
      prefetched = await build.prefetch.take(instruction);
      // By default a link in the image is replaced, so no request is spent on finding one.
      const readLinkInImage = async (path: string) =>
        build.asked.dialect.copiesAsBuildKit
          ? build.services.inspection.readLink(layer.image, path)
          : undefined;
      const { context, ignore } = (await jobOf(instruction)).source;
      return {
        ...{ context, files, ignore, signal, staged },
        whyLeftOut: specialFilesOf(build.asked.dialect, build.services.supports),
        workdir: config.WorkingDir,
        found: prefetched?.sources,
        async isDirectoryInImage(path) {
          // The list of entries that tells links apart tells directories apart, too.
          await readLinkInImage(path);
          return build.services.inspection.isDirectory(layer.image, path);
        },
        readLinkInImage,
      };
    },
    planCopy,
    async copyFromImage(instruction, words, stage) {
      const ordinal = nextOrdinal++;
      await warnOfLinking(instruction, { destination: words.destination, isFile: false }, stage, build);
      const { performCopyFrom } = await import("../steps/copy-from-step.ts");
      return performCopyFrom(instruction, { words, ordinal }, stage, build);
    },
    async copy(instruction, copy, stage) {
      const { words, plan } = copy;
      const { destination } = words;
      const isFile = instruction.link === true && !copiesDirectory(plan);
      await warnOfLinking(instruction, { destination, found: plan.destination, isFile }, stage, build);
      const ordinal = nextOrdinal++;
      const files = await findFiles(instruction, copy, { prefetched, stage }, await jobOf(instruction));
      return (await build.services.supports.fileLayers())
        ? makeFoundFilesLayer(instruction, ordinal, stage, build, files)
        : (await files.stage()).stage;
    },
    async run(instruction, stage) {
      return performRunInstruction(instruction, nextOrdinal++, stage, build);
    },
  };
}

/** Adds an instruction to the stage's history. */
function addToHistory(
  instruction: Instruction,
  stage: StageState,
  { lookup, globals }: { lookup: Lookup; globals: Arguments },
  { dialect, buildArgs, dockerfile: { escape } }: AskedBuild,
): StageState {
  if (isSkipped(instruction, dialect)) return stage;
  const line = createdBy(instruction, {
    ...{ stage, lookup, escape, buildArgs, globals },
    laterWins: dialect.hasDockersVariables,
  });
  if (line === undefined) return stage;
  return { ...stage, steps: addStep(stage.steps, line, changesFiles(instruction)) };
}

/** Returns true for an instruction that the dialect skips: by default, each one that the specification lists as skipped. */
function isSkipped(instruction: Instruction, { copiesFromImages, keepsConfiguration }: Dialect): boolean {
  if (instruction.name === "COPY") return instruction.from !== undefined && !copiesFromImages;
  return !keepsConfiguration && !["ADD", "ARG", "ENV", "RUN", "USER", "WORKDIR"].includes(instruction.name);
}

function changesFiles({ name }: Instruction): boolean {
  return ["ADD", "COPY", "RUN", "WORKDIR"].includes(name);
}

/**
 * Warns of `--link` where it makes a difference. Docker's own builder ignores the flag, and so does bough. A BuildKit that can link
 * layers does not look at the image: it replaces symbolic links by directories, and a directory by a file. `found`: the destination,
 * if it is known.
 */
async function warnOfLinking(
  { link, range: { start: line } }: CopyInstruction | AddInstruction,
  { destination, found, isFile }: { destination: string; found?: CopyDestination; isFile: boolean },
  { layer, staged, config }: StageState,
  { services, emit, asked }: BuildJob,
): Promise<void> {
  if (link !== true || !asked.dialect.copiesAsBuildKit) return;
  const path = pathInImage(config.WorkingDir, destination);
  const warn = (what: string, advice: string) => {
    const message = `--link: ${what}, as in Docker's own builder; BuildKit replaces it if it links layers: ${advice}`;
    emit({ type: "warning", message, line });
  };
  const isWord = !namesDirectory(destination);
  for (const at of [...parentDirectories(path), ...(isWord ? [] : [path])]) {
    const entry = staged.get(at);
    const target =
      entry === undefined
        ? await services.inspection.readLink(layer.image, at)
        : entry.type === "symlink"
          ? entry.target
          : undefined;
    if (target !== undefined) return warn(`${at} is a link, which is followed`, "name its target");
  }
  if (isFile && isWord && found?.isDirectory === true && path !== "/")
    warn(`${path} is a directory, so the file is put into it`, `write ${path}/`);
}

/**
 * Performs a WORKDIR, which makes its directory if it is missing. Usually the next RUN makes it, by starting in it. Two kinds of
 * directories would be missed that way and are staged: one that another WORKDIR leaves before a RUN, and one that USER owns.
 */
async function performWorkdir(
  { range: { start: line } }: Pick<WorkdirInstruction, "range">,
  path: string,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  if (path === "") return keepWorkdir(stage);
  const next = changeWorkdir(stage, path);
  const isThere = (directory: string) => build.services.inspection.isDirectory(stage.layer.image, directory);
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
async function stageWorkdir(
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
