import { realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import type { BuildContext } from "../../context/build-context.ts";
import type { FromInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import {
  defaultPlatform,
  formatPlatform,
  isSamePlatform,
  type Platform,
  parsePlatform,
} from "../../image/platform.ts";
import { type Message, sentences, wording } from "../../messages/wording.ts";
import { type LocalReference, requireTransport } from "../../service/images/reference.ts";
import type { FoundImage } from "../../service/service.ts";
import { isTag } from "../../service/wire/image.ts";
import { nearest } from "../../suggest.ts";
import { reasonOf } from "../../system-error.ts";
import type { NamedContexts } from "../contexts/named-context.ts";
import type { AskedBuild, BuildJob, BuildServices } from "../job.ts";
import type { ServiceSupport } from "../service-support.ts";
import { type BuildPlatforms, requestedPlatform } from "../state/platform.ts";

/** Returns the name of the stage or image that a FROM names, with variables replaced. Throws if it is empty. */
export function expandBase({ image }: FromInstruction, lookup: Lookup, escape: EscapeCharacter): string {
  const reference = expandWord(image, lookup, escape);
  if (reference !== "") return reference;
  throw new BoughError(`base name (${image}) should not be blank`, {
    kind: "usage",
    hint: wording`Give the variable a default in an ARG before FROM, or a value with ${{ option: "build-arg" }}.`,
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
export async function servicePlatform(supports: Pick<ServiceSupport, "platform">): Promise<Platform> {
  return parsePlatform((await supports.platform()) ?? defaultPlatform);
}

/** Returns the platforms of a build. `target`: `--platform`. */
export async function buildPlatforms(
  target: Platform | undefined,
  supports: Pick<ServiceSupport, "platform" | "platforms">,
): Promise<BuildPlatforms> {
  const build = await servicePlatform(supports);
  return { build, target: target ?? build, mayDiffer: await supports.platforms() };
}

/**
 * Returns the platform of a FROM's image if it is another one than the service's own; throws if the service can't have it.
 * `platforms` is `undefined` only if no FROM has a `--platform`, and the build has none.
 */
export function foreignPlatform(
  instruction: FromInstruction,
  platforms: BuildPlatforms | undefined,
  lookup: Lookup,
  escape: EscapeCharacter,
): Platform | undefined {
  const asked = requestedPlatform(instruction, lookup, escape);
  const wanted = asked ?? platforms?.target;
  if (wanted === undefined || platforms === undefined || isSamePlatform(wanted, platforms.build))
    return undefined;
  requirePossible(
    [wanted],
    platforms,
    `${asked === undefined ? "" : "FROM "}--platform=${formatPlatform(wanted)}`,
  );
  return wanted;
}

/** Rejects if a service can't have an image for one of the platforms. Returns the service's own. */
export async function requirePlatforms(
  wanted: readonly Platform[],
  supports: Pick<ServiceSupport, "platform" | "platforms">,
): Promise<Platform> {
  const { build, mayDiffer } = await buildPlatforms(undefined, supports);
  requirePossible(wanted, { build, mayDiffer });
  return build;
}

/** Throws if a service can't have an image for one of the platforms. `origin`: the option or flag that the message names; by default `--platform`. */
export function requirePossible(
  wanted: readonly Platform[],
  { build, mayDiffer }: Pick<BuildPlatforms, "build" | "mayDiffer">,
  origin?: string,
): void {
  const other = wanted.find((each) => (mayDiffer ? each.os !== "linux" : !isSamePlatform(each, build)));
  if (other === undefined) return;
  const runs = mayDiffer ? "images for Linux" : formatPlatform(build);
  throw new OtherPlatformError(
    wording`${origin ?? wording`${{ option: "platform", value: formatPlatform(other) }}`}: the service runs only ${runs}`,
    {
      kind: "usage",
      hint: wording`Leave ${{ option: "platform" }} out, or build on a service of that platform.`,
    },
  );
}

/** Thrown if a FROM asks for a platform that the service does not run. */
export class OtherPlatformError extends BoughError {
  override readonly name = "OtherPlatformError";
}

/** Returns the error for an id, or a tag that no registry has. */
export function unknownImageError(reference: string, { service, supports }: BuildServices): BoughError {
  return supports.imageList()
    ? new BoughError(`there is no image ${reference}`, {
        hint: wording`${{ command: "images" }} lists those it has.`,
      })
    : new BoughError(
        `${service.address} does not support listing images, so ${reference} cannot be looked up`,
        {
          hint: "Name the image by its UUID. bough remembers the tags that it sets on this machine.",
        },
      );
}

/** Adds to an import's error what the build could start from: the stored image, a stage, or images for other platforms. */
export async function withImportHint(
  error: unknown,
  { reference, platform }: { reference: string; platform: string | undefined },
  stored: FoundImage | undefined,
  { asked, services }: BuildJob,
): Promise<unknown> {
  if (!(error instanceof BoughError) || error.kind !== "failed" || services.signal.aborted) return error;
  const { wording: what, hint } = error;
  const withHints = (hints: readonly (Message | undefined)[], message = what) =>
    new BoughError(message, { hint: sentences(hints), cause: error });
  if (stored !== undefined)
    return withHints([
      hint,
      wording`Without ${{ option: "pull" }} the build starts from image ${stored.uuid}.`,
    ]);
  const { service, supports } = services;
  const others =
    isTag(reference) && (await supports.platforms())
      ? await service.platformsOf(reference).catch(() => [])
      : [];
  const wanted = platform ?? formatPlatform(await servicePlatform(supports));
  if (others.length > 0 && !others.includes(wanted))
    return withHints(
      [`Build ${reference} for ${wanted}, too, or write FROM --platform=${others[0]}.`, hint],
      wording`${reference} has no image for ${wanted}: it has ${others.join(", ")}; ${what}`,
    );
  return withStageHint(error, reference, asked);
}

/** Adds the stage that a misspelt name may mean. */
export function withStageHint(
  error: BoughError,
  reference: string,
  { dockerfile }: Pick<AskedBuild, "dockerfile">,
): BoughError {
  const meant = nearest(
    reference,
    dockerfile.stages.flatMap(({ name }) => name ?? []),
  );
  if (meant === undefined || meant === reference) return error;
  const hint = sentences([`Did you mean the stage ${meant}?`, error.hint]);
  return new BoughError(error.wording, { hint, cause: error });
}

/** The local files that a Dockerfile may use in addition to its context. */
interface LocalPermissions {
  context: BuildContext;
  /** `--allow-local-from`. */
  allowsLocalFrom: boolean;
  /** Layouts on the command line are allowed, wherever they are. */
  contexts: NamedContexts;
}

/**
 * Returns the address of an image that a FROM takes from this machine: an absolute path below the context, with links resolved.
 * The Dockerfile may come from someone other than the person who builds it, so it must not reach other files. Throws BoughError.
 */
export function localBaseUrl(
  { transport, path, suffix, url }: LocalReference,
  { context, allowsLocalFrom, contexts }: LocalPermissions,
): string {
  if (contexts.values().some((named) => named.kind === "image" && named.reference === url)) return url;
  if (!allowsLocalFrom) {
    throw new BoughError(`FROM ${url} is not allowed: it names files of this machine`, {
      kind: "usage",
      hint: wording`If you trust the Dockerfile, build with ${{ option: "allow-local-from" }}; the image must be inside the context.`,
    });
  }
  const found = realPathOf(resolve(context.realPath, path), url);
  if (found !== context.realPath && !found.startsWith(withSeparator(context.realPath))) {
    throw new BoughError(`FROM ${url} leads out of the build context: ${found}`, {
      kind: "usage",
      hint: wording`The path is relative to the context.${wording` Import other images with ${{ command: "images import" }}.`}`,
    });
  }
  if (transport !== "dir" && found.includes(":")) {
    throw new BoughError(
      `FROM ${url}: its path (${found}) contains a colon, which would start an image name`,
      {
        kind: "usage",
        hint: "Build it from a directory without one.",
      },
    );
  }
  return `${transport}:${found}${suffix}`;
}

function realPathOf(path: string, url: string): string {
  try {
    return realpathSync(path);
  } catch (error) {
    throw new BoughError(`FROM ${url}: cannot read ${path}: ${reasonOf(error)}`, {
      kind: "usage",
      cause: error,
      hint: "The path is relative to the context.",
    });
  }
}

function withSeparator(directory: string): string {
  return directory.endsWith(sep) ? directory : `${directory}${sep}`;
}
