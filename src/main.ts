import { version } from "./version.ts";

// Everything else is loaded only if needed: that takes as long as Bun's own start. node:fs alone takes a quarter of that.
const [, , ...words] = process.argv;
// The name by which docker's command line calls its builder: see cli/plugin.
const isPlugin = /docker-buildx(\.exe)?$/.test(process.argv0);
if (words.length === 1 && words[0] === "--version" && !isPlugin)
  // If standard output fails, `run` writes again and reports the error.
  void Bun.write(Bun.stdout, `${version}\n`).catch(run);
else run();

function run(): void {
  void import("./start.ts").then(({ start }) => start((exitCode) => process.exit(exitCode), { isPlugin }));
}
