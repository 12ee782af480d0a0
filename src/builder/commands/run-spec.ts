import type { Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { secretsAmong } from "../../dockerfile/secrets.ts";
import type { ImageCopy, InstanceRequest } from "../../service/wire/instance.ts";
import { proxiesAsDocker } from "../docker/variables.ts";
import { titleOf } from "../interpreter/location.ts";
import { environmentOf, lookUp, predefinedArguments } from "../interpreter/scope.ts";
import type { StageState } from "../interpreter/state.ts";
import type { BuildJob } from "../job.ts";
import type { RunMounts } from "../mounts/run-mounts.ts";
import {
  commandAsWritten,
  type ExpandedCommand,
  expandCommand,
  numericUser,
  processFields,
  quote,
} from "./command.ts";
import {
  hostFields,
  hostNameKey,
  hostsKey,
  networkFields,
  networkOf,
  ownOperationNetwork,
} from "./network.ts";

/**
 * `run`: a RUN. `files`: places files without a command, so that it depends on them and on the layer below alone. `commit`: a
 * command of bough's own for files that no RUN has taken over, on a service that makes no layer without one.
 */
export type StepKind = "run" | "files" | "commit";

/** A step that makes a layer. Its request, chain hash, explanation and log line are all derived from this. */
export interface RunSpec {
  /** The command's title, for the log. */
  title: string;
  /** The line in the Dockerfile. */
  line: number;
  /** The step's number among those that make a layer. */
  ordinal: number;
  /** The directive in the chain hash. It has the values of secrets, so that a changed secret makes another step. */
  directive: readonly string[];
  /** The command as sent. References to secrets are left to the shell, which has them in its environment. */
  command: ExpandedCommand;
  env: Record<string, string>;
  cwd: string;
  network: Pick<InstanceRequest, "networking" | "extra_hosts">;
  /** Copies from other images, placed after the staged files. Only with the extension `copies`. */
  copies?: () => Promise<ImageCopy[]>;
  /** The mounts of `--mount`, which exist while the command runs. */
  mounts?: RunMounts;
  /** See `StepKind`. */
  kind: StepKind;
}

export function runSpecOf(
  instruction: RunInstruction,
  ordinal: number,
  stage: StageState,
  build: BuildJob,
  mounts?: RunMounts,
): RunSpec {
  const network = networkOf(instruction, build.network);
  const name = [
    network === "default" ? "RUN" : `RUN --network=${network}`,
    ...hostsKey(build.hosts),
    ...hostNameKey(build),
    ...(mounts === undefined ? [] : [`--mount=${mounts.key}`]),
  ].join(" ");
  const env = environmentFor(stage, build);
  const { whole, command } = commandsOf(instruction, env, stage, build);
  return {
    title: titleOf(instruction),
    line: instruction.range.start,
    ordinal,
    directive: [
      // `su`, which the default mode needs for a user name, sets variables of its own.
      ...(build.mode === "docker" && isUserName(stage.config.User) ? ["without su"] : []),
      name,
      ...wordsOf(whole),
    ],
    command,
    env,
    cwd: stage.config.WorkingDir,
    network: { ...networkFields(network), ...hostFields(build.hosts) },
    ...(mounts && { mounts }),
    kind: "run",
  };
}

function environmentFor(stage: StageState, { mode, buildArgs }: BuildJob): Record<string, string> {
  const proxies = predefinedArguments(buildArgs);
  return mode === "docker"
    ? { ...environmentOf(stage, new Map()), ...proxiesAsDocker(proxies) }
    : environmentOf(stage, proxies);
}

/** `whole`: with the values of secrets. */
function commandsOf(
  instruction: RunInstruction,
  env: Readonly<Record<string, string>>,
  stage: StageState,
  { mode, dockerfile: { escape } }: BuildJob,
): { whole: ExpandedCommand; command: ExpandedCommand } {
  if (mode === "docker") {
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

/** Returns a command that makes the directory of a pending WORKDIR, or does nothing. */
export function commitSpec(
  place: Pick<RunSpec, "line" | "ordinal">,
  stage: StageState,
  build: BuildJob,
): RunSpec {
  const command = stage.workdirIsPending ? `mkdir -p ${quote(stage.config.WorkingDir)}` : ":";
  return {
    ...place,
    title: stage.staged.size === 0 ? "(the WORKDIR)" : "(the staged files)",
    directive: ["RUN", "shell", command],
    command: { form: "shell", line: command },
    env: environmentFor(stage, build),
    cwd: "/",
    network: ownOperationNetwork(build.network),
    kind: "commit",
  };
}

/** Returns the step of an instruction whose files have been found and need no command. */
export function filesSpec(
  instruction: Instruction,
  ordinal: number,
  build: BuildJob,
  given: Partial<Pick<RunSpec, "directive" | "copies">> = {},
): RunSpec {
  return {
    title: titleOf(instruction),
    line: instruction.range.start,
    ordinal,
    directive: ["files"],
    ...given,
    command: { form: "none" },
    env: {},
    cwd: "/",
    network: ownOperationNetwork(build.network),
    kind: "files",
  };
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

/** `user`: in the form that a request can carry; see `resolveUser`. */
export function requestOf(
  { command, env, cwd, network }: RunSpec,
  user: string | undefined,
  {
    image,
    ...placed
  }: Pick<InstanceRequest, "image" | "files" | "lent_files" | "entries" | "copies" | "timeout">,
): InstanceRequest {
  const process = processFields(command, user);
  return { image, ...process, env, cwd, ...placed, disposable: false, ...network };
}
