import { readFileSync } from "node:fs";
import { accountRows, idOf } from "../../../account-rows.ts";
import { BoughError } from "../../../errors.ts";
import { type Locate, type ResolvedPath, resolveInRoot, UnreachablePathError } from "./root-path.ts";

interface Account {
  uid: number;
  gid: number;
  additionalGids: number[];
  /** The value of `HOME` for a process without one in its environment. */
  home: string;
}

/**
 * Returns the account that a process runs as, by Docker's rules: a user given alone is in the groups that the image's files name;
 * a user given with a group is in that group only. The additional groups include the primary one, so that no setgid program can
 * drop it.
 */
export type ResolveAccount = (uid: number, gid: number | undefined) => Account;

/** Reads the image's tables now, before a command can replace them. */
export function readAccounts(root: string): ResolveAccount {
  for (const path of ["/etc/passwd", "/etc/group"]) requireReadable(root, path);
  const users = readTable(root, "/etc/passwd");
  const groups = readTable(root, "/etc/group");
  return (uid, gid) => {
    const entry = accountRows(users).find((fields) => fields[2] === String(uid));
    const home = entry?.[5] || "/";
    if (gid !== undefined) return { uid, gid, additionalGids: [gid], home };
    const primary = idOf(entry?.[3]) ?? 0;
    const gids = new Set([primary]);
    for (const gid of groupsOf(entry?.[0] ?? "", groups)) if (gids.size < maxGroups) gids.add(gid);
    return { uid, gid: primary, additionalGids: [...gids], home };
  };
}

/** runc reads these files of the image itself, and would wait forever to read from a pipe. */
function requireReadable(root: string, path: string): void {
  const stats = find(root, path)?.stats;
  if (stats === undefined || stats.isFile() || stats.isDirectory()) return;
  throw new BoughError(`${path} in the image is a pipe or a device: no process can be started there`);
}

/** Linux's maximum for a process (NGROUPS_MAX). */
const maxGroups = 65_536;

/** Returns the groups of a user, without invalid IDs, such as negative ones: no process could start with them. */
function groupsOf(name: string, groups: string): Iterable<number> {
  if (name === "") return [];
  return accountRows(groups)
    .filter(([, , , members = ""]) => `,${members},`.includes(`,${name},`))
    .map(([, , gid]) => idOf(gid))
    .filter((gid) => gid !== undefined);
}

/** Returns the names of users and groups by the image's tables; an id without a name is its number. */
export function accountNames(root: string, locate?: Locate) {
  const namesIn = (path: string) => {
    const names = new Map<string, string>();
    for (const [name = "", , id = ""] of accountRows(readTable(root, path, locate))) {
      // The first of several names counts.
      if (name !== "" && idOf(id) !== undefined && !names.has(id)) names.set(id, name);
    }
    return names;
  };
  const users = namesIn("/etc/passwd");
  const groups = namesIn("/etc/group");
  return {
    user: (uid: number): string | number => users.get(String(uid)) ?? uid,
    group: (gid: number): string | number => groups.get(String(gid)) ?? gid,
  };
}

/** The maximum size of a table: an image's file must not fill this process's memory. */
const maxTableBytes = 16 * 1024 * 1024;

/** Reads a table; returns "" if the file does not exist. */
function readTable(root: string, path: string, locate?: Locate): string {
  const found = find(root, path, locate);
  if (!found?.stats?.isFile() || found.stats.size > maxTableBytes) return "";
  return readFileSync(found.path, "utf8");
}

function find(root: string, path: string, locate?: Locate): ResolvedPath | undefined {
  try {
    return resolveInRoot(root, path, { followLast: true, locate });
  } catch (error) {
    if (error instanceof UnreachablePathError) return undefined;
    throw error;
  }
}
