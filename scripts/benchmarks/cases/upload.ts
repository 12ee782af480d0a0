import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runFresh } from "../bench.ts";
import { writeDockerfile, writeManyFiles } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

const serialClient = join(import.meta.dir, "../serial-client.ts");
const count = 10_000;
const farCount = 200;
const awayMilliseconds = 25;

/** Measures a first build, which hashes and sends all files. */
export async function measureFirstBuild(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("first-build");
  writeManyFiles(context, { count, bytes: 4096 });
  writeDockerfile(context, 1);
  const build = bench.build(context, service);
  const [bough = 0, serial = 0] = await alternate(
    bench.times,
    async () => {
      await service.reset();
      return (await runFresh(build)).milliseconds;
    },
    async () => {
      await service.reset();
      const words = [process.execPath, serialClient, service.url, context];
      // The client waits half a second for its only RUN, which is not measured here.
      return (await run({ words })).milliseconds - 500;
    },
  );
  await service.reset();
  await runFresh(build);
  const { requests, contents, connections } = await service.stats();
  const sent = Object.entries(requests).reduce(
    (sum, [call, times]) => sum + (call.includes("/files") ? times : 0),
    0,
  );
  const name = "first build, 10,000 files";
  return [
    {
      case: name,
      bough: `${bough.toFixed(0)} ms`,
      against: "",
      figure: (count / bough) * 1000,
      unit: "files a second",
      goal: { atLeast: 4000 },
    },
    {
      case: name,
      bough: `${bough.toFixed(0)} ms`,
      against: `${serial.toFixed(0)} ms, serial client`,
      figure: serial / bough,
      unit: "times as fast",
      goal: { atLeast: 4 },
    },
    {
      case: name,
      bough: `${sent} requests for ${contents} contents`,
      against: "",
      figure: sent / contents,
      unit: "requests a content",
      goal: { atMost: 1.2 },
    },
    { case: name, bough: "", against: "", figure: connections, unit: "connections", goal: { atMost: 32 } },
  ];
}

/** Measures a first build on a far service, where each request waits for the network, not for this machine. */
export async function measureFarService(bench: Bench): Promise<Row[]> {
  const service = await bench.startService("--away", String(awayMilliseconds));
  const context = bench.directory("far-service");
  writeManyFiles(context, { count: farCount, bytes: 4096 });
  writeDockerfile(context, 1);
  const build = bench.build(context, service);
  const [bough = 0, serial = 0] = await alternate(
    Math.min(bench.times, 3),
    async () => {
      await service.reset();
      return (await runFresh(build)).milliseconds;
    },
    async () => {
      await service.reset();
      return (
        (await run({ words: [process.execPath, serialClient, service.url, context] })).milliseconds - 500
      );
    },
  );
  return [
    {
      case: `first build, ${farCount} files, a service ${awayMilliseconds} ms away`,
      bough: `${bough.toFixed(0)} ms`,
      against: `${serial.toFixed(0)} ms, serial client`,
      figure: serial / bough,
      unit: "times as fast",
      goal: { atLeast: 20 },
    },
  ];
}

export async function measureDuplicates(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("duplicates");
  writeManyFiles(context, { count, bytes: 4096, contents: count / 2 });
  writeDockerfile(context, 1);
  const { milliseconds } = await runFresh(bench.build(context, service));
  const { contents, repeated } = await service.stats();
  return [
    {
      case: "same, 50 % duplicates",
      bough: `${contents} contents sent in ${milliseconds.toFixed(0)} ms`,
      against: "",
      figure: repeated,
      unit: "sent again",
      goal: { atMost: 0 },
    },
  ];
}

/** Measures the peak memory with 100,000 files. */
export async function measureMemory(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("memory");
  writeManyFiles(context, { count: 100_000, bytes: 64 });
  writeDockerfile(context, 1);
  const build = bench.build(context, service);
  const first = await runFresh(build, { watches: true });
  const again = await run(build, { watches: true });
  rmSync(context, { recursive: true });
  const row = (name: string, { peakBytes, milliseconds }: typeof first): Row => ({
    case: `memory, 100,000 files, ${name}`,
    bough: `${(milliseconds / 1000).toFixed(1)} s`,
    against: "",
    figure: peakBytes / 2 ** 20,
    unit: "MiB",
    goal: { atMost: 250 },
  });
  return [row("first build", first), row("cached", again)];
}

/** Measures that an ignored tree costs nothing. */
export async function measureIgnoredTree(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const [plain, ignored] = [bench.directory("plain"), bench.directory("ignored")];
  for (const context of [plain, ignored]) {
    writeManyFiles(context, { count: 1000, bytes: 64, below: "src" });
    writeDockerfile(context, 1);
    await Bun.write(join(context, ".dockerignore"), "data/\n");
  }
  writeManyFiles(ignored, { count: 99_000, bytes: 64, below: "data" });
  for (const context of [plain, ignored]) await run(bench.build(context, service));
  const time = (context: string) => async () => (await run(bench.build(context, service))).milliseconds;
  const [without = 0, withTree = 0] = await alternate(bench.times * 3, time(plain), time(ignored));
  rmSync(ignored, { recursive: true });
  return [
    {
      case: "99,000 of 100,000 files ignored",
      bough: `${withTree.toFixed(0)} ms`,
      against: `${without.toFixed(0)} ms, without them`,
      figure: withTree / without,
      unit: "times",
      goal: { atMost: 1.3 },
    },
  ];
}
