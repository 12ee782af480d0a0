import { BoughError } from "../errors.ts";
import { wording } from "../messages/wording.ts";

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
    const [word = ""] = parts;
    // A single word may be anything, such as `all` or a system. Like containerd, bough takes only known architectures.
    if (!(Object.hasOwn(aliases, word) || architectures.includes(word))) throw invalid(text);
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

/** Returns this machine's architecture, as the OCI image specification spells it. */
export function machineArchitecture(): string {
  return process.arch === "x64" ? "amd64" : process.arch;
}

/** Returns this machine's platform: `linux/amd64`. */
export function machinePlatform(): string {
  return `linux/${machineArchitecture()}`;
}

/** Returns true for a platform that this machine runs without emulation, and for an image that states none. */
export function isNativePlatform(platform: string | undefined): boolean {
  const machine = machinePlatform();
  return platform === undefined || platform === machine || platform.startsWith(`${machine}/`);
}

export function isSamePlatform(one: Platform, other: Platform): boolean {
  return formatPlatform(one) === formatPlatform(other);
}

/** Returns true for an image that runs where one of the `wanted` platform does. */
export function canRunOn(image: Platform, wanted: Platform): boolean {
  return suitability(image, wanted) !== undefined;
}

/** Throws for an image that its id or a lookup by it has found, if it is for another platform than the wanted one. */
export function requirePlatform(
  found: string | undefined,
  wanted: string | undefined,
  reference: string,
): void {
  if (found === undefined || wanted === undefined || canRunOn(parsePlatform(found), parsePlatform(wanted)))
    return;
  throw new BoughError(`${reference} is an image for ${found}, and ${wanted} is wanted`, {
    kind: "usage",
    hint: wording`A tag may have an image for each platform, an id has one: name the image by its tag, or give ${{ option: "platform" }} ${found}.`,
  });
}

/** Returns the image that suits the `wanted` platform best; the first, if several do. `platform` returns that of an image. */
export function chooseBestImage<Image>(
  images: readonly Image[],
  wanted: Platform,
  platform: (image: Image) => Platform,
): Image | undefined {
  const suitable = images.flatMap((image) => {
    const level = suitability(platform(image), wanted);
    return level === undefined ? [] : [{ image, level }];
  });
  return suitable.toSorted((one, other) => other.level - one.level)[0]?.image;
}

/** Returns a higher number for an image that suits better; `undefined` for one that can't run. Like containerd, takes older variants. */
function suitability(image: Platform, wanted: Platform): number | undefined {
  if (image.os !== wanted.os || image.architecture !== wanted.architecture) return undefined;
  const [own, highest] = [levelOf(image), levelOf(wanted)];
  if (own === highest || (typeof own === "number" && own <= Number(highest)))
    return typeof own === "number" ? own : 1;
  // If no variant is wanted, the machine decides whether it can run the image's.
  return wanted.variant === "" ? 0 : undefined;
}

/** Returns the number of a variant, such as 7 of `v7`; otherwise the variant itself. */
function levelOf({ architecture, variant }: Platform): number | string {
  const text = variant === "" ? (usualVariants[architecture] ?? "") : variant;
  return /^v\d+(\.\d+)?$/.test(text) ? Number(text.slice(1)) : text;
}

const architectures = [
  ...["386", "amd64", "arm", "arm64", "loong64", "mips", "mips64", "mips64le", "mipsle", "ppc64", "ppc64le"],
  ...["riscv64", "s390x", "wasm"],
];

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
