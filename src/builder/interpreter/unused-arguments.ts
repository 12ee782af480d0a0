import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { isAutomaticArgument } from "../bases/automatic-arguments.ts";
import { predefinedArguments } from "./scope.ts";
import type { BuildWarning } from "./warnings.ts";

/** BuildKit's argument that decides if a context of a git repository has its `.git`. */
export const keepGitDirectoryArgument = "BUILDKIT_CONTEXT_KEEP_GIT_DIR";

/** Warns of each `--build-arg` that the Dockerfile does not declare. */
export function unusedBuildArgs(
  { instructions, path }: Dockerfile,
  supplied: ReadonlyMap<string, string>,
): BuildWarning[] {
  const declared = new Set(
    instructions.flatMap((instruction) =>
      instruction.name === "ARG" ? instruction.declarations.map(({ key }) => key) : [],
    ),
  );
  const predefined = predefinedArguments(supplied);
  return (
    [...supplied.keys()]
      .filter((name) => !declared.has(name) && !predefined.has(name) && !isAutomaticArgument(name))
      // This argument concerns the context, not the Dockerfile.
      .filter((name) => name !== keepGitDirectoryArgument)
      .map((name) => ({
        rule: "UnusedBuildArg",
        message: `--build-arg ${name} has no effect: no ARG in ${path} declares it`,
      }))
  );
}
