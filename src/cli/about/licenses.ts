import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
// Written by scripts/licenses.ts. A test checks that it is up to date.
import text from "./licenses.txt" with { type: "text" };

export const licenses = command({
  name: "licenses",
  description: "Print the licences of bough and of everything that is compiled into it.",
  run: printLicenses,
  examples: [
    ["licenses | less", "page by page"],
    ["licenses -q", "what there is, without the texts"],
  ],
  agentNote: "It prints hundreds of lines; with -q it is one for each part.",
});

function printLicenses(invocation: Invocation): void {
  const components = listComponents(text);
  printResult(invocation, {
    id: components.map(({ name, version, license }) => `${name} ${version}: ${license}`),
    json: components,
    table: () => text,
  });
}

/** Returns the document's components. Each has a heading with its name and version, followed by its licence. */
function listComponents(document: string): { name: string; version: string; license: string }[] {
  return [...document.matchAll(/^## (\S+) (\d[^\s,]*).*\n\n(.+)$/gm)].map(
    ([, name = "", version = "", license = ""]) => ({ name, version, license }),
  );
}
