import type { FromInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { extend } from "../../persistent-map.ts";
import { expandBase } from "./base.ts";
import { interpretCopy } from "./copy.ts";
import { createIsKnown, updateUnknown } from "./known.ts";
import { type Platform, platformArguments } from "./platform.ts";
import { isDisposableMount } from "./refusals.ts";
import { type Arguments, declareArgument, lookUp, type StageScope } from "./scope.ts";
import { declareArguments, expandPairs, expandRequired } from "./settings.ts";
import { undefinedVariables } from "./undefined-variables.ts";
import { ignoredMount, skippedInstruction } from "./warnings.ts";
import type { Interpretation, World } from "./world.ts";

/** Nothing is read yet. `platform`: of the service, where some instruction asks for it. */
export function startInterpretation<Stage extends StageScope>(
  platform: Platform | undefined,
  supplied: ReadonlyMap<string, string>,
): Interpretation<Stage> {
  let globals: Arguments = new Map();
  const automatic = platform === undefined ? [] : platformArguments(platform);
  for (const [name, value] of automatic) globals = declareArgument(globals, name, value, supplied);
  return { globals, platform, stages: new Map(), stage: undefined };
}

/** What an instruction makes of a build so far: the one place that knows what each of them means. */
export async function interpret<Stage extends StageScope>(
  instruction: Instruction,
  state: Interpretation<Stage>,
  world: World<Stage>,
): Promise<Interpretation<Stage>> {
  if (instruction.name === "FROM") return interpretFrom(instruction, state, world);
  const { stage, globals } = state;
  if (stage !== undefined)
    return { ...state, stage: await interpretInStage(instruction, stage, globals, world) };
  if (instruction.name !== "ARG") return state;
  const declared = { args: globals, env: new Map<string, string>(), inherited: undefined, globals };
  return { ...state, globals: declareArguments(instruction, declared, world.buildArgs, world.escape) };
}

/** Starts a stage: from an earlier stage of that name with all that it has, else from an image. */
async function interpretFrom<Stage extends StageScope>(
  from: FromInstruction,
  state: Interpretation<Stage>,
  world: World<Stage>,
): Promise<Interpretation<Stage>> {
  const reference = expandBase(from, lookUp({ args: state.globals }), world.escape);
  world.requirePlatform(from, state);
  const { stages } = endStage(state);
  const earlier = stages.get(reference.toLowerCase());
  const started = earlier ?? (await world.startFromImage(reference, from));
  return { ...state, stages, stage: { ...started, name: from.stageName } };
}

/** A stage that has ended can be started from, if it has a name. */
export function endStage<Stage extends StageScope>(
  state: Interpretation<Stage>,
): Interpretation<Stage> & { stage: undefined } {
  const { stage, stages } = state;
  const ended = stage?.name === undefined ? stages : extend(stages, [[stage.name, stage]]);
  return { ...state, stages: ended, stage: undefined };
}

async function interpretInStage<Stage extends StageScope>(
  instruction: Exclude<Instruction, { name: "FROM" }>,
  before: Stage,
  globals: Arguments,
  world: World<Stage>,
): Promise<Stage> {
  const stage = await world.loadImageEnv(instruction, before);
  const { escape, buildArgs } = world;
  const scope = { ...stage, inherited: stage.inherited ?? world.assumed };
  const lookup = lookUp(scope);
  const isKnown = createIsKnown(stage, escape);
  if (world.tellsUndefined(instruction)) {
    for (const warning of undefinedVariables(instruction, { ...stage, globals }, escape))
      world.warn(warning, instruction);
  }
  switch (instruction.name) {
    case "ARG": {
      const given = instruction.declarations.filter(({ key }) => !buildArgs.has(key));
      const args = declareArguments(instruction, { ...scope, globals }, buildArgs, escape);
      return { ...stage, args, unknown: updateUnknown(stage.unknown, given, isKnown) };
    }
    case "ENV": {
      const pairs = expandPairs(instruction, lookup, escape);
      const env = extend(
        stage.env,
        pairs.map(({ key, value }) => [key, value]),
      );
      return { ...stage, env, unknown: updateUnknown(stage.unknown, instruction.pairs, isKnown) };
    }
    case "WORKDIR": {
      const path = isKnown(instruction.path)
        ? expandRequired(instruction, instruction.path, lookup, escape)
        : undefined;
      return world.changeWorkdir(instruction, path, stage);
    }
    case "USER": {
      const user = isKnown(instruction.user)
        ? expandRequired(instruction, instruction.user, lookup, escape)
        : undefined;
      return world.changeUser(user, stage);
    }
    case "COPY":
    case "ADD":
      return interpretCopy(instruction, { stage, lookup, isKnown }, world);
    case "RUN":
      for (const mount of instruction.mounts.filter(isDisposableMount))
        world.warn(ignoredMount(mount), instruction);
      return world.run(instruction, stage);
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
      world.warnWithReason(skippedInstruction(instruction.name), instruction);
      return stage;
  }
}
