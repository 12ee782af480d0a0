import { posix } from "node:path";
import { BoughError, usageError } from "../../errors.ts";
import { NoInspectError } from "../../service/images/inspect-routes.ts";
import type { Surroundings } from "../command-line/command.ts";
import { commandLine } from "../command-line/globals.ts";
import type { Connection } from "../service/connection.ts";
import { requireSessionImage, resolveImageArgument } from "./image-argument.ts";
import { sessionKey } from "./session-argument.ts";

/** A path in an image, as `ls`, `cat` and `cp` take it. */
export interface ImagePath {
  image: string;
  /** Absolute. */
  path: string;
  /** True if the path ends with `/.`: it means the directory's contents, not the directory. */
  meansContents: boolean;
}

/** Resolves `IMAGE:/path`, or a path alone in the session's image and directory. No tag contains `:/`. */
export async function resolveImagePath(
  given: string,
  key: string,
  connection: Connection,
): Promise<ImagePath> {
  const colon = given.indexOf(":/");
  if (colon < 0 && !given.startsWith("/") && given.includes(":"))
    throw usageError(
      `${JSON.stringify(given)} names an image, but no path in it`,
      "Write IMAGE:/PATH, as in app:dev:/etc. A path in the session's image that has a colon must begin with /.",
    );
  const path = colon < 0 ? given : given.slice(colon + 1);
  const reference = referenceIn(given);
  const { directory } = reference === undefined ? connection.store.surroundings.get(key) : {};
  return {
    image:
      reference === undefined
        ? requireSessionImage(connection.store, key)
        : await resolveImageArgument(connection, reference),
    path: posix.resolve("/", directory ?? "/", path),
    meansContents: /(^|\/)\.$/.test(path),
  };
}

/** Returns the image of such an argument; `undefined` for the session's. */
function referenceIn(given: string): string | undefined {
  const colon = given.indexOf(":/");
  return colon < 0 ? undefined : given.slice(0, colon);
}

/** The description of such arguments in help texts. */
export const pathDescription = "IMAGE:/PATH, or a path in the session's image";

/**
 * Runs `action` on the image of `given`, an argument with a path in an image. If the service can't show files of images, the error has
 * the hint of `hintFor`, whose argument returns the command line of a command in the image.
 */
export async function withRunHint<Result>(
  given: string,
  invocation: Surroundings,
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
    throw new BoughError(error.wording, { hint: hintFor(inImage), cause: error });
  }
}
