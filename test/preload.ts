/**
 * Runs before every test file: no test sees the developer's home, profiles or variables, and none leaves
 * anything behind in them.
 */
import { afterAll, beforeAll } from "bun:test";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import fc from "fast-check";
import { removeHome } from "./support/homes.ts";

/** `FAST_CHECK_SEED=random`, or the seed that a failure has named: by hand. */
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

// Around all files, or, where several processes share them and none knows which is its last, around each one.
beforeAll(() => void mkdirSync(home, { recursive: true }));
afterAll(() => removeHome(home));
