/** Prints options of `bun test` that leave out the slowest test files, a line each: `./scripts/test --all` runs them, too. */
import { readFileSync } from "node:fs";

/** Milliseconds from which a file is no everyday test, so that those run in less than five minutes on two processors. */
const slow = 8_000;

const timings: { files: Record<string, number> } = JSON.parse(
  readFileSync(new URL("../test/timings.json", import.meta.url), "utf8"),
);
for (const [file, duration] of Object.entries(timings.files)) {
  if (duration >= slow) process.stdout.write(`--path-ignore-patterns=${file}\n`);
}
