import { readdirSync, readFileSync } from "node:fs";

/** The command lines of all processes of the machine, arguments separated by spaces, as anybody on it can see them. */
export function commandLines(): string[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map((name) => {
      try {
        return readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
      } catch {
        return "";
      }
    })
    .filter((line) => line !== "");
}

/** Resolves once a process with this command line runs. A shell prints what comes before it a moment earlier, when Ctrl-C is not yet for it. */
export async function untilRuns(line: string): Promise<void> {
  while (!commandLines().includes(line)) await Bun.sleep(5);
}

/**
 * Those that have something to do with `directory` and do not go away by themselves: a killed process's `sync` can't be
 * stopped, but it ends.
 */
export async function lastingProcesses(
  directory: string,
  isExpected: (line: string) => boolean = () => false,
): Promise<string[]> {
  const find = () => commandLines().filter((line) => line.includes(directory) && !isExpected(line));
  // One that is becoming another program has no command line for a moment, and is not gone: it takes two looks.
  let [before, now] = [find(), find()];
  for (let attempt = 0; attempt < 200 && before.length + now.length > 0; attempt++) {
    await Bun.sleep(50);
    [before, now] = [now, find()];
  }
  return now;
}
