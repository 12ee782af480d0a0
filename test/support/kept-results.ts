/**
 * Results of other builders, because Docker and buildah take most of the time of tests that compare with them.
 *
 * Recorded results are in the repository, beside the test: `NAME.recorded` for `NAME.test.ts`, a line for each. They hold for the
 * inputs on any machine. `UPDATE_GOLDEN=1` records the results of a run; delete the file first to drop those of former inputs.
 *
 * Other results are kept between runs on this machine, as long as nothing on which they depend changes: the inputs, the bases, the
 * programs, the kernel, and the code of the test and its imports, except for bough's side.
 *
 * A result that bough's does not equal is made again before the test fails.
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

/** What a result is made from. */
interface Origin {
  /** JSON, the same on each machine. */
  inputs: unknown;
  /** Digests of the base images, which have files of this machine. */
  bases?: readonly string[];
}

export interface KeptResults {
  /**
   * Calls `check`, which throws if a result is wrong, with the recorded result for the same inputs, and with the kept one. If there
   * is none or they fail, calls `make` and checks its result, because theirs may have depended on the machine or the time.
   */
  check<Result, Packed>(
    origin: Origin,
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
  const code = digestOf([release(), versions.map(outputOf), sourcesOf(test)]);
  const recorded = readRecords(test);
  return {
    async check({ inputs, bases = [] }, { pack, unpack }, make, check) {
      const path = join(directory, `${digestOf([code, bases, inputs])}.json.gz`);
      if (isUsed && !isRecording && (await passes(check, unpack, recorded.find(inputs)))) return;
      if (isUsed && existsSync(path)) {
        const packed = read(path);
        if (await passes(check, unpack, packed)) return recorded.keep(inputs, packed);
      }
      const result = await make();
      await check(result);
      const packed = pack(result);
      write(path, packed);
      recorded.keep(inputs, packed);
    },
  };
}

const isRecording = process.env.UPDATE_GOLDEN === "1";

function readRecords(test: string) {
  const file = test.replace(/\.test\.ts$/, ".recorded");
  const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n").filter(Boolean) : [];
  const records = new Map(
    lines.map((line) => {
      const [inputs, packed] = JSON.parse(line);
      return [JSON.stringify(inputs), packed];
    }),
  );
  return {
    find: (inputs: unknown) => records.get(JSON.stringify(inputs)),
    /** Writes the file, if results are to be recorded. */
    keep(inputs: unknown, packed: unknown): void {
      if (!isRecording) return;
      records.set(JSON.stringify(inputs), packed);
      const sorted = [...records].sort(([one], [other]) => (one < other ? -1 : 1));
      writeFileSync(file, sorted.map(([key, value]) => `[${key},${JSON.stringify(value)}]\n`).join(""));
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

async function passes<Result, Packed>(
  check: (result: Result) => void | Promise<void>,
  unpack: (packed: Packed) => Result,
  packed: Packed | undefined,
): Promise<boolean> {
  if (packed === undefined) return false;
  try {
    await check(unpack(packed));
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
