import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runUntilSettled } from "../bench.ts";
import { makeBuildah } from "../buildah.ts";
import { writeDockerfile, writeManyFiles } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

/** Measures a build whose steps are all cached. */
export async function measureCachedSteps(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const context = bench.directory("cached-steps");
  writeManyFiles(context, { count: 200, bytes: 4096 });
  writeDockerfile(context, 20);
  const build = bench.build(context, service, "--tag", "app");
  await runUntilSettled(build);
  await service.reset();
  const [milliseconds = 0] = await alternate(bench.times * 2, async () => (await run(build)).milliseconds);
  const { requests, handlerMilliseconds } = await service.stats();
  const own = handlerMilliseconds / (bench.times * 2);
  const sent = Object.values(requests).reduce((sum, each) => sum + each, 0) / (bench.times * 2);
  const name = "cached, 20 RUN, 200 files";
  return [
    {
      case: name,
      bough: `${milliseconds.toFixed(1)} ms`,
      against: `${own.toFixed(1)} ms, server's own`,
      figure: milliseconds - own,
      unit: "ms over the server's own time",
      goal: { atMost: 30 },
    },
    {
      case: name,
      bough: Object.entries(requests)
        .map(([call]) => call)
        .join(", "),
      against: "FROM's image, the tag",
      figure: sent,
      unit: "requests",
      goal: { atMost: 2 },
    },
  ];
}

export async function measureCachedFiles(bench: Bench): Promise<Row[]> {
  const count = 10_000;
  const service = await bench.startService();
  const full = bench.directory("cached-files");
  const empty = bench.directory("cached-empty");
  writeManyFiles(full, { count, bytes: 4096 });
  for (const context of [full, empty]) writeDockerfile(context, 1);
  for (const context of [full, empty]) await runUntilSettled(bench.build(context, service));
  const time = (context: string) => async () => (await run(bench.build(context, service))).milliseconds;
  const [withFiles = 0, without = 0] = await alternate(bench.times * 2, time(full), time(empty));
  return [
    {
      case: "cached, 10,000 files",
      bough: `${withFiles.toFixed(0)} ms`,
      against: `${without.toFixed(0)} ms, empty context`,
      figure: ((withFiles - without) / count) * 1000,
      unit: "µs a file",
      goal: { atMost: 5 },
    },
    {
      case: "cached, 10,000 files",
      bough: "files opened",
      against: "",
      figure: await countOpened(full, bench.build(full, service).words, bench.build(full, service).env ?? {}),
      unit: "files",
      goal: { atMost: 0 },
    },
    await compareWithBuildah(bench, full),
  ];
}

async function countOpened(context: string, words: readonly string[], env: Record<string, string>) {
  const log = `${context}-strace`;
  await run({ words: ["strace", "-f", "-e", "trace=open,openat,openat2", "-o", log, ...words], env });
  const text = await Bun.file(log).text();
  return text.split("\n").filter((line) => new RegExp(`"${context}/d\\d+/f`).test(line)).length;
}

async function compareWithBuildah(bench: Bench, context: string): Promise<Row> {
  const buildah = await makeBuildah(bench);
  writeFileSync(join(context, "Dockerfile"), "FROM base:1\nCOPY . /app/\nRUN true\n");
  const ours = bench.build(context, "engine");
  const theirs = buildah.build(context);
  await runUntilSettled(ours);
  await run(theirs);
  const [bough = 0, other = 0] = await alternate(
    bench.times,
    async () => (await run(ours)).milliseconds,
    async () => (await run(theirs)).milliseconds,
  );
  return {
    case: "cached, 10,000 files",
    bough: `${bough.toFixed(0)} ms, engine`,
    against: `${other.toFixed(0)} ms, buildah`,
    figure: other / bough,
    unit: "times as fast",
    goal: { atLeast: 8 },
  };
}
