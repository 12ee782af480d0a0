import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench, Row } from "../bench.ts";
import { alternate, run } from "../measure.ts";

/** Compares commands that need no work with a compiled program that does nothing. */
export async function measureStartup(bench: Bench): Promise<Row[]> {
  const directory = bench.directory("startup");
  const empty = join(directory, "empty");
  writeFileSync(`${empty}.ts`, "export {};\n");
  await run({
    words: [process.execPath, "build", "--compile", "--outfile", empty, `${empty}.ts`],
    cwd: directory,
  });
  const time =
    (...words: string[]) =>
    async () =>
      (await run({ words, cwd: directory })).milliseconds;
  const [nothing = 0, version = 0, help = 0] = await alternate(
    bench.times * 4,
    time(empty),
    time(bench.bough, "--version"),
    time(bench.bough, "build", "-h"),
  );
  const row = (name: string, milliseconds: number, atMost: number): Row => ({
    case: `bough ${name}`,
    bough: `${milliseconds.toFixed(1)} ms`,
    against: `${nothing.toFixed(1)} ms, empty program`,
    figure: milliseconds / nothing,
    unit: "times",
    goal: { atMost },
  });
  return [row("--version", version, 1.25), row("build -h", help, 2)];
}
