import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runUntilSettled } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { makeDocker, timeDocker } from "../docker.ts";
import { alternate, run } from "../measure.ts";

const indexes = [0, 1, 2, 3, 4];

const builds: readonly { name: string; dockerfile: string; goals: { first: number; cached: number } }[] = [
  {
    name: "20 RUN true",
    dockerfile: ["FROM base:1", ...Array.from({ length: 20 }, (_, index) => `RUN true ${index}`)].join("\n"),
    goals: { first: 2, cached: 2 },
  },
  {
    name: "five stages with COPY --from",
    dockerfile: indexes
      .flatMap((stage) => [
        `FROM base:1 AS stage${stage}`,
        ...(stage === 0 ? [] : [`COPY --from=stage${stage - 1} /made${stage - 1} /from${stage}`]),
        ...[1, 2, 3, 4].map((step) => `RUN echo ${step} >> /made${stage}`),
      ])
      .join("\n"),
    goals: { first: 1.5, cached: 2 },
  },
];

/** Compares builds whose steps take no time on the engine with `docker build`, without a cache and with one. */
export async function measureAgainstDocker(bench: Bench): Promise<Row[]> {
  const docker = await makeDocker(bench);
  await importBase(bench);
  const rows: Row[] = [];
  for (const { name, dockerfile, goals } of builds) {
    const context = bench.directory(`docker-${name.replaceAll(" ", "-")}`);
    writeFileSync(join(context, "Dockerfile"), `${dockerfile}\n`);
    const compare = async (times: number, ...options: string[]) => {
      const command = bench.build(context, "engine", "--docker", ...options);
      const ours = async () => (await run(command)).milliseconds;
      const theirs = () => timeDocker(docker, context, ...options);
      const [bough = 0, other = 0] = await alternate(times, ours, theirs);
      return { bough, other };
    };
    const first = await compare(Math.max(3, Math.ceil(bench.times / 2)), "--no-cache");
    rows.push(rowOf(name, first, goals.first));
    await runUntilSettled(bench.build(context, "engine", "--docker"));
    rows.push(rowOf(`${name}, cached`, await compare(bench.times), goals.cached));
  }
  return rows;
}

function rowOf(name: string, { bough, other }: { bough: number; other: number }, atLeast: number): Row {
  return {
    case: name,
    bough: `${bough.toFixed(0)} ms`,
    against: `${other.toFixed(0)} ms, docker build`,
    figure: other / bough,
    unit: "times as fast",
    goal: { atLeast },
  };
}
