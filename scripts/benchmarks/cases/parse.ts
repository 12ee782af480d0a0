import { join } from "node:path";
import type { Bench, Row } from "../bench.ts";
import { alternate, run } from "../measure.ts";

/** Measures parsing in a process that has parsed nothing before, compiled like bough. */
export async function measureParse(bench: Bench): Promise<Row[]> {
  const program = join(bench.directory("parse"), "parse-once");
  const source = join(import.meta.dir, "../parse-once.ts");
  const kind = ["--compile", "--minify", "--bytecode", "--compile-jit-policy=8", "--format=esm"];
  const flags = [...kind, "--outfile", program];
  await run({ words: [process.execPath, "build", ...flags, source] });
  const words = [program];
  const [milliseconds = 0] = await alternate(bench.times * 4, async () =>
    Number((await run({ words })).stdout),
  );
  return [
    {
      case: "Dockerfile of 5,000 lines",
      bough: `${milliseconds.toFixed(1)} ms`,
      against: "",
      figure: milliseconds,
      unit: "ms",
      goal: { atMost: 20 },
    },
  ];
}
