import { quote } from "../../builder/commands/command.ts";
import type { GlobalOptions } from "./globals.ts";

/** Returns a command line to paste, for the same service as this one. It does not contain the token. */
export function commandLine(globals: GlobalOptions, words: readonly string[]): string {
  const { local, profile, url, project } = globals;
  const options = [
    ...(local ? ["--local"] : []),
    ...(profile === undefined ? [] : ["-p", profile]),
    ...(url === undefined ? [] : ["--url", url]),
    ...(project === undefined ? [] : ["--project", project]),
  ];
  return ["bough", ...options, ...words].map(quote).join(" ");
}
