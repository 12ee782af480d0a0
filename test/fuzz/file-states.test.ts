/**
 * A build that takes the state of the context's files for the files themselves comes to what one does that looks each of them up,
 * and one that is told again says what it would have come to: the same chain hashes, the same log, whatever is changed in between.
 */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";
import { runs, seededRandom } from "../support/random.ts";
import { edit, editCopy, type Recipe, repair, startRecipe } from "./recipe.ts";

const seed = Number(process.env.FUZZ_SEED ?? 5);
const edits = runs(60);
const editsOfOne = 15;
/** What was just written is too young to be remembered: the builds happen a little later. */
const later: Clock = { ...systemClock, now: () => Date.now() + 60_000 };

let service: FakeService;
let source: Bun.Server<undefined>;
beforeAll(async () => {
  service = await startFakeService();
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
  "what the state of files stands for is what the files come to: %s",
  async (_, hasStages) => {
    const random = seededRandom(seed);
    let used = 0;
    let repeated = 0;
    for (let count = 0; count < edits; ) {
      const context = temporaryDirectory();
      const recipe = startRecipe({ context, address: `${source.url}fetched.bin`, hasStages }, random);
      const [home, anew] = [temporaryDirectory(), temporaryDirectory()];
      const history = ["start"];
      for (let of = 0; of < editsOfOne && count < edits; of++, count++) {
        forget(anew, "file_state");
        const found = await build(recipe, home);
        const expected = await build(recipe, anew, { program: undefined });
        const { failedLine, ...outcome } = found;
        const { failedLine: _, ...other } = expected;
        expect({ seed, history, ...outcome }).toEqual({ seed, history, ...other });
        // Once more without hashes: those who need them read the files, and remember them.
        forget(home, "hash");
        const again = await build(recipe, home);
        expect({ seed, history, layers: again.layers }).toEqual({ seed, history, layers: found.layers });
        if (isEmpty(home, "hash")) used++;
        // The first of them is remembered, if it has nothing to do.
        await build(recipe, home);
        const before = remembered(home);
        const told = await build(recipe, home);
        if (before !== "" && remembered(home) === before) repeated++;
        const { failedLine: __, ...idle } = await build(recipe, anew, { program: undefined });
        expect({ seed, history, ...told, failedLine: 0 }).toEqual({ seed, history, ...idle, failedLine: 0 });
        const change = random() < 0.3 ? editCopy : edit;
        history.push(found.exitCode === 0 ? change(recipe, random) : repair(recipe, failedLine, random));
      }
      for (const directory of [context, home, anew]) rmSync(directory, { recursive: true });
    }
    process.stderr.write(
      `seed ${seed}: ${edits} edits, ${used} builds that looked no file up, ${repeated} told again\n`,
    );
    expect(used).toBeGreaterThan(edits / 8);
    expect(repeated).toBeGreaterThan(edits / 8);
  },
  60_000 + edits * 1000,
);

async function build(
  { context, options, hasStages }: Recipe,
  home: string,
  how: Pick<BoughOptions, "program"> = {},
) {
  const { exitCode, stderr } = await runBough(["build", context, ...options], {
    workingDirectory: home,
    environment: { CONTREE_URL: service.url, CONTREE_TOKEN: "t0ken-t0ken", BOUGH_HOME: home },
    clock: later,
    ...how,
  });
  // Which stage is ahead when one fails is chance.
  const failedLine = Number(/Dockerfile:(\d+)/.exec(stderr)?.[1]);
  if (hasStages) return { exitCode, failedLine, log: [], layers: exitCode === 0 ? stepsOf(home) : [] };
  const log = stderr
    .replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}/g, "UUID")
    .replaceAll(/\d+ files? uploaded, in [\d.]+ s/g, "")
    .split("\n")
    .filter((line) => !/upload|service:/.test(line));
  return { exitCode, failedLine, log, layers: stepsOf(home) };
}

/** Which builds are, and since when: one that is done is remembered anew. */
function remembered(home: string): string {
  const directory = join(home, "builds");
  const names = existsSync(directory) ? readdirSync(directory) : [];
  return names.map((name) => `${name} ${statSync(join(directory, name)).ino}`).join(" ");
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

/** Chain hashes of the latest build's steps. */
function stepsOf(home: string): unknown[] {
  using database = open(home);
  return database?.query("SELECT ordinal, hash, title, hex(inputs) FROM step ORDER BY ordinal").all() ?? [];
}
