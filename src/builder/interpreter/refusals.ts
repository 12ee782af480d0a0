import type { Dockerfile, Instruction } from "../../dockerfile/instruction.ts";
import { DockerfileError, type Problem } from "../../dockerfile/problems/problem.ts";
import type { NetworkPolicy } from "../commands/network.ts";

/** Throws, before anything is run, for instructions that would silently make a different image than Docker's. */
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

/** BuildKit's rule: a Dockerfile alone may not open the host's loopback. */
const hostNetworkDenied =
  "--network=host is not allowed: the command line has to grant it, with --allow network.host (or --network host for every RUN)";

export function refusals(instruction: Instruction): string[] {
  const isInsecure = instruction.name === "RUN" && instruction.security === "insecure";
  return isInsecure ? ["--security=insecure: every RUN runs in a sandbox"] : [];
}
