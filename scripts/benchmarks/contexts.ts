/** Build contexts to measure with; the same in every run. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";

export interface ManyFiles {
  count: number;
  bytes: number;
  /** How many different contents there are among them; all if not said. */
  contents?: number;
  /** In every file: another one makes other contents. */
  word?: string;
  /** Below the context; the context itself if not said. */
  below?: string;
}

/** Files in directories of a hundred. */
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

/** `extra`: lines between the COPY, if there is one, and the RUNs. */
export function writeDockerfile(context: string, runs: number, copies = true): void {
  const lines = ["FROM base:1", ...(copies ? ["COPY . /app/"] : [])];
  for (let run = 0; run < runs; run++) lines.push(`RUN step ${run}`);
  writeFileSync(join(context, "Dockerfile"), `${lines.join("\n")}\n`);
}
