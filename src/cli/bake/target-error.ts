import { BoughError } from "../../errors.ts";
import { type OptionTerm, withWords, wording } from "../../messages/wording.ts";
import type { ResolvedTarget } from "./resolve.ts";

/** Runs `action`, and adds the target's name and origin to errors. */
export function inTarget<Result>(
  target: Pick<ResolvedTarget, "name" | "origin">,
  action: () => Result,
): Result {
  try {
    return action();
  } catch (error) {
    throw withTarget(error, target);
  }
}

/** An error that says which target it is about. */
class TargetError extends BoughError {
  override readonly name = "TargetError";
}

/** Returns an error that says which target it is about. Others than a BoughError stay as they are. */
export function withTarget(
  error: unknown,
  { name, origin }: Pick<ResolvedTarget, "name" | "origin">,
): unknown {
  if (error instanceof TargetError || !(error instanceof BoughError) || error.kind === "interrupted")
    return error;
  const { kind, hint } = error;
  return new TargetError(wording`target ${name} (${origin}): ${withWords(error.wording, fieldFor)}`, {
    kind,
    hint: hint && withWords(hint, fieldFor),
    cause: error,
  });
}

/** Returns the field of a target that corresponds to an option of `bough build`, if bake lacks the option. */
function fieldFor({ option, value }: OptionTerm): string | undefined {
  const field = Object.hasOwn(fields, option) ? fields[option] : undefined;
  return field === undefined || value === undefined ? field : `${field} ${value}`;
}

const fields: Readonly<Record<string, string>> = {
  "add-host": "extra-hosts",
  annotation: "annotations",
  "build-arg": "args",
  "build-context": "contexts",
  "cache-from": "cache-from",
  "cache-to": "cache-to",
  dockerfile: "dockerfile",
  label: "labels",
  network: "network",
  "no-cache-filter": "no-cache-filter",
  output: "output",
  platform: "platforms",
  secret: "secret",
  "shm-size": "shm-size",
  ssh: "ssh",
  tag: "tags",
  target: "target",
  ulimit: "ulimits",
};
