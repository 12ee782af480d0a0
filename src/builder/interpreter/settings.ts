import { extend } from "../../columns/persistent-map.ts";
import type { ArgInstruction, EnvInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { declareAsDocker, overrideArguments } from "../docker/variables.ts";
import {
  type Arguments,
  createIsKnown,
  declareArgument,
  type IsKnown,
  type StageScope,
  updateUnknown,
  type VariableScope,
  variableLookup,
} from "../state/scope.ts";
import type { Backend } from "./backend.ts";

/** A stage with the values of its variables. */
export interface Scoped<Stage> {
  stage: Stage;
  lookup: Lookup;
  isKnown: IsKnown;
}

/** Performs an ARG of a stage. */
export function declareArguments<Stage extends StageScope>(
  { declarations }: ArgInstruction,
  { stage, inherited, globals }: { stage: Stage; inherited: StageScope["inherited"]; globals: Arguments },
  { buildArgs, escape, dialect }: Backend<Stage>,
): Stage {
  const given = { buildArgs, escape, globals, laterWins: dialect.hasDockersVariables };
  let declared = stage;
  for (const declaration of declarations) {
    const { args } = declare(declaration, { ...declared, inherited }, given);
    const defaults = buildArgs.has(declaration.key) ? [] : [declaration];
    const unknown = updateUnknown(declared.unknown, defaults, createIsKnown(declared, escape));
    declared = { ...declared, args, unknown };
  }
  return declared;
}

/** Performs an ENV. */
export function setVariables<Stage extends StageScope>(
  instruction: EnvInstruction,
  { stage, lookup, isKnown }: Scoped<Stage>,
  { escape, dialect }: Backend<Stage>,
): Stage {
  const pairs = expandPairs(instruction, lookup, escape);
  for (const [index, { key }] of pairs.entries()) {
    const { key: name = "" } = instruction.pairs[index] ?? {};
    if (isKnown(name)) requireVariableName(key, name);
  }
  const env = extend(
    stage.env,
    pairs.map(({ key, value }) => [key, value]),
  );
  const unknown = updateUnknown(stage.unknown, instruction.pairs, isKnown);
  const args = dialect.hasDockersVariables ? overrideArguments(stage.args, pairs) : stage.args;
  return { ...stage, args, env, unknown };
}

/** Expands the pairs of an ENV. All of them see the values from before the instruction. */
export function expandPairs(
  { pairs }: EnvInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): { key: string; value: string }[] {
  return pairs.map(({ key, value }) => ({
    key: expandWord(key, lookup, escape),
    value: expandWord(value, lookup, escape),
  }));
}

/** Throws if no program could be started with a variable of that name. Docker fails at the next RUN. `word`: as it is written. */
function requireVariableName(name: string, word: string): void {
  if (name !== "" && !name.includes("=")) return;
  const reason = name === "" ? "can not be blank" : `can not contain "=", as in ${JSON.stringify(name)}`;
  throw new BoughError(`ENV names ${reason} (\`${word}\`)`, {
    kind: "usage",
    hint: "Give the variables in it values by ARG or ENV, or write the name itself.",
  });
}

/** The values that an ARG depends on besides the stage's variables. */
interface GivenArguments {
  buildArgs: ReadonlyMap<string, string>;
  escape: EscapeCharacter;
  /** Declared before the first FROM, with the automatic ones: an ARG without a value takes theirs. */
  globals: Arguments;
  /** Docker's precedence: an ARG with a value overrides an earlier ENV, and one without a value changes nothing. */
  laterWins: boolean;
}

/** Performs an ARG before the first FROM. */
export function declareGlobals(
  { declarations }: ArgInstruction,
  globals: Arguments,
  given: Pick<GivenArguments, "buildArgs" | "escape">,
): Arguments {
  return declarations.reduce(
    (args, declaration) =>
      declare(declaration, { env: new Map(), args }, { ...given, globals, laterWins: false }).args,
    globals,
  );
}

/**
 * Performs one declaration of an ARG, before the first FROM or in a stage. Each one sees those before it on its line, as in BuildKit:
 * `ARG A=1 B=$A` means `ARG A=1` and then `ARG B=$A`. Names are literal. `value` in the result: the one that this line sets.
 */
export function declare(
  { key, value }: ArgInstruction["declarations"][number],
  scope: Partial<VariableScope> & Pick<VariableScope, "args">,
  { buildArgs, escape, globals, laterWins }: GivenArguments,
): { args: Arguments; value: string | undefined } {
  // A default that `--build-arg` replaces is not expanded, so `${NAME:?}` in it is not an error, as in BuildKit.
  const isExpanded = value !== undefined && !buildArgs.has(key);
  const expanded = isExpanded ? expandWord(value, variableLookup(scope), escape) : value;
  const declareName = laterWins ? declareAsDocker : declareArgument;
  return {
    args: declareName(scope.args, key, expanded, buildArgs, globals),
    value: buildArgs.get(key) ?? expanded ?? globals.get(key)?.value,
  };
}
