/**
 * Results of other builders, kept between runs, because Docker and buildah take most of the time of tests that compare with
 * them. A result is used only if nothing on which it depends has changed: the inputs, the programs, the kernel, and the code
 * of the test and its imports, except for bough's side.
 */
import {
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { release, userInfo } from "node:os";
import { dirname, join, relative } from "node:path";

/** The directory of what tests keep. `scripts/test` sets it, because tests have no XDG_CACHE_HOME and another HOME. */
export function cacheDirectory(): string {
  return process.env.TEST_CACHE ?? join(userInfo().homedir, ".cache", "bough-test");
}

interface KeptOptions {
  /** The test file's path. */
  test: string;
  /** Commands that print the versions of the programs that make the results. */
  versions: readonly (readonly string[])[];
}

/** Converts a result to JSON and back. */
export interface ResultFormat<Result, Packed> {
  pack(result: Result): Packed;
  unpack(packed: Packed): Result;
}

export interface KeptResults {
  /**
   * Calls `check`, which throws if a result is wrong, with the kept result for the same inputs. If there is none or it fails,
   * calls `make` and checks its result, because a kept result may have depended on the time of its run.
   */
  check<Result, Packed>(
    inputs: unknown,
    format: ResultFormat<Result, Packed>,
    make: () => Promise<Result>,
    check: (result: Result) => void | Promise<void>,
  ): Promise<void>;
}

/** The format of results that are JSON already. */
export function asItIs<Result>(): ResultFormat<Result, Result> {
  return { pack: (result) => result, unpack: (packed) => packed };
}

const keptMilliseconds = 30 * 24 * 60 * 60 * 1000;

export function keepResults({ test, versions }: KeptOptions): KeptResults {
  const directory = join(cacheDirectory(), "results");
  // FAST_CHECK_TIMES asks for more than usual, so nothing kept is used.
  const isUsed = Number(process.env.FAST_CHECK_TIMES ?? 1) <= 1;
  mkdirSync(directory, { recursive: true });
  removeOld(directory);
  const origin = digestOf([release(), versions.map(outputOf), sourcesOf(test)]);
  return {
    async check(inputs, { pack, unpack }, make, check) {
      const path = join(directory, `${digestOf([origin, inputs])}.json.gz`);
      if (isUsed && existsSync(path) && (await passes(check, unpack(read(path))))) return;
      const result = await make();
      await check(result);
      write(path, pack(result));
    },
  };
}

function read(path: string) {
  utimesSync(path, new Date(), new Date());
  return JSON.parse(Buffer.from(Bun.gunzipSync(readFileSync(path))).toString());
}

function write(path: string, packed: unknown): void {
  const unfinished = `${path}.${process.pid}`;
  writeFileSync(unfinished, Bun.gzipSync(JSON.stringify(packed), { level: 1 }));
  renameSync(unfinished, path);
}

/** The digest of all files below a directory with their modes, or of a single file. */
export function digestOfFiles(path: string): string {
  const names = statSync(path).isDirectory()
    ? readdirSync(path, { recursive: true, encoding: "utf8" })
    : [""];
  const files = names.sort().map((name) => {
    const file = join(path, name);
    const stat = lstatSync(file);
    if (stat.isSymbolicLink()) return [name, readlinkSync(file)];
    return [name, stat.mode, stat.isFile() ? digestOf(readFileSync(file)) : ""];
  });
  return digestOf(files);
}

/** The digest of an image. `source` is its name for skopeo: `oci:<layout>:<tag>` or `docker-archive:<file>`. */
export function digestOfImage(source: string): string {
  return digestOfFiles(source.split(":")[1] ?? "");
}

/** Paths and digests of a test file and all of its imports, except for bough's side. */
function sourcesOf(path: string, found = new Map<string, string>()): [string, string][] {
  const text = readFileSync(path, "utf8");
  found.set(path, digestOf(text));
  if (!path.endsWith(".ts")) return [];
  for (const { path: name } of new Bun.Transpiler({ loader: "ts" }).scanImports(text)) {
    const imported = join(dirname(path), name);
    if (name.startsWith(".") && !found.has(imported) && !ownSide.test(imported)) sourcesOf(imported, found);
  }
  return [...found]
    .map(([file, digest]): [string, string] => [relative(import.meta.dir, file), digest])
    .sort();
}

/** bough, and what runs it for tests. The results of other builders do not depend on these files. */
const ownSide = /\/src\/|\/(bough|compiled|engine|ordinary-user|plain-service)\.ts$/;

async function passes<Result>(
  check: (result: Result) => void | Promise<void>,
  result: Result,
): Promise<boolean> {
  try {
    await check(result);
    return true;
  } catch {
    return false;
  }
}

function digestOf(value: unknown): string {
  const bytes = value instanceof Uint8Array ? value : JSON.stringify(value);
  return new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
}

function outputOf(command: readonly string[]): string {
  const { stdout, success } = Bun.spawnSync([...command], { stderr: "ignore" });
  if (!success) throw new Error(`${command.join(" ")} fails`);
  return stdout.toString();
}

function removeOld(directory: string): void {
  for (const name of readdirSync(directory)) {
    const path = join(directory, name);
    const modified = statSync(path, { throwIfNoEntry: false })?.mtimeMs ?? Number.POSITIVE_INFINITY;
    if (modified < Date.now() - keptMilliseconds) rmSync(path, { force: true });
  }
}
