import type { Dockerfile, Instruction, Mount } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import {
  referencesIn,
  referencesOf,
  type VariableReference,
  wordsOfMount,
} from "../../dockerfile/words/references.ts";
import { type Message, wording } from "../../messages/wording.ts";
import { nearest } from "../../suggest.ts";
import { hostNameArgument } from "../commands/network.ts";
import { cacheNamespaceArgument } from "../mounts/mount-spec.ts";
import { isAutomaticArgument, multiPlatformArgument } from "../state/platform.ts";
import { type Arguments, predefinedArguments, type VariableScope } from "../state/scope.ts";
import type { BuildWarning } from "../state/warnings.ts";

/** BuildKit's argument that decides if a context of a git repository has its `.git`. */
export const keepGitDirectoryArgument = "BUILDKIT_CONTEXT_KEEP_GIT_DIR";

/** BuildKit's argument with the options of `# check=`, in place of those of the Dockerfile. */
export const checkArgument = "BUILDKIT_DOCKERFILE_CHECK";

/** Arguments for the build itself, which the Dockerfile need not declare. */
const argumentsOfBuild = new Set([
  keepGitDirectoryArgument,
  hostNameArgument,
  cacheNamespaceArgument,
  checkArgument,
  multiPlatformArgument,
  // It sets the times of the result.
  "SOURCE_DATE_EPOCH",
]);

const withoutEffect: Readonly<Record<string, Message | undefined>> = {
  BUILDKIT_INLINE_CACHE: wording`bough shares layers by ${{ option: "cache-to" }} and ${{ option: "cache-from" }}`,
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
      subject: name,
      message: wording`${{ option: "build-arg" }} ${name} has no effect: ${withoutEffect[name] ?? `no ARG in ${path} declares it`}`,
    }));
}

/** The names that an instruction's words can use. */
interface NamesInScope extends VariableScope {
  /** Declared before the first FROM: usable in a stage only after an ARG repeats them. */
  globals: Arguments;
}

/** A variable that is always set: if an image does not set it, Docker and the engine do. */
const alwaysSet = "PATH";

/** Returns the warnings of Docker's check UndefinedVar: one for each undefined name. */
export function undefinedVariables(
  instruction: Instruction,
  scope: NamesInScope,
  escape: EscapeCharacter,
): BuildWarning[] {
  const { env, args, inherited } = scope;
  const isKnown = (name: string) =>
    name === alwaysSet || env.has(name) || args.has(name) || inherited?.has(name) === true;
  return usesIn(instruction, escape)
    .filter(({ name, isRequired }) => isRequired && !isKnown(name))
    .map(({ name }) => ({
      rule: "UndefinedVar",
      subject: name,
      message: `Usage of undefined variable '$${name}'${adviceOn(name, scope)}`,
    }));
}

/**
 * Returns the variables that an instruction uses, without those that an ARG declares itself before it uses them. Of a RUN, only its
 * mounts: the shell replaces the others.
 */
function usesIn(instruction: Instruction, escape: EscapeCharacter): VariableReference[] {
  if (instruction.name === "RUN") return instruction.mounts.flatMap((mount) => usesInMount(mount, escape));
  if (instruction.name !== "ARG") return referencesOf(instruction, escape);
  const declared = new Set<string>();
  const uses = new Map<string, VariableReference>();
  for (const { key, value = "" } of instruction.declarations) {
    for (const use of referencesIn(value, escape)) if (!declared.has(use.name)) uses.set(use.name, use);
    declared.add(key);
  }
  return [...uses.values()];
}

/** Returns the variables of one mount. As in BuildKit, each mount that uses a variable gets a warning of its own. */
function usesInMount(mount: Mount, escape: EscapeCharacter): VariableReference[] {
  const uses = wordsOfMount(mount).flatMap((word) => referencesIn(word, escape));
  const required = uses.filter(({ isRequired }) => isRequired);
  return [...new Map([...uses, ...required].map((use) => [use.name, use])).values()];
}

/** The number of names beyond which none is suggested: comparing each with all others takes quadratic time. */
const maxCompared = 200;

function adviceOn(name: string, { env, args, inherited, globals }: NamesInScope): string {
  if (globals.has(name) || isAutomaticArgument(name)) return `: declare it in this stage, by ARG ${name}`;
  const scopes = [env, args, globals, ...(inherited === undefined ? [] : [inherited])];
  const count = scopes.reduce((sum, { size }) => sum + size, 0);
  const names = count > maxCompared ? [] : scopes.flatMap((scope) => [...scope.keys()]);
  const meant = nearest(name, [alwaysSet, ...names]);
  if (meant !== undefined) return ` (did you mean $${meant}?)`;
  return inherited === undefined ? ": it is empty unless the base image sets it" : ": it is empty";
}
