import type { Dockerfile } from "../../dockerfile/instruction.ts";
import { isAutomaticArgument } from "../bases/automatic-arguments.ts";
import { hostNameArgument } from "../commands/network.ts";
import { predefinedArguments } from "../state/scope.ts";
import type { BuildWarning } from "../state/warnings.ts";

/** BuildKit's argument that decides if a context of a git repository has its `.git`. */
export const keepGitDirectoryArgument = "BUILDKIT_CONTEXT_KEEP_GIT_DIR";

/** Arguments for the build itself, which the Dockerfile need not declare. */
const argumentsOfBuild = new Set([
  keepGitDirectoryArgument,
  hostNameArgument,
  // The times of the result.
  "SOURCE_DATE_EPOCH",
]);

const withoutEffect: Readonly<Record<string, string | undefined>> = {
  BUILDKIT_INLINE_CACHE: "bough shares layers by --cache-to and --cache-from",
  BUILDKIT_SYNTAX: "bough reads Dockerfiles itself, as BuildKit's newest syntax",
};

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
  return [...supplied.keys()]
    .filter((name) => !declared.has(name) && !predefined.has(name) && !isAutomaticArgument(name))
    .filter((name) => !argumentsOfBuild.has(name))
    .map((name) => ({
      rule: "UnusedBuildArg",
      message: `--build-arg ${name} has no effect: ${withoutEffect[name] ?? `no ARG in ${path} declares it`}`,
    }));
}
