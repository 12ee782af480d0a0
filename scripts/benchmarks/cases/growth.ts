import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runUntilSettled } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { writeManyFiles } from "../contexts.ts";
import { growthRow, measurePoint } from "../growth.ts";
import { median, run } from "../measure.ts";
import { makeBundle } from "./steps.ts";

const stepCounts = [10, 100, 1_000];
const fileCounts = [1_000, 20_000, 100_000, 500_000];
const layerCounts = [10, 100, 400];
const buildCounts = [1, 2, 4, 8];
/** Large points take minutes, so each is measured few times. */
const timesOf = ({ times }: Bench) => Math.min(3, times);

function write(context: string, lines: readonly string[]): void {
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${lines.join("\n")}\n`);
}

/** Returns the processor time of a container without bough. */
async function timeRunc(bench: Bench): Promise<number> {
  const bundle = await makeBundle(bench);
  const words = () => ["runc", "run", "--bundle", bundle, `bench-${crypto.randomUUID()}`];
  return (await measurePoint(1, Math.max(3, bench.times), () => ({ words: words() }))).seconds;
}

/** Measures 10 to 1,000 RUNs that take no time: made, and cached. */
export async function measureGrowingSteps(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const [made, cached] = [[], []] as [Point[], Point[]];
  for (const count of stepCounts) {
    const context = bench.directory(`growing-steps-${count}`);
    write(
      context,
      Array.from({ length: count }, (_, step) => `RUN true ${step}`),
    );
    made.push(await measurePoint(count, timesOf(bench), () => bench.build(context, "engine", "--no-cache")));
    await runUntilSettled(bench.build(context, "engine"));
    cached.push(await measurePoint(count, bench.times, () => bench.build(context, "engine")));
  }
  const seconds = (await timeRunc(bench)) * Math.max(...stepCounts);
  const floor = { program: "runc run", seconds };
  return [
    growthRow({ name: "RUN true", things: "steps", points: made, floor }),
    growthRow({ name: "RUN true, cached", things: "steps", points: cached }),
  ];
}

type Point = Awaited<ReturnType<typeof measurePoint>>;

/** Measures 1,000 to 500,000 files of 1 KiB: a first build, one of which a file has changed, and a cached one. */
export async function measureGrowingFiles(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const [first, changed, cached] = [[], [], []] as [Point[], Point[], Point[]];
  let copied = 0;
  for (const count of fileCounts) {
    const times = count > 100_000 ? 1 : timesOf(bench);
    let context = "";
    first.push(
      await measurePoint(count, times, (time) => {
        context = bench.directory(`growing-files-${count}-${time}`);
        writeManyFiles(context, { count, bytes: 1024, word: `growing${time}`, below: "src" });
        write(context, ["COPY src /src"]);
        return bench.build(context, "engine", "--docker");
      }),
    );
    await runUntilSettled(bench.build(context, "engine", "--docker"));
    changed.push(
      await measurePoint(count, times, (time) => {
        writeFileSync(join(context, "src/d0/f0"), `changed ${time}\n`);
        return bench.build(context, "engine", "--docker");
      }),
    );
    await runUntilSettled(bench.build(context, "engine", "--docker"));
    cached.push(await measurePoint(count, times, () => bench.build(context, "engine", "--docker")));
    const target = join(bench.directory("growing-copies"), String(count));
    copied = (await run({ words: ["cp", "-a", context, target] })).processorSeconds;
  }
  const floor = { program: "cp -a", seconds: copied };
  const at20 = (points: readonly Point[]) =>
    points.find(({ size }) => size === 20_000)?.seconds ?? Number.NaN;
  return [
    growthRow({ name: "first build", things: "files", points: first, floor }),
    growthRow({ name: "one file changed", things: "files", points: changed }),
    growthRow({ name: "cached", things: "files", points: cached }),
    {
      case: "one of 20,000 files changed",
      bough: `${at20(changed).toFixed(2)} s of a processor`,
      against: `${at20(first).toFixed(2)} s, first build`,
      figure: at20(changed) / at20(first),
      unit: "times",
      goal: { atMost: 0.5 },
    },
  ];
}

/** Measures 10 to 400 layers of a file each, and one more layer on top of them. */
export async function measureGrowingLayers(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const [made, added] = [[], []] as [Point[], Point[]];
  for (const count of layerCounts) {
    const context = bench.directory(`growing-layers-${count}`);
    writeFileSync(join(context, "file"), "content\n");
    const copies = Array.from({ length: count }, (_, layer) => `COPY file /layers/${layer}`);
    write(context, copies);
    made.push(
      await measurePoint(count, timesOf(bench), () =>
        bench.build(context, "engine", "--docker", "--no-cache"),
      ),
    );
    await run(bench.build(context, "engine", "--docker"));
    added.push(
      await measurePoint(count, timesOf(bench), (time) => {
        write(context, [...copies, `RUN echo ${time} > /layers/added`]);
        return bench.build(context, "engine", "--docker");
      }),
    );
  }
  const script = `for layer in $(seq ${Math.max(...layerCounts)}); do mkdir $layer; cp ../file $layer; done`;
  const directory = bench.directory("growing-layers-copies/made");
  writeFileSync(join(directory, "../file"), "content\n");
  const copied = (await run({ words: ["sh", "-c", script], cwd: directory })).processorSeconds;
  const floors = {
    copies: { program: "mkdir and cp", seconds: copied },
    run: { program: "runc run", seconds: await timeRunc(bench) },
  };
  return [
    growthRow({ name: "COPY of a file", things: "layers", points: made, floor: floors.copies }),
    growthRow({ name: "one RUN more", things: "layers", points: added, floor: floors.run }),
  ];
}

/** Compares 1 to 8 builds at once, each with its own files, on one engine. */
export async function measureGrowingBuilds(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const points: Point[] = [];
  for (const count of buildCounts) {
    const contexts = Array.from({ length: count }, (_, index) => {
      const context = bench.directory(`growing-builds-${count}-${index}`);
      writeManyFiles(context, { count: 1000, bytes: 4096, word: `build${count}-${index}` });
      write(context, ["COPY . /app/", ...Array.from({ length: 10 }, (_, line) => `RUN true ${line}`)]);
      return context;
    });
    const totals: number[] = [];
    let peakBytes = 0;
    for (let time = 0; time < timesOf(bench); time++) {
      const runs = await Promise.all(
        contexts.map((each) => run(bench.build(each, "engine", "--no-cache"), { watches: true })),
      );
      totals.push(runs.reduce((sum, { processorSeconds }) => sum + processorSeconds, 0));
      peakBytes = Math.max(peakBytes, ...runs.map((each) => each.peakBytes));
    }
    points.push({ size: count, seconds: median(totals), peakBytes });
  }
  const [{ seconds } = { seconds: Number.NaN }] = points;
  const floor = { program: "one, eight times", seconds: seconds * Math.max(...buildCounts) };
  return [growthRow({ name: "at once", things: "builds", points, floor })];
}
