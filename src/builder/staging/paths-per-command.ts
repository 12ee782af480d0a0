import { quote } from "../commands/command.ts";

const pathsPerCommand = 100;

/** Combines paths in as few commands as their arguments allow, as each command is a process. */
export function commandsFor(command: (paths: string) => string, paths: readonly string[]): string[] {
  const lines: string[] = [];
  for (let index = 0; index < paths.length; index += pathsPerCommand)
    lines.push(
      command(
        paths
          .slice(index, index + pathsPerCommand)
          .map(quote)
          .join(" "),
      ),
    );
  return lines;
}
