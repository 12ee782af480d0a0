import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Source } from "./commit.ts";
import { describeExecutable } from "./executable-format.ts";
import { signMachO } from "./mach-o-signature.ts";
import { runProgram } from "./run-program.ts";
import { bringRuntime } from "./runtime.ts";
import { executableName, type Target } from "./targets.ts";

interface Executable {
  content: Uint8Array;
  /** The size of the runtime alone; the rest is bough. */
  runtimeBytes: number;
}

/** Compiles bough for a target, into a separate directory below `work`. `cache`: see `bringRuntime`. */
export function compile(
  root: string,
  target: Target,
  source: Source,
  work: string,
  cache?: string,
): Executable {
  const runtime = bringRuntime(root, target, cache);
  // Bun writes the file's name into the program: another name would give other bytes.
  const outfile = join(work, target.name, executableName(target));
  runProgram(
    [
      "./scripts/build",
      `--target=${target.bunTarget}`,
      `--compile-executable-path=${runtime}`,
      `--outfile=${outfile}`,
      `--define=BOUGH_COMMIT=${JSON.stringify(source.commit)}`,
      `--define=BOUGH_DATE=${JSON.stringify(source.date.toISOString())}`,
    ],
    { cwd: root },
  );
  const compiled = readFileSync(outfile);
  const found = describeExecutable(compiled);
  if (!Bun.deepEquals(found, target.format)) {
    throw new Error(`${target.name}: the compiler made another kind of executable: ${JSON.stringify(found)}`);
  }
  const content = target.format.container === "Mach-O" ? signMachO(compiled, "bough") : compiled;
  return { content, runtimeBytes: statSync(runtime).size };
}
