import { cpSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, requestsRow, runFresh } from "../bench.ts";
import { writeDockerfile, writeManyFiles } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

/** Compares a build whose steps are all in a scope, on another machine, with a cached build on the machine that wrote it. */
export async function measureScopes(bench: Bench): Promise<Row[]> {
  const service = await bench.startService();
  const [own, other] = [bench.directory("scope-own"), bench.directory("scope-other")];
  writeManyFiles(own, { count: 200, bytes: 4096 });
  writeDockerfile(own, 20);
  cpSync(own, other, { recursive: true });
  await run(bench.build(own, service, "--tag", "app", "--cache-to", "main"));
  const warm = bench.build(own, service, "--tag", "app");
  const empty = bench.build(other, service, "--tag", "app", "--cache-from", "main");
  const [milliseconds = 0, reference = 0] = await alternate(
    bench.times * 2,
    async () => (await runFresh(empty)).milliseconds,
    async () => (await run(warm)).milliseconds,
  );
  await service.reset();
  const { stderr } = await runFresh(empty);
  if (!stderr.includes("20 of 20 layers cached")) throw new Error(`the scope is not used:\n${stderr}`);
  const { requests } = await service.stats();
  const name = "20 RUN, 200 files, in a scope";
  return [
    {
      case: name,
      bough: `${milliseconds.toFixed(1)} ms, empty home`,
      against: `${reference.toFixed(1)} ms, its own cache`,
      figure: milliseconds / reference,
      unit: "times",
      goal: { atMost: 2.5 },
    },
    requestsRow(name, requests, { against: "", atMost: 5 }),
    await measureIndex(bench),
  ];
}

/** Measures reading an index in a process that has read none before, compiled like bough. */
async function measureIndex(bench: Bench): Promise<Row> {
  const program = join(bench.directory("scope-index"), "read-index-once");
  const source = join(import.meta.dir, "../read-index-once.ts");
  const flags = ["--compile", "--minify", "--bytecode", "--format=esm", "--outfile", program];
  await run({ words: [process.execPath, "build", ...flags, source] });
  const [milliseconds = 0] = await alternate(bench.times, async () =>
    Number((await run({ words: [program] })).stdout),
  );
  return {
    case: "index of 10,000 layers",
    bough: `${milliseconds.toFixed(1)} ms`,
    against: "",
    figure: milliseconds,
    unit: "ms",
    goal: { atMost: 60 },
  };
}
