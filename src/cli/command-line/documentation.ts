import { quote } from "../../builder/commands/command.ts";
import type { GlobalOptions } from "./globals.ts";

/** A command line to paste that works with the same service as this one. The token is left out. */
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
