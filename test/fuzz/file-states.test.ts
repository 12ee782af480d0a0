/**
 * A build that relies on the recorded states of the context's files has the same chain hashes and the same log as a build that
 * looks up each file. So has a build after which nothing has changed. This holds after any edit.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { runs, seededRandom } from "../support/random.ts";
import { edit, editCopy, type Recipe, repair, startRecipe } from "./recipe.ts";

const seed = Number(process.env.FUZZ_SEED ?? 5);
const edits = runs(24);
const editsOfOne = 15;
/** A clock a minute ahead of the files: bough does not record the state of files that were just written. */
const later: Clock = { ...systemClock, now: () => Date.now() + 60_000 };

let service: FakeService;
let source: Bun.Server<undefined>;
beforeAll(async () => {
  service = await startFakeService({ extensions: ["entries"] });
  service.state.addImage("busybox:1");
  source = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("fetched") });
});
afterAll(async () => {
  await service.close();
  await source.stop(true);
});

test.each([
  ["one stage", false],
  ["several stages, as Docker builds them", true],
])(
  "builds with recorded file states equal builds that look up each file: %s",
  async (_, hasStages) => {
    const random = seededRandom(seed);
    let withoutLookUp = 0;
    for (let count = 0; count < edits; ) {
      const context = temporaryDirectory();
      const recipe = startRecipe({ context, address: `${source.url}fetched.bin`, hasStages }, random);
      const [home, freshHome] = [temporaryDirectory(), temporaryDirectory()];
      const history = ["start"];
      for (let inRecipe = 0; inRecipe < editsOfOne && count < edits; inRecipe++, count++) {
        forget(freshHome, "file_state");
        const found = await build(recipe, home);
        const expected = await build(recipe, freshHome);
        const { failedLine, ...outcome } = found;
        const { failedLine: _, ...other } = expected;
        expect({ seed, history, ...outcome }).toEqual({ seed, history, ...other });
        // Again without recorded hashes: a build that needs them reads the files, and records them.
        forget(home, "hash");
        const again = await build(recipe, home);
        expect({ seed, history, layers: again.layers }).toEqual({ seed, history, layers: found.layers });
        if (isEmpty(home, "hash")) withoutLookUp++;
        // Nothing has changed, so that neither has anything to do.
        const { failedLine: __, ...idle } = await build(recipe, home);
        const { failedLine: ___, ...expectedIdle } = await build(recipe, freshHome);
        expect({ seed, history, ...idle }).toEqual({ seed, history, ...expectedIdle });
        const change = random() < 0.3 ? editCopy : edit;
        history.push(found.exitCode === 0 ? change(recipe, random) : repair(recipe, failedLine, random));
      }
      for (const directory of [context, home, freshHome]) rmSync(directory, { recursive: true });
    }
    process.stderr.write(`seed ${seed}: ${edits} edits, ${withoutLookUp} builds without looking up a file\n`);
    expect(withoutLookUp).toBeGreaterThan(edits / 8);
  },
  60_000 + edits * 1000,
);

async function build({ context, options, hasStages }: Recipe, home: string) {
  const { exitCode, stderr } = await runBough(["build", context, ...options], {
    workingDirectory: home,
    environment: { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home },
    clock: later,
  });
  // When a stage fails, the progress of the others is random.
  const failedLine = Number(/Dockerfile:(\d+)/.exec(stderr)?.[1]);
  if (hasStages) return { exitCode, failedLine, log: [], layers: exitCode === 0 ? stepsOf(home) : [] };
  const log = stderr
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID")
    .replaceAll(/\d+ files? uploaded, in [\d.]+ s/g, "")
    .replaceAll(/(done in|failed after) [\d.]+ s/g, "done")
    .split("\n")
    .filter((line) => !/upload|service:/.test(line));
  return { exitCode, failedLine, log, layers: stepsOf(home) };
}

function open(home: string): Database | undefined {
  const directory = join(home, "sessions");
  const name = existsSync(directory) && readdirSync(directory).find((each) => each.endsWith(".db"));
  return name ? new Database(join(directory, name)) : undefined;
}

function forget(home: string, table: "file_state" | "hash"): void {
  using database = open(home);
  database?.run(`DELETE FROM ${table}`);
}

function isEmpty(home: string, table: "hash"): boolean {
  using database = open(home);
  return database?.query(`SELECT 1 FROM ${table}`).get() === null;
}

/** Returns the steps of the latest build with their chain hashes. */
function stepsOf(home: string): unknown[] {
  using database = open(home);
  return database?.query("SELECT ordinal, hash, title, hex(inputs) FROM step ORDER BY ordinal").all() ?? [];
}
