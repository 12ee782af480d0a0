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

/** Returns the components in the document. Each has a heading with its name and version, followed by its licence. */
function listComponents(document: string): { name: string; version: string; license: string }[] {
  return [...document.matchAll(/^## (\S+) (\d[^\s,]*).*\n\n(.+)$/gm)].map(
    ([, name = "", version = "", license = ""]) => ({ name, version, license }),
  );
}

/** The public key of bough's releases, in minisign's format. `scripts/release --make-key` makes a new key pair. */
export const releaseKey = "RWSIviRf33Bf4SpP8Q5y6iHCVkqr01D/RNrwpE+M6rDODXMM2Jfp5kwE";

export const releaseKeyCommand = command({
  name: "release-key",
  description: "Print the public key that bough's releases are signed with.",
  run: (invocation) =>
    printResult(invocation, { id: releaseKey, json: { key: releaseKey }, table: () => `${releaseKey}\n` }),
  examples: [
    ["release-key", "the key, in the form for minisign -P"],
    ["release-key | xargs minisign -Vm SHA256SUMS -P", "verify a release's checksums with minisign"],
  ],
  agentNote: "A copy of bough that is trusted vouches for the next release; install.sh has the same key.",
});
