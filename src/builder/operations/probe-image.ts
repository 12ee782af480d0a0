import type { OperationOutcome } from "../../service/service.ts";
import { ownOperationNetwork } from "../commands/network.ts";
import type { BuildJob } from "../job.ts";
import type { StageState } from "../state/state.ts";
import { retryAfterEviction } from "./evicted-image.ts";
import { finishOperations } from "./operation.ts";
import { runOperation } from "./run-operation.ts";

/** A program whose output tells something about an image, for a service that reports little of it. */
interface Probe {
  command: string;
  args: readonly string[];
  /** The purpose, as the log shows it. */
  title: string;
  /** The base image, if images made of it have the same output: then one probe serves all of them. */
  about?: string;
}

/** Runs a program in a stage's image and discards its changes. */
export async function probeImage(
  { command, args, title, about }: Probe,
  { layer }: Pick<StageState, "layer">,
  build: BuildJob,
): Promise<OperationOutcome> {
  const words = [command, ...args].join(" ");
  const step = {
    key: `${words} ${about ?? layer.image}`,
    title: `(${title})`,
    showsOutput: false,
  };
  const run = () =>
    runOperation(
      {
        image: layer.image,
        command,
        args: [...args],
        shell: false,
        env: {},
        cwd: "/",
        files: {},
        timeout: build.asked.commands.timeoutSeconds,
        disposable: true,
        ...ownOperationNetwork(build.asked.commands.network),
      },
      step,
      build,
    );
  const outcome = await build.shared.probes(step.key, () =>
    retryAfterEviction({ layer, staged: new Map() }, build, run),
  );
  finishOperations([step.key], build);
  return outcome;
}

/** Returns the exit code of a program that ran to its end; otherwise `undefined`. */
export function exitCodeOf({ status, timedOut, exitCode }: OperationOutcome): number | undefined {
  return status === "SUCCESS" && !timedOut ? (exitCode ?? 0) : undefined;
}

/** Returns true for the exit codes of a shell that mean "not executable" and "not found". */
export function cannotBeStarted(outcome: OperationOutcome): boolean {
  return [126, 127].includes(exitCodeOf(outcome) ?? 0);
}

export function describeEnd(outcome: OperationOutcome): string {
  if (outcome.timedOut) return "it was stopped by its timeout";
  if (outcome.status === "SUCCESS") return `exit code ${outcome.exitCode}`;
  return outcome.error ?? `it ended as ${outcome.status}`;
}
