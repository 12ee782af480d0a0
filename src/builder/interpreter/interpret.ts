import type { ArgInstruction, FromInstruction, Instruction } from "../../dockerfile/instruction.ts";
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
import type { World } from "./world.ts";

/** Nothing is declared yet but what is always there. `platform`: of the service, where some instruction asks for it. */
export function startGlobals(
  platform: Platform | undefined,
  supplied: ReadonlyMap<string, string>,
): Arguments {
  let globals: Arguments = new Map();
  const automatic = platform === undefined ? [] : platformArguments(platform);
  for (const [name, value] of automatic) globals = declareArgument(globals, name, value, supplied);
  return globals;
}

/** An ARG before the first FROM. */
export function interpretGlobal(
  instruction: ArgInstruction,
  globals: Arguments,
  { buildArgs, escape }: Pick<World<StageScope>, "buildArgs" | "escape">,
): Arguments {
  const declared = { args: globals, env: new Map<string, string>(), inherited: undefined, globals };
  return declareArguments(instruction, declared, buildArgs, escape);
}

/** Starts a stage: from an earlier one with all that it has, else from an image. */
export async function interpretFrom<Stage extends StageScope>(
  from: FromInstruction,
  globals: Arguments,
  world: World<Stage>,
): Promise<Stage> {
  const reference = expandBase(from, lookUp({ args: globals }), world.escape);
  world.requirePlatform(from, globals);
  return (await world.startFromStage(from)) ?? (await world.startFromImage(reference, from));
}

/**
 * What an instruction makes of a stage so far: with the two functions above the one place that knows what each of them
 * means.
 */
export async function interpretInStage<Stage extends StageScope>(
  instruction: Instruction,
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
    case "FROM":
      throw new Error("a FROM starts a stage, and stands in none");
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
