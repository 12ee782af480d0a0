import { BoughError } from "./errors.ts";

/** Returns the user's home directory. */
export function homeDirectory({ HOME }: Readonly<Record<string, string | undefined>>): string {
  if (HOME) return HOME;
  try {
    // HOME is nearly always set, and loading node:os takes a fifth of the time that bough needs to read its state.
    return process.getBuiltinModule("node:os").homedir();
  } catch (error) {
    throw new BoughError("HOME is not set, and /etc/passwd has no entry for this user", {
      hint: "Set HOME to a directory of your own.",
      cause: error,
    });
  }
}
