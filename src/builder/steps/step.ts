import type { Dockerfile, Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import type { ImageCopy, InstanceRequest } from "../../service/wire/instance.ts";
import { type ExpandedCommand, processFields } from "../commands/command.ts";
import type { Dialect } from "../dialect.ts";
import { proxiesAsDocker } from "../docker/variables.ts";
import type { AskedBuild } from "../job.ts";
import type { RunMounts } from "../mounts/run-mounts.ts";
import type { LosableImage } from "../state/layer.ts";
import { environmentOf, predefinedArguments } from "../state/scope.ts";
import type { StageState } from "../state/state.ts";

/**
 * `run`: a RUN. `files`: places files without a command, so that it depends on them and on the layer below alone. `commit`: a
 * command of bough's own for files that no RUN has taken over, on a service that makes no layer without one.
 */
type StepKind = "run" | "files" | "commit";

interface StepSource {
  /** The stage or image, as `--from` names it. */
  from: string;
  /** The chain hash of the stage or image. */
  hash: string;
  /** The first of the copied paths whose files are others than in the copy before, if known. */
  changed: string | undefined;
}

/** A step that makes a layer. Its request, chain hash, explanation and log line are all derived from this. */
export interface Step {
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
  /** The script of a here-document that `command` runs, if that is the whole RUN. */
  script?: { instruction: RunInstruction; name: string; content: string } | undefined;
  env: Record<string, string>;
  cwd: string;
  network: Pick<InstanceRequest, "networking" | "extra_hosts">;
  /** Copies from other images, placed after the staged files. Only with the extension `copies`. */
  copies?: () => Promise<ImageCopy[]>;
  /** The source of a `COPY --from`, for the explanation. */
  source?: StepSource;
  /** Layers that the step is made of beside the stage's and those of mounts. */
  sources?: readonly LosableImage[];
  /** The mounts of `--mount`, which exist while the command runs. */
  mounts?: RunMounts;
  /** See `StepKind`. */
  kind: StepKind;
}

/** `user`: in the form that a request can carry; see `resolveUser`. */
export function requestOf(
  { command, env, cwd, network }: Step,
  user: string | undefined,
  {
    image,
    ...placed
  }: Pick<
    InstanceRequest,
    "image" | "files" | "host_files" | "earlier_image" | "entries" | "copies" | "timeout"
  >,
): InstanceRequest {
  const process = processFields(command, user);
  return { image, ...process, env, cwd, ...placed, disposable: false, ...network };
}

/** Returns the instructions of a Dockerfile that make a layer where the service makes layers of files, in order. */
export function layerMakers({ instructions }: Dockerfile, dialect: Dialect): Instruction[] {
  return instructions.filter(
    (instruction) =>
      ["ADD", "RUN", "WORKDIR"].includes(instruction.name) ||
      (instruction.name === "COPY" && (dialect.copiesFromImages || instruction.from === undefined)),
  );
}

/** Returns the variables of a command of this stage. */
export function environmentFor(
  stage: StageState,
  { dialect, buildArgs }: Pick<AskedBuild, "dialect" | "buildArgs">,
): Record<string, string> {
  const proxies = predefinedArguments(buildArgs);
  return dialect.hasDockersVariables
    ? { ...environmentOf(stage, new Map()), ...proxiesAsDocker(proxies) }
    : environmentOf(stage, proxies);
}
