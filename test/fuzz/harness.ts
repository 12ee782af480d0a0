/**
 * After any edit, a build with the cache makes the same image as a build without it, file for file. Two machines, each with its
 * own checkout, share a scope and take turns at the cached builds. In the end, the other machine gets the image of the last build
 * from the scope. `FUZZ_EDITS` sets the number of edits, `FUZZ_SEED` their choice; `FAST_CHECK_TIMES` multiplies the default
 * number, and `FUZZ_SECONDS` is a minimum duration.
 */
import { expect } from "bun:test";
import { cpSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { serveEngine } from "../differential/bough.ts";
import { readTree, type Tree } from "../differential/tree.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { runs, seededRandom } from "../support/random.ts";
import { edit, type Recipe, repair, startRecipe } from "./recipe.ts";

export const seed = Number(process.env.FUZZ_SEED ?? 3);
const seconds = Number(process.env.FUZZ_SECONDS ?? 0);
/** The number of edits of a recipe before the next recipe. */
const editsOfOne = 15;

/** Returns the number of edits, by default `usual`, and a timeout for them. */
export function countEdits(usual: number): { edits: number; timeout: number } {
  const edits = Number(process.env.FUZZ_EDITS ?? runs(usual));
  return { edits, timeout: 60_000 + seconds * 1000 + edits * 20_000 };
}

export interface FuzzWorld {
  /** Edits recipes and compares their builds; throws with the differences from a fresh build. */
  run(options: { edits: number; hasStages: boolean }): Promise<void>;
  close(): Promise<void>;
}

/** Starts an engine with the image `busybox:1`, and a server for ADD. */
export async function openFuzzWorld(front?: Parameters<typeof serveEngine>[1]): Promise<FuzzWorld> {
  const freshHome = temporaryDirectory();
  const engine = await serveEngine(temporaryDirectory(), front);
  await engine.importBase(await makeBusyboxLayout(temporaryDirectory()), "busybox:1");
  const source = startSource();

  async function build({ context, home }: Machine, recipe: Recipe, ...options: string[]): Promise<Built> {
    const args = [...recipe.buildArgs].flatMap(([name, value]) => ["--build-arg", `${name}=${value}`]);
    const words = ["-f", "json", "--url", engine.url, "--token", engine.token, "build", context];
    const { exitCode, stdout, stderr } = await runBough([...words, ...args, ...recipe.options, ...options], {
      workingDirectory: home,
      environment: { BOUGH_HOME: home },
    });
    if (exitCode !== 0 && /bough itself failed/.test(stderr)) throw new Error(stderr);
    return { image: exitCode === 0 ? JSON.parse(stdout).image : undefined, stderr };
  }

  async function treeOf(image: string): Promise<Tree> {
    const response = await fetch(new URL(`/v1/inspect/${image}/archive?path=/`, engine.url), {
      // Compressing a whole image takes longer than building it.
      headers: { "Accept-Encoding": "identity" },
    });
    if (!response.ok || response.body === null) throw new Error(await response.text());
    return await readTree(response.body);
  }

  async function buildCached(recipe: Recipe, machine: Machine, scope: string): Promise<Built> {
    if (machine.context !== recipe.context) copyTo(machine.context, recipe);
    return build(machine, recipe, "--cache-from", scope, "--cache-to", scope);
  }

  /** Builds with and without the cache. Returns the cached build and the differences; both builds may fail. */
  async function compareWithFresh(
    recipe: Recipe,
    machine: Machine,
    scope: string,
  ): Promise<{ cached: Built; found: string[] }> {
    const cached = await buildCached(recipe, machine, scope);
    // A copy, so that the fresh build has no recorded hashes of the files.
    const copy = temporaryDirectory();
    copyTo(copy, recipe);
    const fresh = await build({ context: copy, home: freshHome }, recipe, "--no-cache");
    rmSync(copy, { recursive: true });
    if (cached.image !== undefined && fresh.image !== undefined)
      return { cached, found: differences(await treeOf(cached.image), await treeOf(fresh.image)) };
    const isSame = cached.image === fresh.image;
    return { cached, found: isSame ? [] : [`cached: ${cached.stderr}`, `fresh: ${fresh.stderr}`] };
  }

  return {
    async run({ edits, hasStages }) {
      const random = seededRandom(seed);
      const until = performance.now() + seconds * 1000;
      const count = { edits: 0, recipes: 0, failing: 0, cachedSteps: 0, sharedSteps: 0 };
      const isOver = () => count.edits >= edits && performance.now() >= until;
      while (!isOver()) {
        const { address } = source;
        const recipe = startRecipe({ context: temporaryDirectory(), address, hasStages }, random);
        const history = ["start"];
        // The first machine has the edited files themselves, and records their states. The other gets a copy at its turns.
        const machines = [
          { context: recipe.context, home: temporaryDirectory() },
          { context: temporaryDirectory(), home: temporaryDirectory() },
        ] as const;
        const scope = `recipe-${count.recipes++}`;
        for (;;) {
          source.setVersion(recipe.url.version);
          const machine = machines[random() < 0.5 ? 0 : 1];
          const { cached, found } = await compareWithFresh(recipe, machine, scope);
          const dockerfile =
            found.length === 0 ? "" : readFileSync(join(recipe.context, "Dockerfile"), "utf8");
          expect({ seed, history, options: recipe.options, dockerfile, found }).toMatchObject({ found: [] });
          count.edits++;
          expect(cached.stderr).not.toContain("[WARN] cache:");
          count.cachedSteps += cached.stderr.match(/ cached layer:/g)?.length ?? 0;
          count.sharedSteps += cached.stderr.match(/ cached layer:.* ago\)$/gm)?.length ?? 0;
          if (cached.image === undefined) count.failing++;
          if (history.length === editsOfOne || isOver()) {
            const other = machines.find((each) => each !== machine) ?? machine;
            const { image, stderr } = await buildCached(recipe, other, scope);
            expect({ seed, history, image, stderr }).toMatchObject({ image: cached.image });
            break;
          }
          const failed = Number(/Dockerfile:(\d+)/.exec(cached.stderr)?.[1]);
          history.push(cached.image === undefined ? repair(recipe, failed, random) : edit(recipe, random));
        }
        for (const { context, home } of machines)
          for (const directory of [context, home]) rmSync(directory, { recursive: true });
      }
      const { recipes, cachedSteps, sharedSteps, failing } = count;
      process.stderr.write(
        `seed ${seed}: ${count.edits} edits of ${recipes} recipes, ${cachedSteps} steps from the cache, ${sharedSteps} of them from the scope, ${failing} builds that fail\n`,
      );
      expect(cachedSteps).toBeGreaterThan(count.edits / 4);
      expect(failing).toBeLessThan(count.edits / 2);
    },
    async close() {
      await engine.stop();
      await source.stop();
    },
  };
}

/** Starts a server of the file that recipes ADD. */
export function startSource() {
  let version = 1;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: (request) =>
      request.headers.get("if-none-match") === `"${version}"`
        ? new Response(null, { status: 304 })
        : new Response(`content ${version}`, { headers: { etag: `"${version}"` } }),
  });
  return {
    address: `${server.url}fetched.bin`,
    setVersion(next: number) {
      version = next;
    },
    stop: () => server.stop(true),
  };
}

interface Machine {
  context: string;
  home: string;
}

function copyTo(directory: string, { context }: Recipe): void {
  rmSync(directory, { recursive: true });
  cpSync(context, directory, { recursive: true, verbatimSymlinks: true, preserveTimestamps: true });
}

interface Built {
  /** `undefined` if the build failed. */
  image: string | undefined;
  stderr: string;
}

export function differences(cached: Tree, fresh: Tree): string[] {
  const paths = new Set([...cached.keys(), ...fresh.keys()]);
  return [...paths].flatMap((path) => {
    const [one, other] = [cached.get(path)?.line, fresh.get(path)?.line];
    return one === other ? [] : [`${path}: cached ${one ?? "nothing"}, fresh ${other ?? "nothing"}`];
  });
}
