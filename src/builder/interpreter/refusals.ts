import type { Dockerfile, Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { DockerfileError } from "../../dockerfile/problems/dockerfile-error.ts";
import type { Problem } from "../../dockerfile/problems/problem.ts";
import type { NetworkPolicy } from "../commands/network.ts";

/** Refuses what would silently give another image than Docker's, before anything is run. */
export function refuseUnsupported(dockerfile: Dockerfile, network: NetworkPolicy): void {
  const problems = findUnsupported(dockerfile, network);
  if (problems.length > 0) throw new DockerfileError(dockerfile, problems);
}

export function findUnsupported({ instructions }: Dockerfile, network: NetworkPolicy): Problem[] {
  return instructions.flatMap((instruction) => {
    const { range } = instruction;
    const problems = refusals(instruction).map((reason) => ({ message: `not supported: ${reason}`, range }));
    const isDenied = instruction.name === "RUN" && instruction.network === "host" && !network.allowsHost;
    return isDenied ? [...problems, { message: hostNetworkDenied, range }] : problems;
  });
}

/** BuildKit's rule: the host's loopback is not for a Dockerfile to open. */
const hostNetworkDenied =
  "--network=host is not allowed: the command line has to grant it, with --allow network.host (or --network host for every RUN)";

export function refusals(instruction: Instruction): string[] {
  switch (instruction.name) {
    case "RUN":
      return runRefusals(instruction);
    case "ADD":
      return [
        ...(instruction.keepGitDir
          ? ["--keep-git-dir: git repositories are not fetched here; clone it in a RUN"]
          : []),
      ];
    default:
      return [];
  }
}

function runRefusals({ security }: RunInstruction): string[] {
  return security === "insecure" ? ["--security=insecure: every RUN runs in a sandbox"] : [];
}
