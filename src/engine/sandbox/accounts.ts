import { readFileSync } from "node:fs";
import { resolveInRoot } from "./root-path.ts";

export interface Account {
  uid: number;
  gid: number;
  additionalGids: number[];
}

/**
 * As whom a process runs, as Docker decides: a user given alone belongs to the groups that the image's own files name, one
 * given with a group to that group only. The primary group is among the additional ones, so that no setgid program
 * can leave it behind.
 */
export function resolveAccount(root: string, uid: number, gid: number | undefined): Account {
  if (gid !== undefined) return { uid, gid, additionalGids: [gid] };
  const entry = readTable(root, "/etc/passwd").find((fields) => fields[2] === String(uid));
  const name = entry?.[0];
  const others = readTable(root, "/etc/group")
    .filter((fields) => name !== undefined && (fields[3] ?? "").split(",").includes(name))
    .map((fields) => Number(fields[2]))
    .filter(Number.isSafeInteger);
  const given = Number(entry?.[3] ?? 0);
  const primary = Number.isSafeInteger(given) ? given : 0;
  return { uid, gid: primary, additionalGids: [...new Set([primary, ...others])] };
}

/** Names of users and groups by the image's own tables; a number stands for itself where they don't have it. */
export function accountNames(root: string) {
  const namesIn = (path: string) => {
    const rows = readTable(root, path).filter(([name]) => name !== undefined && name !== "");
    // The first of several names counts.
    return new Map(rows.toReversed().map(([name = "", , id]) => [id, name]));
  };
  const users = namesIn("/etc/passwd");
  const groups = namesIn("/etc/group");
  return {
    user: (uid: number): string | number => users.get(String(uid)) ?? uid,
    group: (gid: number): string | number => groups.get(String(gid)) ?? gid,
  };
}

/** Bytes. An image's file is not to be trusted with this process's memory. */
const largestTable = 16 * 1024 * 1024;

function readTable(root: string, path: string): string[][] {
  const found = resolveInRoot(root, path, { followLast: true });
  if (!found.stats?.isFile() || found.stats.size > largestTable) return [];
  return readFileSync(found.path, "utf8")
    .split("\n")
    .map((line) => line.split(":"));
}
