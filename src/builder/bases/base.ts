import type { FromInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import { requireTransport } from "../../service/images/reference.ts";
import type { ImageService } from "../../service/service.ts";
import {
  defaultPlatform,
  formatPlatform,
  isSamePlatform,
  type Platform,
  parsePlatform,
  wantedPlatform,
} from "./platform.ts";

/** What a FROM names: an earlier stage or an image. */
export function expandBase({ image }: FromInstruction, lookup: Lookup, escape: EscapeCharacter): string {
  const reference = expandWord(image, lookup, escape);
  if (reference !== "") return reference;
  throw new BoughError(`base name (${image}) should not be blank`, {
    kind: "usage",
    hint: "Give the variable a default in an ARG before FROM, or a value with --build-arg.",
  });
}

/** Throws for what names no image that a build could start from, wherever it is. */
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

/** The name of the image without files; also the service's extension, and what it imports such an image from. */
export const scratch = "scratch";

/** Rejects with the error of `requireBaseName`; the service is asked only where it matters. */
export async function requireBase(
  reference: string,
  { capabilities }: Pick<ImageService, "capabilities">,
): Promise<void> {
  const startsFromScratch = reference === scratch && (await capabilities.extensions()).has(scratch);
  requireBaseName(reference, { startsFromScratch });
}

/** The platform that a service runs. */
export async function platformOf({ capabilities }: Pick<ImageService, "capabilities">): Promise<Platform> {
  return parsePlatform((await capabilities.platform()) ?? defaultPlatform);
}

/** `available`: what the service runs; `undefined` only where no FROM has a `--platform`. */
export function requirePlatform(
  instruction: FromInstruction,
  available: Platform | undefined,
  lookup: Lookup,
  escape: EscapeCharacter,
): void {
  const wanted = wantedPlatform(instruction, lookup, escape);
  if (wanted === undefined || available === undefined || isSamePlatform(wanted, available)) return;
  const [want, have] = [formatPlatform(wanted), formatPlatform(available)];
  throw new OtherPlatformError(`FROM --platform=${want}: only ${have} is run here`, {
    kind: "usage",
    hint: "Leave --platform out, or build on a service of that platform.",
  });
}

/** A FROM asks for a platform that the service does not run. */
export class OtherPlatformError extends BoughError {
  override readonly name = "OtherPlatformError";
}
