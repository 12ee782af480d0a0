import { BoughError } from "../errors.ts";

/** The mode of a directory that nothing describes. */
export const directoryMode = 0o755;

/** Returns `-rwxr-xr-x`: a file's type and permissions as ls(1) shows them. */
export function formatMode(mode: number, type: keyof typeof letters): string {
  return (
    letters[type] +
    triple(mode >> 6, mode & 0o4000, "s") +
    triple(mode >> 3, mode & 0o2000, "s") +
    triple(mode, mode & 0o1000, "t")
  );
}

const letters = { file: "-", directory: "d", symlink: "l", socket: "s", fifo: "p", other: "?" } as const;

function triple(bits: number, special: number, letter: string): string {
  const execute = (bits & 1) !== 0;
  const last = special === 0 ? (execute ? "x" : "-") : execute ? letter : letter.toUpperCase();
  return `${bits & 4 ? "r" : "-"}${bits & 2 ? "w" : "-"}${last}`;
}

/** Returns permission bits in the API's form: `0644`. */
export function octalMode(mode: number): string {
  return mode.toString(8).padStart(4, "0");
}

/** Changes permission bits according to a `--chmod`. */
export type ModeChange = (mode: number, isDirectory: boolean) => number;

/**
 * Parses `--chmod`: octal (`644`, `0755`, `4755`) or symbolic (`u+x`, `go-w`, `a=rX`, comma-separated), like chmod(1) with an
 * umask of 0 (Dockerfile reference, "COPY --chmod"). Throws for anything else.
 */
export function parseMode(text: string): ModeChange {
  if (/^0*[0-7]{1,4}$/.test(text)) {
    const bits = Number.parseInt(text, 8);
    return () => bits;
  }
  const clauses = text.split(",").map((clause) => {
    const match = /^([ugoa]*)((?:[-+=][rwxXst]*|[-+=][ugo])+)$/.exec(clause);
    if (match === null) {
      throw new BoughError(`--chmod=${text} is not a valid file mode`, {
        kind: "usage",
        hint: "Write octal digits, such as --chmod=755, or symbols, such as --chmod=u+x,go-w.",
      });
    }
    const [, who = "", actions = ""] = match;
    return {
      who: who === "" || who.includes("a") ? "ugo" : who,
      actions: actions.match(/[-+=][^-+=]*/g) ?? [],
    };
  });
  return (mode, isDirectory) =>
    clauses.reduce(
      (current, { who, actions }) =>
        actions.reduce((bits, action) => applyAction(bits, who, action, isDirectory), current),
      mode,
    );
}

const shifts: Record<string, number> = { u: 6, g: 3, o: 0 };

function applyAction(mode: number, who: string, action: string, isDirectory: boolean): number {
  const operator = action[0];
  const permissions = action.slice(1);
  let touched = 0;
  let special = 0;
  for (const person of who) {
    const shift = shifts[person] ?? 0;
    touched |= bitsOf(permissions, mode, isDirectory) << shift;
    if (permissions.includes("s")) special |= person === "u" ? 0o4000 : person === "g" ? 0o2000 : 0;
  }
  if (permissions.includes("t")) special |= 0o1000;
  switch (operator) {
    case "+":
      return mode | touched | special;
    case "-":
      return mode & ~(touched | special);
    default: {
      const cleared = [...who].reduce((mask, person) => mask | (7 << (shifts[person] ?? 0)), 0);
      const clearedSpecial = (who.includes("u") ? 0o4000 : 0) | (who.includes("g") ? 0o2000 : 0);
      return (mode & ~(cleared | (isDirectory ? 0 : clearedSpecial))) | touched | special;
    }
  }
}

function bitsOf(permissions: string, mode: number, isDirectory: boolean): number {
  let bits = 0;
  for (const permission of permissions) {
    switch (permission) {
      case "r":
        bits |= 4;
        break;
      case "w":
        bits |= 2;
        break;
      case "x":
        bits |= 1;
        break;
      case "X":
        if (isDirectory || (mode & 0o111) !== 0) bits |= 1;
        break;
      case "u":
      case "g":
      case "o":
        bits |= (mode >> (shifts[permission] ?? 0)) & 7;
        break;
    }
  }
  return bits;
}
