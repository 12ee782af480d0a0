import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runUntilSettled } from "../bench.ts";
import { makeBuildah } from "../buildah.ts";
import { writeManyFiles } from "../contexts.ts";
import { makeDocker, timeDocker } from "../docker.ts";
import { median, run } from "../measure.ts";

const dockerfile = "FROM base:1\nCOPY . /app/\nRUN true\n";
/** The number of cached builds of each builder. */
const cachedTimes = 5;

/** Compares 20,000 files of 4 KiB on the engine, first build and cached, with `docker build` and buildah. */
export async function measureEngineFiles(bench: Bench): Promise<Row[]> {
  const { first, cached } = await compare(bench, "engine-files", (context, round) =>
    writeManyFiles(context, { count: 20_000, bytes: 4096, word: `round${round}` }),
  );
  const name = "20,000 files";
  return [
    row(`${name}, first build`, first.bough, first.docker, "docker", 2),
    row(`${name}, first build`, first.bough, first.buildah, "buildah", 5),
    row(`${name}, cached`, cached.bough, cached.docker, "docker", 2),
  ];
}

/** Compares one file of 300 MB of random bytes. */
export async function measureEngineFile(bench: Bench): Promise<Row[]> {
  const { first } = await compare(bench, "engine-file", async (context) => {
    const words = [
      "dd",
      "if=/dev/urandom",
      `of=${join(context, "large")}`,
      "bs=1M",
      "count=300",
      "status=none",
    ];
    await run({ words });
  });
  return [row("one file of 300 MB, first build", first.bough, first.docker, "docker", 2)];
}

/** Compares a RUN that mounts 20,000 files of 4 KiB: the first, and another command that mounts the same files. */
export async function measureEngineMounts(bench: Bench): Promise<Row[]> {
  const docker = await makeDocker(bench);
  const builders = {
    bough: async (context: string) => (await run(bench.build(context, "engine"))).milliseconds,
    docker: (context: string) => timeDocker(docker, context),
  };
  const samples = { first: { bough: [], docker: [] }, other: { bough: [], docker: [] } } as {
    [Kind in "first" | "other"]: Record<"bough" | "docker", number[]>;
  };
  for (let round = 0; round < Math.min(3, bench.times); round++) {
    const context = bench.directory(`engine-mounts-${round}`);
    writeManyFiles(context, { count: 20_000, bytes: 4096, word: `mount${round}` });
    for (const kind of ["first", "other"] as const) {
      const command = `RUN --mount=type=bind,target=/context true ${kind}`;
      writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${command}\n`);
      for (const each of ["bough", "docker"] as const) {
        Bun.spawnSync(["sync"]);
        samples[kind][each].push(await builders[each](context));
      }
    }
  }
  const compared = (name: string, { bough, docker }: Record<"bough" | "docker", number[]>, atLeast: number) =>
    row(name, median(bough), median(docker), "docker", atLeast);
  return [
    compared("RUN that mounts 20,000 files", samples.first, 1.5),
    compared("another RUN that mounts them", samples.other, 0.5),
  ];
}

type Times = Record<"bough" | "docker" | "buildah", number>;

/**
 * Runs rounds with a new context each, which no builder has seen. Removes nothing before the end: for minutes after a removal of
 * many files, ext4 makes new files far more slowly.
 */
async function compare(
  bench: Bench,
  name: string,
  write: (context: string, round: number) => void | Promise<void>,
): Promise<{ first: Times; cached: Times }> {
  const docker = await makeDocker(bench);
  const buildah = await makeBuildah(bench);
  const builders = {
    bough: async (context: string) => (await run(bench.build(context, "engine"))).milliseconds,
    docker: (context: string) => timeDocker(docker, context),
    buildah: async (context: string) => (await run(buildah.build(context))).milliseconds,
  };
  const names = ["bough", "docker", "buildah"] as const;
  const samples = {
    first: { bough: [], docker: [], buildah: [] },
    cached: { bough: [], docker: [], buildah: [] },
  } as {
    [Kind in "first" | "cached"]: Record<keyof Times, number[]>;
  };
  let last = "";
  for (let round = 0; round < Math.min(3, bench.times); round++) {
    last = bench.directory(`${name}-${round}`);
    writeFileSync(join(last, "Dockerfile"), dockerfile);
    await write(last, round);
    for (const each of names) {
      // Writes of the builder before reach the disk now.
      Bun.spawnSync(["sync"]);
      samples.first[each].push(await builders[each](last));
    }
  }
  await runUntilSettled(bench.build(last, "engine"));
  for (let time = 0; time < cachedTimes; time++)
    for (const each of names) samples.cached[each].push(await builders[each](last));
  const medians = (of: Record<keyof Times, number[]>): Times => ({
    bough: median(of.bough),
    docker: median(of.docker),
    buildah: median(of.buildah),
  });
  return { first: medians(samples.first), cached: medians(samples.cached) };
}

function row(name: string, bough: number, other: number, peer: string, atLeast: number): Row {
  return {
    case: name,
    bough: `${bough.toFixed(0)} ms, engine`,
    against: `${other.toFixed(0)} ms, ${peer}`,
    figure: other / bough,
    unit: "times as fast",
    goal: { atLeast },
  };
}
