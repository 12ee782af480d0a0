import type { Dockerfile, FromInstruction } from "../../dockerfile/instruction.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";

/** The platform that an image runs on, in the terms of the OCI image specification. */
export interface Platform {
  os: string;
  architecture: string;
  /** Empty for the architecture's usual variant. */
  variant: string;
}

/** The platform of a service that does not report one: the API has no field for it, and all known services run this. */
export const defaultPlatform = "linux/amd64";

/** Parses `linux/amd64`, `linux/arm/v7` or a bare architecture, spelt as containerd spells it. Throws for anything else. */
export function parsePlatform(text: string): Platform {
  const parts = text.toLowerCase().split("/");
  if (parts.length > 3 || !parts.every((part) => /^[a-z0-9._-]+$/.test(part))) throw invalid(text);
  if (parts.length === 1) {
    if (systems.includes(text.toLowerCase())) throw invalid(text);
    parts.unshift("linux");
  }
  const [os = "", name = "", given] = parts;
  const [architecture = "", implied = ""] = (aliases[name] ?? name).split("/");
  const variant = given ?? implied;
  const isUsual = variant === usualVariants[architecture];
  return { os: os === "macos" ? "darwin" : os, architecture, variant: isUsual ? "" : variant };
}

export function formatPlatform({ os, architecture, variant }: Platform): string {
  return [os, architecture, ...(variant === "" ? [] : [variant])].join("/");
}

/**
 * The automatic arguments about the platform. A build runs on its target platform, so BUILD and TARGET are the same.
 * https://docs.docker.com/reference/dockerfile/#automatic-platform-args-in-the-global-scope
 */
export function platformArguments(platform: Platform): [name: string, value: string][] {
  const values = {
    PLATFORM: formatPlatform(platform),
    OS: platform.os,
    // Only Windows has one.
    OSVERSION: "",
    ARCH: platform.architecture,
    VARIANT: platform.variant,
  };
  return ["BUILD", "TARGET"].flatMap((whose) =>
    Object.entries(values).map(([what, value]): [string, string] => [whose + what, value]),
  );
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
export function wantedPlatform(
  { platform }: FromInstruction,
  lookup: Lookup,
  escape: EscapeCharacter,
): Platform | undefined {
  if (platform === undefined) return undefined;
  const text = expandWord(platform, lookup, escape);
  if (text !== "") return parsePlatform(text);
  throw new BoughError(`FROM --platform=${platform}: invalid platform: its variables are empty`, {
    kind: "usage",
    hint: "Give the variable a default in an ARG before FROM, or leave --platform out.",
  });
}

export function isSamePlatform(one: Platform, other: Platform): boolean {
  return formatPlatform(one) === formatPlatform(other);
}

const systems = ["linux", "darwin", "macos", "windows", "freebsd"];

/** Other names of an architecture, with the variant that they imply. */
const aliases: Readonly<Record<string, string>> = {
  x86_64: "amd64",
  "x86-64": "amd64",
  aarch64: "arm64",
  arm: "arm/v7",
  armhf: "arm/v7",
  armel: "arm/v6",
  i386: "386",
};

const usualVariants: Readonly<Record<string, string>> = { amd64: "v1", arm64: "v8" };

function invalid(text: string): BoughError {
  return new BoughError(`invalid platform ${JSON.stringify(text)}`, {
    kind: "usage",
    hint: "Give a platform such as linux/amd64 or linux/arm64.",
  });
}

/** What the automatic arguments tell about a build. */
export interface BuildTarget {
  /** The service's, if an instruction depends on it. */
  platform: Platform | undefined;
  /** `--target` or the name of the last stage. */
  stage: string;
}

/** Returns the automatic arguments. They are set in FROM, and in a stage once an ARG declares them. */
export function automaticArguments({ platform, stage }: BuildTarget): [name: string, value: string][] {
  return [...(platform === undefined ? [] : platformArguments(platform)), ["TARGETSTAGE", stage]];
}

export function isAutomaticArgument(name: string): boolean {
  return name === "TARGETSTAGE" || /^(BUILD|TARGET)(PLATFORM|OS|OSVERSION|ARCH|VARIANT)$/.test(name);
}

/** Returns TARGETSTAGE as BuildKit does: a last stage without a name is `default`. */
export function targetStageName({ stages }: Pick<Dockerfile, "stages">, target: string | undefined): string {
  return target ?? stages.at(-1)?.name ?? "default";
}
