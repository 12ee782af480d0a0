import { BoughError } from "../errors.ts";

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
