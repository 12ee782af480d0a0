/**
 * A mount at `place` that only processes of the namespace see. Paths are absolute, or relative to the layers' directory, as in an
 * overlay's options.
 */
export type NamespaceMount = { place: string } & (
  | { type: "overlay" | "tmpfs"; options: string }
  /** `source` is a directory whose path contains no links. */
  | { type: "bind"; source: string }
);

/** The last option of a tmpfs that is never swapped to a disk. A kernel that was built without swap refuses it. */
export const noSwap = ",noswap";

/**
 * Linux supports `noswap` from 6.4 on, and not in a user namespace (tmpfs(5)). It isn't tried elsewhere, since each refusal is a
 * line in the machine's kernel log. `release` is that of `uname`.
 */
export function canForbidSwap(release: string, inUserNamespace: boolean): boolean {
  const [major = 0, minor = 0] = release.split(/[.-]/).map(Number);
  return !inUserNamespace && (major > 6 || (major === 6 && minor >= 4));
}

export function forbidSwap(mount: NamespaceMount): NamespaceMount {
  return mount.type === "tmpfs" ? { ...mount, options: `${mount.options}${noSwap}` } : mount;
}
