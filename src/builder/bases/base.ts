import type { FromInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { requireTransport } from "../../service/images/reference.ts";
import type { ServiceSupport } from "../service-support.ts";
import {
  defaultPlatform,
  formatPlatform,
  isSamePlatform,
  type Platform,
  parsePlatform,
  wantedPlatform,
} from "../state/platform.ts";

/** Returns the name of the stage or image that a FROM names, with variables replaced. Throws if it is empty. */
export function expandBase({ image }: FromInstruction, lookup: Lookup, escape: EscapeCharacter): string {
  const reference = expandWord(image, lookup, escape);
  if (reference !== "") return reference;
  throw new BoughError(`base name (${image}) should not be blank`, {
    kind: "usage",
    hint: "Give the variable a default in an ARG before FROM, or a value with --build-arg.",
  });
}

/** Throws if no service can start a build from an image of this name. */
export function requireBaseName(
  reference: string,
  { startsFromScratch }: { startsFromScratch: boolean },
): void {
  requireTransport(reference);
  if (reference !== scratch || startsFromScratch) return;
  throw new BoughError("FROM scratch is not supported: the service starts every image from another one", {
    kind: "usage",
    hint: "Start from a small image, such as busybox.",
  });
}

/** The name of the image without files, and the URL to import it from. */
export const scratch = "scratch";

/** Rejects with the error of `requireBaseName`. Asks the service only if the name is `scratch`. */
export async function requireBase(
  reference: string,
  supports: Pick<ServiceSupport, "scratch">,
): Promise<void> {
  const startsFromScratch = reference === scratch && (await supports.scratch());
  requireBaseName(reference, { startsFromScratch });
}

/** Returns the platform that a service runs. */
export async function platformOf(supports: Pick<ServiceSupport, "platform">): Promise<Platform> {
  return parsePlatform((await supports.platform()) ?? defaultPlatform);
}

/** Throws if a FROM asks for another platform than `available`, which is `undefined` only if no FROM has a `--platform`. */
export function requirePlatform(
  instruction: FromInstruction,
  available: Platform | undefined,
  lookup: Lookup,
  escape: EscapeCharacter,
): void {
  const wanted = wantedPlatform(instruction, lookup, escape);
  if (wanted === undefined || available === undefined || isSamePlatform(wanted, available)) return;
  const [want, have] = [formatPlatform(wanted), formatPlatform(available)];
  throw new OtherPlatformError(`FROM --platform=${want}: the service runs only ${have}`, {
    kind: "usage",
    hint: "Leave --platform out, or build on a service of that platform.",
  });
}

/** Thrown if a FROM asks for a platform that the service does not run. */
export class OtherPlatformError extends BoughError {
  override readonly name = "OtherPlatformError";
}
