/** Build contexts for measurements, the same in every run. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

interface ManyFiles {
  count: number;
  bytes: number;
  /** The number of different contents; by default, all differ. */
  contents?: number;
  /** A word in every file: another word makes other contents. */
  word?: string;
  /** A directory below the context; by default the context itself. */
  below?: string;
}

/** Writes files in directories of a hundred. */
export function writeManyFiles(
  context: string,
  { count, bytes, contents = count, word = "bough", below = "" }: ManyFiles,
): void {
  const buffer = Buffer.alloc(bytes, `${word} `);
  for (let index = 0; index < count; index++) {
    const directory = join(context, below, `d${Math.floor(index / 100)}`);
    if (index % 100 === 0) mkdirSync(directory, { recursive: true });
    buffer.write(String(index % contents).padEnd(8));
    writeFileSync(join(directory, `f${index}`), buffer);
  }
}

/** Writes a Dockerfile with a number of RUNs, by default after a COPY of the context. */
export function writeDockerfile(context: string, runs: number, copies = true): void {
  const lines = ["FROM base:1", ...(copies ? ["COPY . /app/"] : [])];
  for (let run = 0; run < runs; run++) lines.push(`RUN step ${run}`);
  writeFileSync(join(context, "Dockerfile"), `${lines.join("\n")}\n`);
}
