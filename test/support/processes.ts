import { readdirSync, readFileSync } from "node:fs";

/** The command lines of all processes of the machine, with arguments separated by spaces. */
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

/**
 * Resolves once a process with this command line runs. The output of the command before it is not enough: at that moment the
 * process may not yet get Ctrl-C.
 */
export async function untilRuns(line: string): Promise<void> {
  while (!commandLines().includes(line)) await Bun.sleep(5);
}

/**
 * Command lines with `directory` that do not end within some seconds. The `sync` of a killed process can't be stopped, but
 * it ends.
 */
export async function lastingProcesses(
  directory: string,
  isExpected: (line: string) => boolean = () => false,
): Promise<string[]> {
  const find = () => commandLines().filter((line) => line.includes(directory) && !isExpected(line));
  // During an exec a process has no command line for a moment. Therefore two looks in succession must find nothing.
  let [before, now] = [find(), find()];
  for (let attempt = 0; attempt < 200 && before.length + now.length > 0; attempt++) {
    await Bun.sleep(50);
    [before, now] = [now, find()];
  }
  return now;
}
