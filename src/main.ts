import { version } from "./version.ts";

// All else is loaded only where there is more to do: it takes as long as Bun's own start. node:fs alone takes a quarter of that.
const [, , ...words] = process.argv;
if (words.length === 1 && words[0] === "--version")
  // What is wrong with a standard output that does not take it is said by whoever handles errors.
  void Bun.write(Bun.stdout, `${version}\n`).catch(run);
else run();

function run(): void {
  void import("./start.ts").then(({ start }) => start((exitCode) => process.exit(exitCode)));
}
