/**
 * Shows 192 MiB of a step's output, mixed with that of another step, in the view `plain` or `live`. Prints the maximum of
 * this process's memory in bytes, and the length of the longest text that it wrote: `bun stages-memory-process.ts VIEW LINE_END`.
 */
import { readFileSync } from "node:fs";
import { createOutputCollector } from "../../src/builder/operations/gc.ts";
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import { createLog } from "../../src/terminal/log.ts";
import { createPlainProgress } from "../../src/terminal/progress.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { beginStep } from "./stage-events.ts";

const chunkBytes = 64 * 1024;
const chunks = (192 * 1024 * 1024) / chunkBytes;

const [view, lineEnd = ""] = process.argv.slice(2);
let longest = 0;
const write = (text: string) => {
  longest = Math.max(longest, text.length);
};
const clock = createManualClock();
const options = { clock, logLevel: "info", openSpoolFile: () => openSpoolFile(process.cwd()) } as const;
const progress =
  view === "plain"
    ? createPlainProgress({
        ...options,
        log: createLog("info", write),
        write: { line: write, output: write },
      })
    : createLiveView({ ...options, terminal: { write, columns: 80, rows: 24, hasColor: false } });

const [make, test] = [beginStep(2, progress.emit), beginStep(5, progress.emit)];
// As in the builder.
const collect = createOutputCollector();
const chunk = Buffer.from(`${"x".repeat(63)}${lineEnd || "x"}`.repeat(chunkBytes / 64));
for (let count = 0; count < chunks; count++) {
  make.out(chunk.toString());
  collect(chunkBytes);
  test.out(count % 3 === 2 ? "ok\n" : "part ");
  if (count % 256 === 0) await clock.advance(100);
}
make.ran();
test.ran();
progress.close();
// Not `maxRSS`, which begins with the value of the parent process.
const kilobytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
process.stdout.write(JSON.stringify({ maxResident: Number(kilobytes) * 1024, longest }));
