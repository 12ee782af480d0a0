/** The output of a RUN passes through bough, and neither the builder nor the engine holds all of it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync } from "node:fs";
import { peakOf } from "../hostile/services/measured.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { type ServerProcess, startServer } from "../support/server.ts";

const maxMebibytes = 150;
/** A build keeps a little more than this of each stream. */
const keptBytes = 16 * 2 ** 20;

let engine: string;
let server: ServerProcess;
beforeAll(async () => {
  engine = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const imported = await runBough(["--local", "images", "import", layout, "--tag", "busybox:1"], {
    workingDirectory: "/",
    environment: { BOUGH_HOME: engine },
  });
  expect(imported.exitCode).toBe(0);
  server = await startServer({ BOUGH_HOME: engine }, "--listen", "127.0.0.1:0", "--token", "t0ken-t0ken");
});
afterAll(() => server.stop());

/** A command that prints 192 MiB in lines of some 700 characters. */
const print = 'yes "$(seq -s, 200)" | head -c 201326592';
const printedLines = /^(?:1,2,3,[\d,]*,200\n)+/;

interface Row {
  what: string;
  line: string;
  words: string[];
  exitCode: number;
  /** The end of the standard error before the output. */
  before: RegExp;
}

const shown: Row = {
  what: "shown during the RUN",
  line: print,
  words: [],
  exitCode: 0,
  before: /\] stdout:\n/,
};
const rows: Row[] = [
  shown,
  {
    ...{ what: "shown after a failure", line: `${print}; exit 3`, words: ["-q"], exitCode: 1 },
    before: /^\[ERROR\] stdout:\n/,
  },
];
const places = [
  { where: "in one process with the engine", isServed: false },
  { where: "on bough serve", isServed: true },
];

test.each(places.flatMap((place) => rows.map((row) => ({ ...place, ...row }))))(
  "192 MiB of output, $what, take less than 150 MiB of memory $where",
  async ({ isServed, line, words, exitCode, before }) => {
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: `FROM busybox:1\nRUN ${line}\n` });
    const home = isServed ? temporaryDirectory() : engine;
    const service = isServed ? ["--url", server.url, "--token", "t0ken-t0ken"] : ["--local"];
    const child = Bun.spawn(
      [compileBough(), ...service, "build", context, "--no-cache", "--progress", "plain", ...words],
      {
        env: { PATH: process.env.PATH ?? "", HOME: context, BOUGH_HOME: home },
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      },
    );
    const pids = isServed ? [child.pid, server.pid] : [child.pid];
    const peaks = new Map<number, number>();
    const watch = setInterval(() => {
      for (const pid of pids) peaks.set(pid, peakOf(pid) ?? peaks.get(pid) ?? 0);
    }, 10);
    const stderr = await new Response(child.stderr).text();
    clearInterval(watch);
    expect(await child.exited).toBe(exitCode);
    const output = stderr.split(before)[1] ?? "";
    const lines = printedLines.exec(output)?.[0].length ?? 0;
    expect(lines).toBeGreaterThan(keptBytes - 1000);
    expect(stderr.slice(-1000)).toMatch(
      words.includes("-q") ? /exit code 3/ : /\[WARN\] stdout was truncated after 1\d MB/,
    );
    for (const pid of pids) expect(((peaks.get(pid) ?? 0) * 1_000_000) / 2 ** 20).toBeWithin(1, maxMebibytes);
    expect(readdirSync(home).filter((name) => name.startsWith(".output"))).toEqual([]);
  },
  180_000,
);
