import { command } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";

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
