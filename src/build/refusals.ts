import type { Dockerfile, Flag, Instruction } from "../dockerfile/instruction.ts";
import { BoughError } from "../errors.ts";

/**
 * Refuses what would silently give another image than Docker's, before anything is run. What makes no difference to
 * the result, such as a cache mount, is warned about where it is performed.
 */
export function refuseUnsupported(dockerfile: Dockerfile): void {
  for (const instruction of dockerfile.instructions) {
    for (const flag of instruction.flags) {
      const reason = refusal(instruction, flag);
      if (reason === undefined) continue;
      throw new BoughError(
        `${dockerfile.path}:${instruction.range.start}: ${instruction.name} --${flag.name}=${flag.value ?? ""} is not supported: ${reason}`,
        { kind: "usage", hint: "Take the flag out, or build this Dockerfile with Docker." },
      );
    }
  }
}

/** The `type` of a `RUN --mount`; `bind` where none is given. */
export function mountType(flag: Flag): string {
  const field = (flag.value ?? "").split(",").find((part) => part.startsWith("type="));
  return field?.slice("type=".length) ?? "bind";
}

function refusal({ name }: Instruction, flag: Flag): string | undefined {
  if (name === "RUN" && flag.name === "mount") {
    const type = mountType(flag);
    if (type === "cache" || type === "tmpfs") return undefined;
    return `the service has no ${type} mounts, and the command would not find its files`;
  }
  if (name === "RUN" && flag.name === "security" && flag.value !== "sandbox") return "the service runs everything in its sandbox";
  if (name === "RUN" && flag.name === "network" && flag.value === "none") return "the service can't cut a command off from the network";
  if (name === "ADD" && flag.name === "unpack" && flag.value !== "false") return "archives are not unpacked; unpack it in a RUN";
  if (name === "ADD" && flag.name === "keep-git-dir") return "git repositories are not fetched; clone it in a RUN";
  return undefined;
}
