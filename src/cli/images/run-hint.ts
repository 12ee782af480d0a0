import { BoughError } from "../../errors.ts";
import { NoInspectError } from "../../service/images/inspect-routes.ts";
import type { Invocation } from "../command-line/command.ts";
import { commandLine } from "../command-line/documentation.ts";
import { referenceIn } from "../references/image-path.ts";
import { sessionKey } from "../references/session-argument.ts";

/**
 * Runs `action` on the image of `given`, an argument with a path in an image. If the service can't show files of images, the
 * error's hint is that of `hintFor`, whose argument returns the line of a command that does the same in the image.
 */
export async function withRunHint<Result>(
  given: string,
  invocation: Invocation,
  hintFor: (inImage: (...command: string[]) => string) => string,
  action: () => Promise<Result>,
): Promise<Result> {
  try {
    return await action();
  } catch (error) {
    if (!(error instanceof NoInspectError)) throw error;
    const reference = referenceIn(given);
    const start =
      reference === undefined ? ["-S", sessionKey(invocation), "run", "-D"] : ["run", "-D", reference];
    const inImage = (...command: string[]) => commandLine(invocation.globals, [...start, "--", ...command]);
    throw new BoughError(error.message, { hint: hintFor(inImage), cause: error });
  }
}
