/**
 * Parts of bough that run in a process of their own: they enter namespaces, or change a root directory, which a thread of bough
 * can't do without the risk that it, or a thread that it starts, stays there.
 */

/** The first word of such a process, in the place of a command's name. */
export const ownProcessWord = "--own-process";

export type OwnProcess = "find-root" | "replace-root" | "listen";

/** Returns the command line of such a process. */
export function ownProcess(name: OwnProcess, ...words: string[]): string[] {
  return [...ownProgram(), ownProcessWord, name, ...words];
}

/** Returns the command that runs bough. A compiled bough is its own executable; otherwise Bun runs its source. */
export function ownProgram(): string[] {
  const source = () => Bun.fileURLToPath(new URL("../main.ts", import.meta.url));
  return Bun.isStandaloneExecutable ? [process.execPath] : [process.execPath, source()];
}
