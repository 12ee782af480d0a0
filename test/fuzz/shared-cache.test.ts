/**
 * Two homes take turns at the builds of a recipe, and share a cache in a registry or a directory. After any edit, each makes the
 * image of a fresh build, file for file. One only writes the cache; the other one reads it, too, and often begins empty. In the
 * end, an empty home finds the last build in the cache and runs nothing. The variables of harness.ts choose the edits.
 */
import { expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTree, type Tree } from "../differential/tree.ts";
import { buildIn, type Home, newHome } from "../scopes/registry/homes.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { removeHome } from "../support/homes.ts";
import { seededRandom } from "../support/random.ts";
import { Registry } from "../support/registry.ts";
import { countEdits, differences, seed, startSource } from "./harness.ts";
import type { Random } from "./pick.ts";
import { edit, type Recipe, repair, startRecipe } from "./recipe.ts";

/** The number of builds of a recipe before the next recipe, which has the next kind of cache. */
const buildsOfOne = 4;
const kinds = [
  { type: "registry", mode: "max", hasStages: true },
  { type: "local", mode: "min", hasStages: true },
  { type: "registry", mode: "min", hasStages: false },
  { type: "local", mode: "max", hasStages: false },
] as const;

const { edits: builds, timeout } = countEdits(8);
test(
  "homes that share a cache in a registry or a directory make the images of fresh builds",
  async () => {
    const registry = await Registry.start();
    const base = `${registry.host}/base:1`;
    registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
    const source = startSource();
    const count: Count = { builds: 0, shared: 0, failing: 0 };
    const fresh = newHome();
    try {
      const random = seededRandom(seed);
      for (let recipes = 0; count.builds < builds; recipes++) {
        const { type, mode, hasStages } = kinds[recipes % kinds.length] ?? kinds[0];
        const { address } = source;
        const recipe = startRecipe({ context: temporaryDirectory(), address, hasStages }, random);
        const directory = temporaryDirectory();
        const place = (field: string) =>
          type === "registry"
            ? `type=registry,ref=${registry.host}/cache${recipes}:main`
            : `type=local,${field}=${directory}`;
        const words = {
          from: `--cache-from=${place("src")}`,
          to: `--cache-to=${place("dest")},mode=${mode}`,
        };
        const setUp = () => {
          source.setVersion(recipe.url.version);
          useBase(recipe, base);
        };
        await buildRecipe({ recipe, words, fresh, setUp, random, count, kind: `${type} ${mode}` });
      }
    } finally {
      removeHome(fresh.home);
      await source.stop();
      await registry.stop();
    }
    process.stderr.write(
      `seed ${seed}: ${count.builds} builds, ${count.shared} steps from the cache, ${count.failing} builds that fail\n`,
    );
    expect(count.shared).toBeGreaterThan(0);
    expect(count.failing).toBeLessThan(count.builds / 2);
  },
  timeout,
);

interface Count {
  builds: number;
  /** Steps that were found in a cache. */
  shared: number;
  failing: number;
}

interface Turns {
  recipe: Recipe;
  words: { from: string; to: string };
  fresh: Home;
  setUp(): void;
  random: Random;
  count: Count;
  kind: string;
}

async function buildRecipe({ recipe, words, fresh, setUp, random, count, kind }: Turns): Promise<void> {
  const history = ["start"];
  const homes: Home[] = [newHome()];
  const writer = homes[0] ?? newHome();
  let other: Home | undefined;
  const build = (home: Home, ...options: string[]) => {
    const args = [...recipe.buildArgs].flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
    return buildIn(home, recipe.context, [...args, ...recipe.options, ...options]);
  };
  for (let turn = 0; ; turn++) {
    setUp();
    const isWriter = turn % 2 === 0;
    if (!isWriter && (other === undefined || random() < 0.5)) {
      other = newHome();
      homes.push(other);
    }
    const home = isWriter ? writer : (other ?? writer);
    const cached = await build(home, ...(isWriter ? [words.to] : [words.from, words.to]));
    const wanted = await build(fresh, "--no-cache");
    const dockerfile = readFileSync(join(recipe.context, "Dockerfile"), "utf8");
    const about = { seed, kind, history, dockerfile, options: recipe.options };
    const trees = [await treeOf(home, cached.image), await treeOf(fresh, wanted.image)] as const;
    const found = describeDifferences(trees, cached.stderr, wanted.stderr);
    expect({ ...about, found }).toEqual({ ...about, found: [] });
    expect({ ...about, stderr: cached.stderr }).toMatchObject({
      stderr: expect.not.stringContaining("[WARN] cache:"),
    });
    count.builds++;
    count.shared += cached.stderr.match(/ cached layer:.* ago\)$/gm)?.length ?? 0;
    if (cached.image === undefined) count.failing++;
    if (turn === buildsOfOne - 1) {
      const cold = newHome();
      homes.push(cold);
      const last = await build(cold, words.from);
      // A step that fails is run each time.
      const runs = cached.image === undefined ? [] : last.runs;
      const left = describeDifferences([await treeOf(cold, last.image), trees[1]], last.stderr, "");
      expect({ ...about, runs, left }).toEqual({ ...about, runs: [], left: [] });
      break;
    }
    const failed = Number(/Dockerfile:(\d+)/.exec(cached.stderr)?.[1]);
    history.push(cached.image === undefined ? repair(recipe, failed, random) : edit(recipe, random));
  }
  for (const { home } of homes) removeHome(home);
}

/** Recipes start from `busybox:1`, which an empty home does not have. */
function useBase({ context }: Recipe, base: string): void {
  const path = join(context, "Dockerfile");
  writeFileSync(path, readFileSync(path, "utf8").replaceAll("busybox:1", base));
}

/** Reads an image's files, which fetches the layers that the home does not have yet. */
async function treeOf({ home }: Home, image: string | undefined): Promise<Tree | undefined> {
  if (image === undefined) return undefined;
  const { engine } = await TestEngine.open({ directory: join(home, "engine") });
  try {
    const response = await engine.fetch(new Request(`http://engine/v1/inspect/${image}/archive?path=/`));
    if (!response.ok || response.body === null) throw new Error(await response.text());
    return await readTree(response.body);
  } finally {
    await engine.close();
  }
}

function describeDifferences(
  [cached, fresh]: readonly [Tree | undefined, Tree | undefined],
  ...logs: readonly [string, string]
): string[] {
  if (cached !== undefined && fresh !== undefined) return differences(cached, fresh);
  return cached === fresh ? [] : [`cached: ${logs[0]}`, `fresh: ${logs[1]}`];
}
