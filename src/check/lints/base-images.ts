import { staticGlobals } from "../../builder/graph/stage-references.ts";
import { type Arguments, lookUp } from "../../builder/state/scope.ts";
import type { Dockerfile, FromInstruction, Stage } from "../../dockerfile/instruction.ts";
import { referencesIn } from "../../dockerfile/words/references.ts";
import { expandWord } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { parsePlatform } from "../../image/platform.ts";
import { parseReference } from "../../service/images/reference.ts";
import { nearest } from "../../suggest.ts";
import { type Finding, warn } from "../finding.ts";

/** FromPlatformFlagConstDisallowed, InvalidDefaultArgInFrom, RedundantTargetPlatform, UndefinedArgInFrom. */
export function lintBaseImages(dockerfile: Dockerfile, stages: readonly Stage[]): Finding[] {
  // The platform makes no difference here.
  const defaults = staticGlobals(dockerfile, { buildArgs: new Map(), target: undefined });
  return stages.flatMap(({ from }) => [
    ...undeclared(from, defaults, dockerfile),
    ...invalidDefault(from, defaults, dockerfile),
    ...needlessPlatform(from),
  ]);
}

function undeclared(from: FromInstruction, declared: Arguments, { escape }: Dockerfile): Finding[] {
  const words = [from.image, from.platform ?? ""];
  const names = words.flatMap((word) => referencesIn(word, escape)).filter(({ isRequired }) => isRequired);
  return [...new Set(names.map(({ name }) => name))]
    .filter((name) => !declared.has(name))
    .map((name) => {
      const meant = nearest(name, declared.keys());
      const suggestion = meant === undefined ? "" : ` (did you mean ${meant}?)`;
      return warn("UndefinedArgInFrom", `FROM argument '${name}' is not declared${suggestion}`, from);
    });
}

function invalidDefault(from: FromInstruction, defaults: Arguments, { escape }: Dockerfile): Finding[] {
  if (!from.image.includes("$")) return [];
  const isValid = orElse(false, () => {
    parseReference(expandWord(from.image, lookUp({ args: defaults }), escape));
    return true;
  });
  if (isValid) return [];
  const message = `Default value for ARG ${from.image} results in empty or invalid base image name`;
  return [warn("InvalidDefaultArgInFrom", message, from)];
}

function needlessPlatform(from: FromInstruction): Finding[] {
  const { platform, stageName = "" } = from;
  if (platform === undefined) return [];
  // A default (`:-`) makes no difference: the variable is always set.
  if (/^\$(TARGETPLATFORM|\{TARGETPLATFORM(:?-[^}]*)?\})$/.test(platform)) {
    const message = `Setting platform to predefined ${platform} in FROM is redundant as this is the default behavior`;
    return [warn("RedundantTargetPlatform", message, from)];
  }
  const constant = platform.includes("$") ? undefined : orElse(undefined, () => parsePlatform(platform));
  // A stage that is named after its platform is meant for that platform.
  if (constant === undefined) return [];
  if (stageName.includes(constant.os) || stageName.includes(constant.architecture)) return [];
  const message = `FROM --platform flag should not use constant value "${platform}"`;
  return [warn("FromPlatformFlagConstDisallowed", message, from)];
}

/** Returns `otherwise` if the action throws a BoughError: the plan reports invalid words. */
function orElse<Result>(otherwise: Result, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    if (error instanceof BoughError) return otherwise;
    throw error;
  }
}
