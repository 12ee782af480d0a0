import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import { type StepKey, stageKey } from "../cache/step-key.ts";
import { commandAsWritten, type ExpandedCommand, expandCommand, numericUser } from "../commands/command.ts";
import { hostNameKey, hostsKey, networkOf } from "../commands/network.ts";
import type { AskedBuild, BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import type { RunMounts } from "../mounts/run-mounts.ts";
import { variableLookup } from "../state/scope.ts";
import { type StageState, withLayer } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import { environmentFor, type Step } from "./step.ts";

/** Performs a RUN. `ordinal`: the number of layer-making instructions before it. */
export async function performRunInstruction(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
): Promise<StageState> {
  const mounts =
    instruction.mounts.length === 0
      ? undefined
      : await (await import("../mounts/run-mounts.ts")).findMounts(instruction, stage, build);
  return withLayer(stage, await findOrMake(runStep(instruction, ordinal, stage, build.asked, mounts), build));
}

function runStep(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  asked: AskedBuild,
  mounts: RunMounts | undefined,
): Step {
  const env = environmentFor(stage, asked);
  const { whole, command } = commandsOf(instruction, env, stage, asked);
  const step: Step = {
    title: titleOf(instruction),
    line: instruction.range.start,
    ordinal,
    key: keyOf(instruction, whole, stage, asked, mounts),
    sources: mounts?.evictable ?? [],
    history: "run",
    async make(hash, build) {
      const { makeRun } = await import("./make-run.ts");
      return makeRun(hash, step, { instruction, command, env, mounts, stage }, build);
    },
  };
  return step;
}

/** The parts of a build that a RUN's key depends on besides its stage. */
type RunKeyInputs = Pick<AskedBuild, "dialect" | "buildArgs"> & {
  commands: Pick<AskedBuild["commands"], "network" | "hosts">;
  dockerfile: Pick<AskedBuild["dockerfile"], "escape">;
};

/** Returns the key of a RUN. */
export function runKey(
  instruction: RunInstruction,
  stage: StageState,
  asked: RunKeyInputs,
  mounts: StepKey["mounts"],
): StepKey {
  const { whole } = commandsOf(instruction, environmentFor(stage, asked), stage, asked);
  return keyOf(instruction, whole, stage, asked, mounts);
}

function keyOf(
  instruction: RunInstruction,
  command: ExpandedCommand,
  stage: StageState,
  asked: RunKeyInputs,
  mounts: StepKey["mounts"],
): StepKey {
  const network = networkOf(instruction, asked.commands.network);
  const [hosts, hostName] = [hostsKey(asked.commands.hosts), hostNameKey(asked)];
  return {
    ...stageKey(stage),
    // `su`, which the default dialect needs for a user name, sets variables of its own.
    ...(asked.dialect.looksUpUsers && isUserName(stage.config.User) && { userLookUp: "without su" }),
    instruction: "RUN",
    options: [
      ...(network === "default" ? [] : [{ name: "--network", text: `--network=${network}` }]),
      ...(hosts === undefined ? [] : [{ name: "--add-host", text: hosts }]),
      ...(hostName === undefined ? [] : [{ name: "the host name", text: hostName }]),
    ],
    ...(mounts && { mounts }),
    command: wordsOf(command),
  };
}

/** Returns a RUN's command twice: `whole` has the values of secrets, `command` leaves them to the shell. */
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
  const lookup = variableLookup({ env: own, args });
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
