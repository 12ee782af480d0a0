import { writeSync } from "node:fs";
import { version } from "./version.ts";

// All else is loaded only where there is more to do: it takes as long as Bun's own start.
const [, , ...words] = process.argv;
if (words.length !== 1 || words[0] !== "--version" || !printVersion())
  void import("./start.ts").then(({ start }) => start((exitCode) => process.exit(exitCode)));

/** Returns whether standard output takes it; what is wrong with one that doesn't is said by whoever handles errors. */
function printVersion(): boolean {
  try {
    writeSync(1, `${version}\n`);
    return true;
  } catch {
    return false;
  }
}
