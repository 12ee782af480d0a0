import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { commandAsWritten, type ExpandedCommand, expandCommand, numericUser } from "../commands/command.ts";
import { hostFields, hostNameKey, hostsKey, networkFields, networkOf } from "../commands/network.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { RunMounts } from "../mounts/run-mounts.ts";
import { lookUp } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import { environmentFor, type Step } from "./step.ts";

/**
 * Performs a RUN. `ordinal`: the number of layer-making
 * instructions before it.
 */
export async function performRun(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const mounts =
    instruction.mounts.length === 0
      ? undefined
      : await (await import("../mounts/run-mounts.ts")).findMounts(instruction, stage, build);
  return findOrMake(runStepOf(instruction, ordinal, stage, build.asked, mounts), stage, build);
}

function runStepOf(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  asked: AskedBuild,
  mounts?: RunMounts,
): Step {
  const network = networkOf(instruction, asked.commands.network);
  const env = environmentFor(stage, asked);
  const { whole, command } = commandsOf(instruction, env, stage, asked);
  return {
    title: titleOf(instruction),
    line: instruction.range.start,
    ordinal,
    directive: directiveOf(instruction, whole, stage, asked, mounts?.key),
    command,
    script: instruction.command.form === "script" ? { instruction, ...instruction.command } : undefined,
    env,
    cwd: stage.config.WorkingDir,
    network: { ...networkFields(network), ...hostFields(asked.commands.hosts) },
    ...(mounts && { mounts }),
    kind: "run",
  };
}

/** What of a build a RUN's key depends on, beside its stage. */
export type RunKeyInputs = Pick<AskedBuild, "dialect" | "buildArgs"> & {
  commands: Pick<AskedBuild["commands"], "network" | "hosts">;
  dockerfile: Pick<AskedBuild["dockerfile"], "escape">;
};

/** Returns what a RUN adds to the chain hash. `mountsKey`: see `RunMounts`. */
export function runDirective(
  instruction: RunInstruction,
  stage: StageState,
  asked: RunKeyInputs,
  mountsKey: string | undefined,
): string[] {
  const { whole } = commandsOf(instruction, environmentFor(stage, asked), stage, asked);
  return directiveOf(instruction, whole, stage, asked, mountsKey);
}

function directiveOf(
  instruction: RunInstruction,
  command: ExpandedCommand,
  stage: StageState,
  asked: RunKeyInputs,
  mountsKey: string | undefined,
): string[] {
  const network = networkOf(instruction, asked.commands.network);
  const name = [
    network === "default" ? "RUN" : `RUN --network=${network}`,
    ...hostsKey(asked.commands.hosts),
    ...hostNameKey(asked),
    ...(mountsKey === undefined ? [] : [`--mount=${mountsKey}`]),
  ].join(" ");
  return [
    // `su`, which the default dialect needs for a user name, sets variables of its own.
    ...(asked.dialect.looksUpUsers && isUserName(stage.config.User) ? ["without su"] : []),
    name,
    ...wordsOf(command),
  ];
}

/** `whole`: with the values of secrets. */
function commandsOf(
  instruction: RunInstruction,
  env: Readonly<Record<string, string>>,
  stage: StageState,
  { dialect, dockerfile: { escape } }: RunKeyInputs,
): { whole: ExpandedCommand; command: ExpandedCommand } {
  if (dialect.hasDockersVariables) {
    const command = commandAsWritten(instruction, stage.config.Shell ?? []);
    return { whole: command, command };
  }
  const { env: own, args, inherited } = stage;
  const lookup = lookUp({ env: own, args });
  // An ARG without a value: the image may set the name.
  const isEmpty = (name: string) => args.has(name) && lookup(name) === undefined && !inherited?.has(name);
  const secrets = secretsAmong(Object.entries(env));
  return {
    whole: expandCommand(instruction, lookup, escape, undefined, isEmpty),
    command: expandCommand(instruction, lookup, escape, secrets.has, isEmpty),
  };
}

function isUserName(user: string | undefined): boolean {
  return user !== undefined && !user.includes(":") && numericUser(user) === undefined;
}

function wordsOf(command: ExpandedCommand): string[] {
  switch (command.form) {
    case "shell":
      return ["shell", command.line];
    case "exec":
      return ["exec", ...command.words];
    case "none":
      return [];
  }
}
