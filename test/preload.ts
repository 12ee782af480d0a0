/**
 * Runs before every test file: no test sees or changes the developer's home, profiles or variables.
 */
import { afterAll, beforeAll } from "bun:test";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { removeHome } from "./support/homes.ts";

/** `FAST_CHECK_SEED` is for manual runs: `random`, or the seed of a reported failure. */
const { FAST_CHECK_SEED: seed = "20251121" } = process.env;
fc.configureGlobal({
  ...(seed === "random" ? {} : { seed: Number(seed) }),
  includeErrorInReport: true,
  reporter(details) {
    process.stderr.write(`seed ${details.seed}: ${details.numRuns} runs\n`);
    if (details.failed) throw new Error(fc.defaultReportMessage(details));
  },
});

const home = mkdtempSync(join(tmpdir(), "bough-test-"));
for (const name of Object.keys(process.env)) {
  if (/^(BOUGH_|CONTREE_|NEBIUS_|XDG_|NO_COLOR$|FORCE_COLOR$|CI$|[A-Z]+_PROXY$|[a-z]+_proxy$)/.test(name))
    delete process.env[name];
}
process.env.HOME = home;
process.env.BOUGH_HOME = join(home, "bough");

// These run around all files, or around each file if several processes share them and none knows which is its last.
beforeAll(() => void mkdirSync(home, { recursive: true }));
afterAll(() => removeHome(home));
