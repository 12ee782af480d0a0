import { DockerfileError } from "../dockerfile/dockerfile-error.ts";
import type { Dockerfile, Instruction, Mount, RunInstruction } from "../dockerfile/instruction.ts";
import type { Problem } from "../dockerfile/problem.ts";

/**
 * Refuses what would silently give another image than Docker's, before anything is run. What makes no difference to
 * the result, such as a cache mount, is warned about where it is performed.
 */
export function refuseUnsupported(dockerfile: Dockerfile): void {
  const problems = findUnsupported(dockerfile);
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}

export function findUnsupported({ instructions }: Dockerfile): Problem[] {
  return instructions.flatMap((instruction) =>
    refusals(instruction).map((reason) => ({
      message: `not supported: ${reason}`,
      range: instruction.range,
    })),
  );
}

function refusals(instruction: Instruction): string[] {
  switch (instruction.name) {
    case "RUN":
      return runRefusals(instruction);
    case "ADD":
      return [
        ...(instruction.unpack === true
          ? ["--unpack: archives are not unpacked here; unpack it in a RUN"]
          : []),
        ...(instruction.keepGitDir
          ? ["--keep-git-dir: git repositories are not fetched here; clone it in a RUN"]
          : []),
      ];
    default:
      return [];
  }
}

/** A mount that is empty to begin with, and whose content nobody is meant to keep. */
export function canBeLeftOut({ type }: Mount): boolean {
  return type === "cache" || type === "tmpfs";
}

function runRefusals({ mounts, flags }: RunInstruction): string[] {
  const flagValue = (name: string) => flags.find((flag) => flag.name === name)?.value;
  const found = mounts
    .filter((mount) => !canBeLeftOut(mount))
    .map(
      ({ type }) =>
        `--mount=type=${type}: the service has no such mounts, and the command would miss its files`,
    );
  if (flagValue("security") === "insecure")
    found.push("--security=insecure: the service runs everything in its sandbox");
  if (flagValue("network") === "none")
    found.push("--network=none: the service can't cut a command off from the network");
  return found;
}
