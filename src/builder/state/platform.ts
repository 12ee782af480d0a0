import type { Dockerfile, FromInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError, usageError } from "../../errors.ts";
import { parseGoBoolean } from "../../go/boolean.ts";
import { formatPlatform, type Platform, parsePlatform } from "../../image/platform.ts";
import { wording } from "../../messages/wording.ts";

/** The platforms of a build: BUILDPLATFORM and TARGETPLATFORM. */
export interface BuildPlatforms {
  /** The service's platform, whose programs run without emulation. */
  build: Platform;
  /** The platform of each stage whose FROM asks for no other one. */
  target: Platform;
  /** True if the service has images for other platforms than its own. */
  mayDiffer: boolean;
}

/**
 * The automatic arguments about the platforms.
 * https://docs.docker.com/reference/dockerfile/#automatic-platform-args-in-the-global-scope
 */
export function platformArguments({
  build,
  target,
}: Pick<BuildPlatforms, "build" | "target">): [name: string, value: string][] {
  const named = (whose: string, platform: Platform): [string, string][] => [
    [`${whose}PLATFORM`, formatPlatform(platform)],
    [`${whose}OS`, platform.os],
    // Only Windows has one.
    [`${whose}OSVERSION`, ""],
    [`${whose}ARCH`, platform.architecture],
    [`${whose}VARIANT`, platform.variant],
  ];
  return [...named("BUILD", build), ...named("TARGET", target)];
}

/** Returns true if a Dockerfile depends on the platform. Otherwise the service need not be asked for it. */
export function dependsOnPlatform({ instructions }: Dockerfile): boolean {
  return instructions.some((instruction) => {
    const { name, original } = instruction;
    if (name === "FROM" && instruction.platform !== undefined) return true;
    return (name === "FROM" || name === "ARG") && /(BUILD|TARGET)(PLATFORM|OS|ARCH|VARIANT)/.test(original);
  });
}

/** Returns the platform that a FROM asks for; `undefined` if it leaves the choice to the service. */
export function requestedPlatform(
  { platform }: FromInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): Platform | undefined {
  if (platform === undefined) return undefined;
  const text = expandWord(platform, lookup, escape);
  if (text !== "") return parsePlatform(text);
  throw new BoughError(`FROM --platform=${platform}: invalid platform: its variables are empty`, {
    kind: "usage",
    hint: wording`Give the variable a default in an ARG before FROM, or leave ${{ option: "platform" }} out.`,
  });
}

/** The parts of a build that the automatic arguments have. */
export interface BuildTarget {
  /** `undefined` if nothing depends on them. */
  platforms: Pick<BuildPlatforms, "build" | "target"> | undefined;
  /** `--target` or the name of the last stage. */
  stage: string;
}

/** Returns the automatic arguments. They are set in FROM, and in a stage once an ARG declares them. */
export function automaticArguments({ platforms, stage }: BuildTarget): [name: string, value: string][] {
  return [...(platforms === undefined ? [] : platformArguments(platforms)), ["TARGETSTAGE", stage]];
}

export function isAutomaticArgument(name: string): boolean {
  return name === "TARGETSTAGE" || /^(BUILD|TARGET)(PLATFORM|OS|OSVERSION|ARCH|VARIANT)$/.test(name);
}

/** Returns TARGETSTAGE as BuildKit does: a last stage without a name is `default`. */
export function targetStageName({ stages }: Pick<Dockerfile, "stages">, target: string | undefined): string {
  return target ?? stages.at(-1)?.name ?? "default";
}

/** BuildKit's build argument that makes an index even for a single platform. */
export const multiPlatformArgument = "BUILDKIT_MULTI_PLATFORM";

/** Returns true if `multiPlatformArgument` asks for such a result. */
export function asksForPlatforms(buildArgs: ReadonlyMap<string, string>): boolean {
  const value = buildArgs.get(multiPlatformArgument) ?? "";
  const asks = value === "" ? false : parseGoBoolean(value);
  if (asks !== undefined) return asks;
  throw usageError(
    wording`${{ option: "build-arg", value: `${multiPlatformArgument}=${value}` }}: invalid boolean value`,
    "Give 1 or 0, or leave it out.",
  );
}
