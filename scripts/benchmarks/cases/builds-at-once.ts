import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Row } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { writeManyFiles } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

const runs = 10;

/** Compares two builds on one engine, each with its own files, at the same time and one after the other. */
export async function measureBuildsAtOnce(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const contexts = ["one", "two"].map((name) => bench.directory(`at-once-${name}`));
  for (const [index, context] of contexts.entries()) {
    writeManyFiles(context, { count: 1000, bytes: 4096, word: `build${index}` });
    const lines = Array.from({ length: runs }, (_, line) => `RUN true ${index} ${line}`);
    writeFileSync(join(context, "Dockerfile"), `FROM base:1\nCOPY . /app/\n${lines.join("\n")}\n`);
  }
  const build = (context: string) => run(bench.build(context, "engine", "--no-cache"));
  const time = (work: () => Promise<unknown>) => async () => {
    const started = performance.now();
    await work();
    return performance.now() - started;
  };
  const [together = 0, inTurn = 0] = await alternate(
    Math.max(3, Math.ceil(bench.times / 2)),
    time(() => Promise.all(contexts.map(build))),
    time(async () => {
      for (const context of contexts) await build(context);
    }),
  );
  return [
    {
      case: "two builds at once on the engine",
      bough: `${together.toFixed(0)} ms`,
      against: `${inTurn.toFixed(0)} ms, one after the other`,
      figure: together / inTurn,
      unit: "times",
      goal: { atMost: 1.15 },
    },
  ];
}
