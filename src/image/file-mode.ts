import { BoughError } from "../errors.ts";

/** The mode of a directory for which none is given. */
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

const octal = /^0*[0-7]{1,4}$/;

/**
 * Returns the mode of the directories that a COPY makes for its files. As in Docker, a `--chmod` in digits also sets their mode,
 * without setuid, setgid and the sticky bit. Returns `undefined` for symbols, which do not change them.
 */
export function createdDirectoryMode(chmod: string): number | undefined {
  return octal.test(chmod) ? Number.parseInt(chmod, 8) & 0o777 : undefined;
}

/**
 * Returns the text that stands for a `--chmod` in a chain hash. It is more than the argument where earlier versions of bough set
 * other modes (of directories, and for some symbols), so that their layers are not used.
 */
export function chmodKey(chmod: string): string {
  if (octal.test(chmod))
    return createdDirectoryMode(chmod) === directoryMode ? chmod : `${chmod} directories`;
  return chmod.includes("=") || /[-+][^-+,]*[Xstugo]/.test(chmod) ? `${chmod} FreeBSD` : chmod;
}

/**
 * Parses `--chmod`: octal (`644`, `0755`, `4755`) or symbolic (`u+x`, `go-w`, `a=rX`, comma-separated), like chmod(1) of FreeBSD with
 * an umask of 0 (Dockerfile reference, "COPY --chmod"). Throws for anything else.
 */
export function parseMode(text: string): ModeChange {
  if (octal.test(text)) {
    const bits = Number.parseInt(text, 8);
    return () => bits;
  }
  const clauses = text.split(",").flatMap((clause) => {
    const match = /^([ugoa]*)((?:[-+=][rwxXstugo]*)+)$/.exec(clause);
    if (match === null) {
      throw new BoughError(`--chmod=${text} is not a valid file mode`, {
        kind: "usage",
        hint: "Write octal digits, such as --chmod=755, or symbols, such as --chmod=u+x,go-w.",
      });
    }
    const [, who = "", actions = ""] = match;
    const mask = [...who].reduce((bits, letter) => bits | (masks[letter] ?? 0), 0);
    return (actions.match(/[-+=][^-+=]*/g) ?? []).map((action) => ({ mask, action }));
  });
  return (mode, isDirectory) => {
    const mayExecute = isDirectory || (mode & 0o111) !== 0;
    return clauses.reduce(
      (now, { mask, action }) => new ModeAction(now, mask).apply(action, mayExecute),
      mode,
    );
  };
}

const setIds = 0o6000;
const sticky = 0o1000;
/** The bits that each letter before the operator selects. */
const masks: Readonly<Record<string, number>> = { u: 0o4700, g: 0o2070, o: 0o007, a: setIds | 0o777 };
const permissions: Readonly<Record<string, number>> = { r: 0o444, w: 0o222, x: 0o111 };
const shifts: Readonly<Record<string, number>> = { u: 6, g: 3, o: 0 };

/** One operator and the letters after it, performed letter by letter as FreeBSD's setmode(3) does. */
class ModeAction {
  #mode: number;
  /** The bits that may change; 0: all. */
  #mask: number;

  constructor(mode: number, mask: number) {
    this.#mode = mode;
    this.#mask = mask;
  }

  /** @param mayExecute true if `X` means `x`: for a directory, and for a file that was executable before all actions */
  apply([operator = "", ...letters]: string, mayExecute: boolean): number {
    const hasSpecial = this.#mask === 0 || (this.#mask & ~0o007) !== 0;
    let given = 0;
    let ifExecutable = 0;
    let isAssigned = operator !== "=";
    const flush = () => {
      if (given !== 0) this.#change(operator, given);
      if (ifExecutable !== 0 && mayExecute) this.#change("+", ifExecutable);
      given = 0;
      ifExecutable = 0;
    };
    for (const letter of letters) {
      given |= permissions[letter] ?? 0;
      if (letter === "s" && hasSpecial) given |= setIds;
      if (letter === "t" && hasSpecial) {
        this.#mask |= sticky;
        given |= sticky;
      }
      if (letter === "X" && operator === "-") given |= 0o111;
      else if (letter === "X") ifExecutable |= 0o111;
      const shift = shifts[letter];
      if (shift === undefined) continue;
      flush();
      isAssigned = true;
      this.#copy(operator, shift);
    }
    // `=` without letters removes all permissions.
    if (given === 0 && !isAssigned) this.#change(operator, 0);
    flush();
    return this.#mode;
  }

  #change(operator: string, bits: number): void {
    const changed = this.#mask === 0 ? bits : bits & this.#mask;
    if (operator === "=") this.#mode &= ~(this.#mask === 0 ? (masks.a ?? 0) : this.#mask);
    this.#mode = operator === "-" ? this.#mode & ~changed : this.#mode | changed;
  }

  /** Copies the permissions of the user, group or others. */
  #copy(operator: string, from: number): void {
    const value = (this.#mode >> from) & 7;
    const targets = Object.values(shifts).filter((shift) => this.#mask === 0 || (this.#mask >> shift) & 4);
    for (const shift of targets) {
      if (operator === "=") this.#mode &= ~(7 << shift);
      this.#mode = operator === "-" ? this.#mode & ~(value << shift) : this.#mode | (value << shift);
    }
  }
}
