import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { isPlatformArgument } from "../bases/platform.ts";
import { predefinedArguments } from "./scope.ts";
import type { BuildWarning } from "./warnings.ts";

/** BuildKit's: whether a context of a git repository has its `.git`. */
export const keepGitDirectoryArgument = "BUILDKIT_CONTEXT_KEEP_GIT_DIR";

/** `--build-arg` of names that nothing in the Dockerfile asks for. */
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
      .filter((name) => !declared.has(name) && !predefined.has(name) && !isPlatformArgument(name))
      // What it says of a build, of which no more is known here, is not for the Dockerfile.
      .filter((name) => name !== keepGitDirectoryArgument)
      .map((name) => ({
        rule: "UnusedBuildArg",
        message: `--build-arg ${name} has no effect: no ARG in ${path} declares it`,
      }))
  );
}
