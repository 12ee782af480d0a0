/** Reads the settings of the kernel and in `/etc` that decide whether a user can make a user namespace. */
import { readFileSync } from "node:fs";

/** Kernel settings that can forbid user namespaces, with the value that does, and commands that change it. */
const switches: readonly { file: string; forbids: string; setting: string; instead?: string }[] = [
  {
    file: "/proc/sys/user/max_user_namespaces",
    forbids: "0",
    setting: "sysctl user.max_user_namespaces=10000",
  },
  {
    file: "/proc/sys/kernel/unprivileged_userns_clone",
    forbids: "0",
    setting: "sysctl kernel.unprivileged_userns_clone=1",
  },
  {
    file: "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    forbids: "1",
    setting: "sysctl kernel.apparmor_restrict_unprivileged_userns=0",
    // The programs that bough starts, such as unshare, inherit the profile.
    instead: `printf 'abi <abi/4.0>,\\nprofile bough ${process.execPath} flags=(unconfined) {\\n  userns,\\n}\\n' > /etc/apparmor.d/bough && apparmor_parser -r /etc/apparmor.d/bough`,
  },
];

export const findClosedSwitch = () => switches.find(({ file, forbids }) => readSetting(file) === forbids);

/** Returns the user's name in `/etc/passwd`. */
export function accountName(userId: number | undefined): string | undefined {
  const table = readSetting("/etc/passwd") ?? "";
  return new RegExp(`^([^:\\n]+):[^:\\n]*:${userId}:`, "m").exec(table)?.[1];
}

/** Files with a range of sub-ids for each user: `NAME:FIRST:COUNT`, or with the user's id as NAME. */
export const subIdTables = ["/etc/subuid", "/etc/subgid"];

/** True if the user has ranges of sub-ids for users and for groups. */
export function hasSubIds(userId: number | undefined): boolean {
  const names = [accountName(userId), String(userId)];
  return subIdTables.every((file) =>
    (readSetting(file) ?? "").split("\n").some((line) => names.includes(line.split(":")[0])),
  );
}

export function readSetting(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8").trim();
  } catch {
    return undefined;
  }
}
