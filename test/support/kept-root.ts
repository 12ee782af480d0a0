/** Roots of Debian, made once by mmdebstrap from the machine's own package mirror, and kept outside of the tree. */
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { cacheDirectory } from "./kept-results.ts";

export interface RootRecipe {
  /** The beginning of the directory's name. */
  name: string;
  suite: string;
  /** Options of mmdebstrap. */
  options: readonly string[];
}

/** Returns the root's path. */
export async function findRoot(recipe: RootRecipe): Promise<string> {
  const cache = cacheDirectory();
  mkdirSync(cache, { recursive: true });
  const text = JSON.stringify(recipe);
  const digest = new Bun.CryptoHasher("sha256").update(text).digest("hex").slice(0, 12);
  const directory = join(cache, `${recipe.name}-${recipe.suite}-${digest}`);
  // Several processes run tests: the first one makes it, and the others wait.
  if (!existsSync(directory))
    await run([
      "flock",
      join(cache, `${recipe.name}.lock`),
      ...[process.execPath, import.meta.path, directory, text],
    ]);
  return directory;
}

/** Runs in a process of its own, with the lock. */
async function makeRoot(directory: string, { suite, options }: RootRecipe): Promise<void> {
  if (existsSync(directory)) return;
  const unfinished = mkdtempSync(join(cacheDirectory(), "unfinished-"));
  try {
    const root = join(unfinished, "root");
    await run(["mmdebstrap", ...options, suite, root, await sourceOf(suite)]);
    renameSync(root, directory);
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
}

/** Returns the line of this machine's package sources for its own suite, with another suite. */
async function sourceOf(suite: string): Promise<string> {
  const format = "deb $(SITE) $(RELEASE) $(COMPONENT)";
  const lines = (await run(["apt-get", "indextargets", "--format", format, "Created-By: Packages"])).split(
    "\n",
  );
  // Not those of updates and security: their names have a hyphen.
  const own = lines.find((line) => /^deb \S+ [a-z]+ main$/.test(line));
  if (own === undefined) throw new Error("apt has no package sources: run apt-get update");
  return own.replace(/ [a-z]+ main$/, ` ${suite} main`);
}

async function run(command: readonly string[]): Promise<string> {
  const child = Bun.spawn([...command], { stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  if ((await child.exited) !== 0) throw new Error(`${command.join(" ")}:\n${stderr.slice(-2000)}`);
  return stdout;
}

const [, , place = "", recipe = ""] = process.argv;
if (import.meta.main) await makeRoot(place, JSON.parse(recipe));
