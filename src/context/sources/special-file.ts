import { constants, type Stats } from "node:fs";
import { displayPath } from "../file-system/display-path.ts";
import type { ContextWarning, SpecialFile } from "./entry.ts";

/** Returns why special files of a kind can't be copied; `undefined` if they can. */
export type WhyLeftOut = (special: SpecialFile) => Promise<string | undefined>;

/** A special file that is not copied. */
export interface LeftOut {
  /** The name of its kind in messages. */
  kind: string;
  contextPath: string;
  /** `undefined` if special files are never copied. */
  reason: string | undefined;
}

export function specialKind({ mode, rdev }: Pick<Stats, "mode" | "rdev">): SpecialFile {
  switch (mode & constants.S_IFMT) {
    case constants.S_IFIFO:
      return { kind: "pipe" };
    case constants.S_IFSOCK:
      return { kind: "socket" };
    case constants.S_IFBLK:
      return { kind: "block-device", ...deviceNumbers(rdev) };
    default:
      return { kind: "character-device", ...deviceNumbers(rdev) };
  }
}

/** Splits a device number as Linux does: the high bits of each part are above the low ones of both. */
function deviceNumbers(rdev: number): { major: number; minor: number } {
  const high = Math.floor(rdev / 2 ** 32);
  return {
    major: ((high & 0xfffff000) | ((rdev >>> 8) & 0xfff)) >>> 0,
    minor: ((rdev >>> 12) & 0xfff00) | (rdev & 0xff),
  };
}

/** Returns a special file that can't be copied; `undefined` for one that can. */
export async function leftOut(
  special: SpecialFile,
  contextPath: string,
  whyLeftOut: WhyLeftOut | undefined,
): Promise<LeftOut | undefined> {
  const reason = await whyLeftOut?.(special);
  if (whyLeftOut !== undefined && reason === undefined) return undefined;
  return { kind: nameOfKind(special), contextPath, reason };
}

function nameOfKind({ kind }: SpecialFile): string {
  switch (kind) {
    case "pipe":
      return "named pipe";
    case "socket":
      return "socket";
    default:
      return "device";
  }
}

/** The number of files named in a warning. The rest are counted. */
const maxNamed = 5;

export function leftOutWarnings(files: readonly LeftOut[]): ContextWarning[] {
  return Object.entries(Object.groupBy(files, ({ kind }) => kind)).map(([kind, group = []]) => {
    const named = group.slice(0, maxNamed).map(({ contextPath }) => displayPath(contextPath));
    if (group.length > maxNamed) named.push(`and ${group.length - maxNamed} more`);
    const reason = group[0]?.reason;
    const what =
      reason === undefined
        ? "can't be copied and are left out"
        : `are left out, unlike in Docker, as ${reason}`;
    return { rule: "SpecialFileLeftOut", subject: kind, message: `${kind}s ${what}: ${named.join(", ")}` };
  });
}
