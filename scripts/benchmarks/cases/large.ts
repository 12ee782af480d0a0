import { rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runFresh, type Service } from "../bench.ts";
import { alternate, type Command, run } from "../measure.ts";

const gibibyte = 2 ** 30;
const hashOnce = join(import.meta.dir, "../hash-once.ts");

/** Compares hashing and sending a file of 4 GiB with `sha256sum` and `curl`, one after the other. */
export async function measureLargeFile(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("large-file");
  const file = makeSparse(join(context, "large"), 4 * gibibyte);
  writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY large /\nRUN true\n");
  const build = bench.build(context, service);
  const figures = await compare(bench, service, build, [
    { words: ["sha256sum", file] },
    { words: ["curl", "--silent", "--fail", "-X", "POST", "-T", file, `${service.url}/v1/files`] },
  ]);
  rmSync(file);
  const read = figures.readBytes / 2 ** 30;
  return [
    ...rows("one file of 4 GiB", "sha256sum, then curl", figures, [0.6, 100]),
    {
      case: "one file of 4 GiB",
      bough: `${read.toFixed(2)} GiB read`,
      against: "its size",
      figure: read / 4,
      unit: "times",
      goal: { atMost: 1.05 },
    },
  ];
}

/** Compares hashing four files of 512 MiB on all processors, without sending them, with the same code on one processor. */
export async function measureHashing(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("hashing");
  const files = [1, 2, 3, 4].map((each) => makeSparse(join(context, `large${each}`), gibibyte / 2));
  writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY large* /\n");
  const explain = bench.build(context, service, "--explain");
  const [bough = 0, reference = 0] = await alternate(
    Math.min(5, bench.times),
    async () => (await runFresh(explain)).milliseconds,
    async () => (await run({ words: [process.execPath, hashOnce, ...files] })).milliseconds,
  );
  const watched = await watch(explain);
  for (const file of files) rmSync(file);
  return rows("four files of 512 MiB, hashed", "one thread", { bough, reference, ...watched }, [1.2, 100]);
}

/** Compares `ADD` of a URL of 2 GiB with two `curl`s and a pipe. */
export async function measureUrl(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("url");
  const file = makeSparse(`${context}-source`, 2 * gibibyte);
  const source = await bench.startService("--file", file);
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\nADD ${source.url}/large /\nRUN true\n`);
  const build = bench.build(context, service);
  const figures = await compare(bench, service, build, [
    pipeOf(`${source.url}/large`, `${service.url}/v1/files`),
  ]);
  rmSync(file);
  return rows("ADD of 2 GiB", "curl | curl -T -", figures, [0.9, 100]);
}

/** Compares `COPY --from` of 2 GiB on a service that can't copy between images with two `curl`s and a pipe. */
export async function measureImageFile(bench: Bench): Promise<Row[]> {
  const context = bench.directory("image-file");
  const file = makeSparse(`${context}-source`, 2 * gibibyte);
  const service = await bench.startService("--image-file", file);
  writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY --from=base:1 /large /copy\nRUN true\n");
  const build = bench.build(context, service, "--docker");
  const image = `${service.url}/v1/inspect/base/download?path=/large`;
  const figures = await compare(bench, service, build, [pipeOf(image, `${service.url}/v1/files`)]);
  rmSync(file);
  return rows("COPY --from of 2 GiB", "curl | curl -T -", figures, [0.6, 120]);
}

interface Figures {
  /** Milliseconds. */
  bough: number;
  reference: number;
  peakBytes: number;
  readBytes: number;
}

/** Compares the build with the reference commands, one after the other. Each run begins with an empty service. */
async function compare(
  bench: Bench,
  service: Service,
  build: Command,
  references: readonly Command[],
): Promise<Figures> {
  const [bough = 0, reference = 0] = await alternate(
    Math.min(5, bench.times),
    async () => {
      await service.reset();
      return (await runFresh(build)).milliseconds;
    },
    async () => {
      await service.reset();
      let milliseconds = 0;
      for (const command of references) milliseconds += (await run(command)).milliseconds;
      return milliseconds;
    },
  );
  return { bough, reference, ...(await watch(build)) };
}

function pipeOf(from: string, to: string): Command {
  const script = 'curl --silent --fail "$0" | curl --silent --fail -X POST -T - "$1"';
  return { words: ["sh", "-c", script, from, to] };
}

/** Returns the maximum of several runs. None is timed: watching a process takes processor time from it. */
async function watch(build: Command): Promise<Pick<Figures, "peakBytes" | "readBytes">> {
  let peakBytes = 0;
  let readBytes = 0;
  for (let time = 0; time < watchedRuns; time++) {
    const run = await runFresh(build, { watches: true });
    peakBytes = Math.max(peakBytes, run.peakBytes);
    readBytes = Math.max(readBytes, run.readBytes);
  }
  return { peakBytes, readBytes };
}

const watchedRuns = 3;

/** Makes a file of zeros, which take as long to hash and send as other bytes, but no space on the disk. */
function makeSparse(path: string, bytes: number): string {
  writeFileSync(path, "");
  truncateSync(path, bytes);
  return path;
}

function rows(
  name: string,
  what: string,
  { bough, reference, peakBytes }: Figures,
  [atLeast, maxMebibytes]: [atLeast: number, maxMebibytes: number],
): Row[] {
  return [
    {
      case: name,
      bough: `${(bough / 1000).toFixed(2)} s`,
      against: `${(reference / 1000).toFixed(2)} s, ${what}`,
      figure: reference / bough,
      unit: "of its speed",
      goal: { atLeast },
    },
    {
      case: name,
      bough: "resident memory",
      against: "",
      figure: peakBytes / 2 ** 20,
      unit: "MiB",
      goal: { atMost: maxMebibytes },
    },
  ];
}
