import type {
  AddInstruction,
  ConfigurationInstruction,
  CopyInstruction,
  FromInstruction,
  Instruction,
  RunInstruction,
} from "../../dockerfile/instruction.ts";
import { expandWord } from "../../dockerfile/words/words.ts";
import type { Platform } from "../../image/platform.ts";
import { expandBase, scratch } from "../bases/base.ts";
import {
  copyOfDirectory,
  type DirectoryContext,
  explainDirectoryBase,
  findContext,
  sourceDirectory,
} from "../contexts/named-context.ts";
import { expandCopyWords } from "../copy/words.ts";
import { configure } from "../docker/configuration.ts";
import { startAsDocker } from "../docker/variables.ts";
import { automaticArguments, type BuildTarget } from "../state/platform.ts";
import {
  type Arguments,
  createIsKnown,
  declareArgument,
  type IsKnown,
  type StageScope,
  variableLookup,
} from "../state/scope.ts";
import { emptyRun, emptyUser, emptyWorkdir, skippedCopyFrom, skippedInstruction } from "../state/warnings.ts";
import type { Backend } from "./backend.ts";
import { declareArguments, type Scoped, setVariables } from "./settings.ts";
import { imageTriggers, withTrigger } from "./triggers.ts";
import { undefinedVariables } from "./variable-warnings.ts";

/** Returns the automatic arguments, before any ARG. */
export function startGlobals(target: BuildTarget, supplied: ReadonlyMap<string, string>): Arguments {
  let globals: Arguments = new Map();
  for (const [name, value] of automaticArguments(target))
    globals = declareArgument(globals, name, value, supplied);
  return globals;
}

/** Starts a stage from an earlier stage's final state or from an image. */
export async function interpretFrom<Stage extends StageScope>(
  from: FromInstruction,
  globals: Arguments,
  backend: Backend<Stage>,
): Promise<Stage> {
  const reference = expandBase(from, variableLookup({ args: globals }), backend.escape);
  const platform = backend.platformOf(from, globals);
  const base = await backend.startFromStage(from);
  const context = findContext(reference, backend.contexts);
  if (context?.kind === "directory") return startFromDirectory(context, from, platform, backend);
  const stage = base ?? (await backend.startFromImage(context?.reference ?? reference, from, platform));
  if (!backend.dialect.keepsConfiguration) return stage;
  const triggers =
    base === undefined ? imageTriggers(reference, stage.config, from) : backend.triggersOf(from);
  return runTriggers({ reference, triggers, from }, startAsDocker(stage), globals, backend);
}

/** Starts a stage with the files of a named context, as BuildKit does: an empty image with these files. */
async function startFromDirectory<Stage extends StageScope>(
  context: DirectoryContext,
  from: FromInstruction,
  platform: Platform | undefined,
  backend: Backend<Stage>,
): Promise<Stage> {
  const empty = await explainDirectoryBase(context, () => backend.startFromImage(scratch, from, platform));
  const state = { stage: startAsDocker(empty), lookup: () => undefined, isKnown: () => true };
  return interpretCopy(copyOfDirectory(context.name, from), state, backend);
}

/** Runs the ONBUILD triggers right after the FROM. No further stage inherits them. */
async function runTriggers<Stage extends StageScope>(
  {
    reference,
    triggers,
    from,
  }: { reference: string; triggers: readonly Instruction[]; from: FromInstruction },
  start: Stage,
  globals: Arguments,
  backend: Backend<Stage>,
): Promise<Stage> {
  const { OnBuild: _, ...config } = start.config;
  let stage: Stage = { ...start, config };
  for (const trigger of triggers) {
    const before = stage;
    stage = await withTrigger(trigger, reference, () => {
      backend.linkTrigger(trigger, from);
      return interpretInStage(trigger, before, globals, backend);
    });
  }
  return stage;
}

/**
 * Returns the stage after an instruction. With `interpretFrom` and `declareGlobals`, this is the only place that knows what each
 * instruction means.
 */
export async function interpretInStage<Stage extends StageScope>(
  instruction: Instruction,
  before: Stage,
  globals: Arguments,
  backend: Backend<Stage>,
): Promise<Stage> {
  const loaded = await backend.loadImageEnv(instruction, before);
  const { escape } = backend;
  const scope = { ...loaded, inherited: loaded.inherited ?? backend.assumedVariables };
  const lookup = variableLookup(scope);
  const stage = backend.addToHistory(instruction, loaded, lookup, globals);
  const isKnown = createIsKnown(stage, escape);
  if (backend.warnsAboutUndefined(instruction)) {
    for (const warning of undefinedVariables(instruction, { ...stage, globals }, escape))
      backend.warn(warning, instruction);
  }
  switch (instruction.name) {
    case "FROM":
      throw new Error("unreachable: a FROM starts a new stage");
    case "ARG":
      return declareArguments(instruction, { stage, inherited: scope.inherited, globals }, backend);
    case "ENV":
      return setVariables(instruction, { stage, lookup, isKnown }, backend);
    case "WORKDIR": {
      const path = isKnown(instruction.path) ? expandWord(instruction.path, lookup, escape) : undefined;
      if (path === "") backend.warn(emptyWorkdir, instruction);
      return backend.changeWorkdir(instruction, path, stage);
    }
    case "USER": {
      const user = isKnown(instruction.user) ? expandWord(instruction.user, lookup, escape) : undefined;
      if (user === "") backend.warn(emptyUser, instruction);
      return backend.changeUser(user, stage);
    }
    case "COPY":
    case "ADD":
      return interpretCopy(instruction, { stage, lookup, isKnown }, backend);
    case "RUN":
      if (isEmpty(instruction)) backend.warn(emptyRun, instruction);
      return backend.run(instruction, stage);
    case "CMD":
    case "ENTRYPOINT":
    case "LABEL":
    case "EXPOSE":
    case "VOLUME":
    case "STOPSIGNAL":
    case "MAINTAINER":
    case "HEALTHCHECK":
    case "ONBUILD":
    case "SHELL":
      if (backend.dialect.keepsConfiguration)
        return configureStage(instruction, { stage, lookup, isKnown }, backend);
      backend.warn(skippedInstruction(instruction.name), instruction);
      return stage;
  }
}

function configureStage<Stage extends StageScope>(
  instruction: ConfigurationInstruction,
  { stage, lookup, isKnown }: Scoped<Stage>,
  { escape }: Backend<Stage>,
): Stage {
  const ownsCmd = stage.ownsCmd === true;
  const config = configure(stage.config, instruction, { lookup, isKnown, escape, ownsCmd });
  const author = instruction.name === "MAINTAINER" ? { author: instruction.maintainer } : {};
  return { ...stage, ...author, config, ownsCmd: ownsCmd || instruction.name === "CMD" };
}

function isEmpty({ command }: RunInstruction): boolean {
  return command.form === "shell" && command.line === "";
}

type Copying = CopyInstruction | AddInstruction;

/** Interprets COPY and ADD: expands the words and plans where each source goes. The backend performs the plan. */
async function interpretCopy<Stage extends StageScope>(
  instruction: Copying,
  { stage, lookup, isKnown }: Scoped<Stage>,
  backend: Backend<Stage>,
): Promise<Stage> {
  const isFromImage = instruction.name === "COPY" && instruction.from !== undefined;
  if (isFromImage && !backend.dialect.copiesFromImages) {
    backend.warn(skippedCopyFrom(instruction.from ?? ""), instruction);
    return stage;
  }
  if (!areSourcesKnown(instruction, isKnown)) return stage;
  const { escape } = backend;
  const words = expandCopyWords(withoutUnknown(instruction, isKnown), lookup, escape, backend.dialect);
  if (!backend.dialect.unpacksArchives)
    for (const warning of words.warnings) backend.warn(warning, instruction);
  if (isFromImage && sourceDirectory(instruction, backend.contexts) === undefined)
    return backend.copyFromImage(instruction, words, stage);
  const options = await backend.copyOptions(instruction, stage);
  const isDestinationKnown =
    isKnown(instruction.destination) && (options.workdir !== undefined || words.destination.startsWith("/"));
  const known = isDestinationKnown ? words : { ...words, destination: "/" };
  const workdir = options.workdir ?? "/";
  let dependsOnImage = false;
  const isDirectoryInImage = (path: string) => {
    dependsOnImage = true;
    return options.isDirectoryInImage(path);
  };
  const place = { dialect: backend.dialect, workdir, isDirectoryInImage };
  const plan = await backend.planCopy(known, instruction, { ...options, ...place, lookup, escape });
  for (const warning of plan.warnings) backend.warn(warning, instruction);
  return backend.copy(instruction, { words, plan, isDestinationKnown, dependsOnImage }, stage);
}

function areSourcesKnown(instruction: Copying, isKnown: IsKnown): boolean {
  const words = instruction.sources.map((source) => (source.kind === "path" ? source.path : ""));
  const checksum = instruction.name === "ADD" ? instruction.checksum : undefined;
  return [...words, ...instruction.exclude, instruction.chmod ?? "", checksum ?? ""].every(isKnown);
}

/** Replaces unknown words by valid ones, since an empty word may be an error. */
function withoutUnknown<Instruction extends Copying>(
  instruction: Instruction,
  isKnown: IsKnown,
): Instruction {
  const destination = isKnown(instruction.destination) ? instruction.destination : "/";
  const chown = isKnown(instruction.chown ?? "") ? instruction.chown : undefined;
  return { ...instruction, destination, chown };
}
