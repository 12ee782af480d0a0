import type { Tree, TreeEntry } from "./tree.ts";

/** A path at which two trees differ. An entry is `undefined` if it does not exist. */
export interface Difference {
  path: string;
  bough: TreeEntry | undefined;
  /** The entry of the builder that bough is compared with. */
  other: TreeEntry | undefined;
}

/** Compares the entries of two trees, except their times. */
export function compareTrees(bough: Tree, other: Tree): Difference[] {
  const paths = [...new Set([...bough.keys(), ...other.keys()])].sort();
  return paths
    .map((path) => ({ path, bough: bough.get(path), other: other.get(path) }))
    .filter((difference) => difference.bough?.line !== difference.other?.line);
}

/**
 * Mount points of buildah's chroot isolation, which it leaves in images that do not have them. Docker's builder and bough remove
 * them.
 */
const mountPoints: Record<string, string> = {
  "/dev": "directory 0755 0:0",
  "/proc": "directory 0755 0:0",
  "/sys": "directory 0755 0:0",
  "/run": "directory 0755 0:0",
  "/etc/hosts": emptyMountPoint(),
  "/etc/hostname": emptyMountPoint(),
  "/etc/resolv.conf": emptyMountPoint(),
};

function emptyMountPoint(): string {
  const nothing = new Bun.CryptoHasher("sha256").digest("hex").slice(0, 16);
  return `file 0755 0:0 0 bytes sha256:${nothing}`;
}

export function isLeftByBuildah({ path, bough, other }: Difference): boolean {
  // buildah's storage does not keep attributes of the root directory: even those of the base image read as 0555.
  if (path === "/") return other?.line === "directory 0555 0:0";
  return bough === undefined && other?.line === mountPoints[path];
}

/** Formats differences for a message. `builder` is the name of the other builder. */
export function formatDifferences(differences: readonly Difference[], builder: string): string {
  return differences.map((difference) => formatDifference(difference, builder)).join("\n");
}

function formatDifference({ path, bough, other }: Difference, builder: string): string {
  const sides = [
    ["bough", bough],
    [builder, other],
  ] as const;
  const contentsDiffer = bough !== undefined && other !== undefined && !sameBeginning(bough, other);
  const lines = sides.map(([name, entry]) => {
    const content = contentsDiffer && entry !== undefined ? showText(entry.beginning) : "";
    return `  ${`${name}:`.padEnd(9)}${entry?.line ?? "nothing"}${content}`;
  });
  return [showPath(path), ...lines].join("\n");
}

function sameBeginning(one: TreeEntry, other: TreeEntry): boolean {
  return Buffer.compare(one.beginning, other.beginning) === 0;
}

/** Returns an empty string for bytes that are not text. */
function showText(bytes: Uint8Array): string {
  const text = new TextDecoder().decode(bytes);
  return text.includes("\0") ? "" : ` ${JSON.stringify(text)}`;
}

/** Quotes paths with spaces or control characters. */
function showPath(path: string): string {
  return /[\s\p{Cc}]/u.test(path) ? JSON.stringify(path) : path;
}
