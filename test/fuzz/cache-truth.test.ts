/**
 * Whatever is changed, the image of a build that takes what it can from the cache is that of one which takes nothing,
 * file for file. `FUZZ_EDITS` and `FUZZ_SEED` set how many edits are tried and which; `FUZZ_SECONDS` goes on for so long.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type RunningEngine, serveEngine } from "../differential/bough.ts";
import { readTree, type Tree } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { seededRandom } from "../support/random.ts";
import { edit, type Recipe, repair, startRecipe } from "./recipe.ts";

const edits = Number(process.env.FUZZ_EDITS ?? 30);
const seconds = Number(process.env.FUZZ_SECONDS ?? 0);
/** So many edits of one recipe, before the next one begins. */
const editsOfOne = 15;

let engine: RunningEngine;
let source: ReturnType<typeof Bun.serve>;
let urlVersion = 1;
const state = temporaryDirectory();
beforeAll(async () => {
  engine = await serveEngine(temporaryDirectory());
  await bough("images", "import", await makeBusyboxLayout(temporaryDirectory()), "--tag", "busybox:1");
  source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) =>
      request.headers.get("if-none-match") === `"${urlVersion}"`
        ? new Response(null, { status: 304 })
        : new Response(`content ${urlVersion}`, { headers: { etag: `"${urlVersion}"` } }),
  });
});
afterAll(async () => {
  await engine.stop();
  await source.stop(true);
});

async function bough(...words: string[]) {
  return await runBough(["--url", engine.url, "--token", engine.token, ...words], {
    workingDirectory: state,
    environment: { BOUGH_HOME: state },
  });
}

interface Built {
  /** `undefined`: it failed, and said so. */
  image: string | undefined;
  stderr: string;
}

async function build(context: string, { buildArgs }: Recipe, ...options: string[]): Promise<Built> {
  const args = [...buildArgs].flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
  const { exitCode, stdout, stderr } = await bough("-f", "json", "build", context, ...args, ...options);
  if (exitCode !== 0 && /bough itself failed/.test(stderr)) throw new Error(stderr);
  return { image: exitCode === 0 ? JSON.parse(stdout).image : undefined, stderr };
}

async function treeOf(image: string): Promise<Tree> {
  const response = await fetch(new URL(`/v1/inspect/${image}/archive?path=/`, engine.url));
  if (!response.ok || response.body === null) throw new Error(await response.text());
  return await readTree(response.body);
}

function differences(cached: Tree, fresh: Tree): string[] {
  const paths = new Set([...cached.keys(), ...fresh.keys()]);
  return [...paths].flatMap((path) => {
    const [one, other] = [cached.get(path)?.line, fresh.get(path)?.line];
    return one === other ? [] : [`${path}: cached ${one ?? "nothing"}, fresh ${other ?? "nothing"}`];
  });
}

/** The image of a build that may use the cache, and what is not as in one that may not; both may fail. */
async function compareWithFresh(recipe: Recipe): Promise<{ cached: Built; found: string[] }> {
  const cached = await build(recipe.context, recipe);
  // A copy: the hashes that are remembered of the files are not to vouch for themselves.
  const copy = temporaryDirectory();
  cpSync(recipe.context, copy, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
  const fresh = await build(copy, recipe, "--no-cache");
  rmSync(copy, { recursive: true });
  if (cached.image !== undefined && fresh.image !== undefined)
    return { cached, found: differences(await treeOf(cached.image), await treeOf(fresh.image)) };
  const isSame = cached.image === fresh.image;
  return { cached, found: isSame ? [] : [`cached: ${cached.stderr}`, `fresh: ${fresh.stderr}`] };
}

test(
  "a cached build comes to what a fresh one comes to",
  async () => {
    const seed = Number(process.env.FUZZ_SEED ?? 3);
    const random = seededRandom(seed);
    const until = performance.now() + seconds * 1000;
    const count = { edits: 0, recipes: 0, failing: 0, cachedSteps: 0 };
    while (count.edits < edits || performance.now() < until) {
      const recipe = startRecipe(temporaryDirectory(), `${source.url}fetched.bin`, random);
      const history = ["start"];
      count.recipes++;
      for (;;) {
        urlVersion = recipe.url.version;
        const { cached, found } = await compareWithFresh(recipe);
        const dockerfile = found.length === 0 ? "" : readFileSync(join(recipe.context, "Dockerfile"), "utf8");
        expect({ seed, history, dockerfile, found }).toMatchObject({ found: [] });
        count.edits++;
        count.cachedSteps += cached.stderr.match(/ cached layer:/g)?.length ?? 0;
        if (cached.image === undefined) count.failing++;
        if (history.length === editsOfOne) break;
        history.push(cached.image === undefined ? repair(recipe, random) : edit(recipe, random));
      }
      rmSync(recipe.context, { recursive: true });
    }
    const { recipes, cachedSteps, failing } = count;
    process.stderr.write(
      `seed ${seed}: ${count.edits} edits of ${recipes} recipes, ${cachedSteps} steps from the cache, ${failing} builds that fail\n`,
    );
    expect(cachedSteps).toBeGreaterThan(count.edits / 4);
    expect(failing).toBeLessThan(count.edits / 2);
  },
  30_000 + seconds * 1000 + edits * 2000,
);
