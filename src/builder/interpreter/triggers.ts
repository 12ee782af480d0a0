/** ONBUILD triggers: instructions that an image has for the stages that start from it. */
import type { FromInstruction, Instruction } from "../../dockerfile/instruction.ts";
import { parseDockerfile } from "../../dockerfile/parse.ts";
import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../../image/config.ts";
import { wording } from "../../messages/wording.ts";
import { refusals } from "./refusals.ts";

/** Returns the triggers of a base image, with the range of the FROM. */
export function imageTriggers(
  reference: string,
  { OnBuild = [] }: ImageConfig,
  { range }: FromInstruction,
): Instruction[] {
  return OnBuild.map((text) => {
    const [, onbuild, ...others] = parse(text, reference).instructions;
    if (onbuild?.name !== "ONBUILD" || onbuild.trigger === undefined || others.length > 0) {
      throw new BoughError(`${reference}: its trigger ONBUILD ${text} should be a single instruction`, {
        hint: "Only the image's own Dockerfile can change that.",
      });
    }
    return { ...onbuild.trigger, range };
  });
}

/** Parses a trigger after ONBUILD, so that the parser applies Docker's restrictions: no FROM, MAINTAINER or other ONBUILD. */
function parse(text: string, reference: string) {
  try {
    return parseDockerfile(`FROM scratch\nONBUILD ${text}\n`, reference);
  } catch (error) {
    if (!(error instanceof BoughError)) throw error;
    throw new BoughError(wording`${reference}: its trigger ONBUILD ${text} is not valid: ${error.wording}`, {
      cause: error,
    });
  }
}

/** Runs a trigger. Its errors name it and the image or stage that it comes from. */
export async function withTrigger<Stage>(
  trigger: Instruction,
  reference: string,
  action: () => Promise<Stage>,
): Promise<Stage> {
  try {
    refuse(trigger);
    return await action();
  } catch (error) {
    if (!(error instanceof BoughError) || error.kind === "interrupted") throw error;
    const { kind, hint } = error;
    throw new BoughError(wording`${error.wording} (ONBUILD ${trigger.title} of ${reference})`, {
      ...{ kind, cause: error },
      hint,
    });
  }
}

/** Throws for a trigger that would be refused in the Dockerfile itself. */
function refuse(trigger: Instruction): void {
  const reasons = refusals(trigger).map((reason) => `not supported: ${reason}`);
  if (trigger.name === "RUN" && trigger.network === "host")
    reasons.push("--network=host is not allowed in a trigger");
  const [reason] = reasons;
  if (reason !== undefined) throw new BoughError(reason, { kind: "usage" });
}
