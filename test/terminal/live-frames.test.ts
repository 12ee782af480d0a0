import { describe, expect, test } from "bun:test";
import { emitFor, type StepEvent } from "../../src/builder/events.ts";
import { showInstruction } from "../../src/builder/location.ts";
import type { StepRecord } from "../../src/builder/result.ts";
import { stepsOf } from "../../src/builder/step-place.ts";
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";

const dockerfile = parseDockerfile("FROM a\nRUN make all\n", "Dockerfile");
const operation = "00000000-0000-4000-8000-000000000001";

function open(size: { columns: number; rows: number } = { columns: 40, rows: 10 }) {
  const clock = createManualClock();
  const writes: string[] = [];
  const open = () => openSpoolFile(temporaryDirectory());
  const terminal = { ...size, hasColor: false, write: (text: string) => void writes.push(text) };
  const view = createLiveView({ terminal, clock, logLevel: "info", openSpoolFile: open });
  /** Begins a step and returns its emit function. */
  const begin = (number: number, of = dockerfile) => {
    const step = stepsOf(of)[number - 1];
    if (step === undefined) throw new Error("no such step");
    const emit = emitFor(step, view.emit);
    emit({ type: "step", instruction: showInstruction(step.instruction), steps: of.instructions.length });
    return emit;
  };
  return { clock, writes, terminal, view, begin };
}

/** The text of a frame, without control sequences. */
function drawn(frame: string | undefined): string {
  return (frame ?? "").replace(/\u001b\[[?\d]*[A-Za-z]/g, "").replace(/^\r/, "");
}

test("nothing is drawn in the first tenth of a second; then the step, with the time at the right edge", async () => {
  const { clock, writes, view, begin } = open();
  const emit = begin(2);
  emit({ type: "spawned", operation, title: "RUN make all" });
  expect(writes).toEqual([]);
  await clock.advance(100);
  expect(drawn(writes.pop())).toBe("[2/2] RUN make all                 0.1s\n");
  view.close();
});

test("while the window becomes narrower, rows use half of it, so that its next change wraps none of them", async () => {
  const { clock, writes, terminal, view, begin } = open({ columns: 80, rows: 10 });
  const emit = begin(2);
  emit({ type: "output", chunk: { stream: "stdout", text: `${"x".repeat(200)}\n` } });
  const width = async (milliseconds: number) => {
    await clock.advance(milliseconds);
    return Math.max(
      ...drawn(writes.at(-1))
        .split("\n")
        .map((row) => row.length),
    );
  };
  expect(await width(200)).toBe(79);
  const widths = [];
  for (const columns of [70, 60, 50, 40]) {
    terminal.columns = columns;
    widths.push(await width(100));
  }
  expect(widths).toEqual([34, 29, 24, 19]);
  expect(await width(1000)).toBe(39);
  terminal.columns = 80;
  expect(await width(100)).toBe(79);
  view.close();
});

test("each frame is one write that hides the cursor, shows it again, and begins at the start of the last one", async () => {
  const { clock, writes, view, begin } = open();
  const emit = begin(2);
  emit({ type: "output", chunk: { stream: "stdout", text: "one\ntwo\n" } });
  await clock.advance(300);
  expect(writes).toHaveLength(3);
  for (const write of writes)
    expect(write).toMatch(/^\u001b\[\?2026h\u001b\[\?25l\r.*\u001b\[\?25h\u001b\[\?2026l$/s);
  expect(writes[0]).not.toContain("A");
  expect(writes[1]).toContain("\r\u001b[3A");
  expect(writes[1]).not.toContain("\u001b[2J");
  view.close();
  expect(drawn(writes.at(-1))).toBe("");
  expect(writes.at(-1)).toContain("\r\u001b[3A");
});

test("log lines go above the drawn rows, where they stay, even if they are repeated", async () => {
  const { clock, writes, view, begin } = open();
  begin(2);
  await clock.advance(100);
  for (let times = 1; times <= 2; times++) {
    view.log.info("said");
    view.log.debug("not said");
    // The frame begins at the drawn row, and erases none of the lines above it.
    expect(writes).toHaveLength(1 + times);
    expect(writes.at(-1)).toContain("\r\u001b[1A\u001b[J");
    expect(drawn(writes.at(-1))).toBe("[INFO] said\n[2/2] RUN make all                 0.1s\n");
  }
  view.close();
});

test("rows that were wrapped because the terminal became narrower are overwritten completely", async () => {
  const { clock, writes, view, terminal, begin } = open();
  const emit = begin(2);
  emit({ type: "output", chunk: { stream: "stdout", text: `${"x".repeat(60)}\nshort\n` } });
  await clock.advance(100);
  terminal.columns = 20;
  await clock.advance(100);
  // 39, 39 and 7 columns at a width of 20.
  expect(writes.at(-1)).toContain("\r\u001b[5A");
  expect(drawn(writes.at(-1))).toBe("[2/2]\n  xxxxxx…\n  short\n");
  await clock.advance(1000);
  expect(drawn(writes.at(-1))).toBe("[2/2] RUN mak… 1.2s\n  xxxxxxxxxxxxxxxx…\n  short\n");
  view.close();
});

test.each([
  [24, ["1", "2", "3", "4"]],
  [7, ["2", "3", "4"]],
  [6, ["3", "4"]],
  [5, ["4"]],
  [4, []],
  [2, []],
])("a terminal of %d rows keeps room for the log", async (rows, output) => {
  const { clock, writes, view, begin } = open({ columns: 40, rows });
  const emit = begin(2);
  emit({ type: "output", chunk: { stream: "stdout", text: "1\n2\n3\n4\n" } });
  await clock.advance(100);
  const shown = ["[2/2] RUN make all                 0.1s", ...output.map((line) => `  ${line}`), ""];
  expect(drawn(writes.at(-1))).toBe(shown.join("\n"));
  view.close();
});

test("a terminal of one row gets the log only, because drawn rows would scroll out of reach", async () => {
  const { clock, writes, view, begin } = open({ columns: 40, rows: 1 });
  begin(2);
  await clock.advance(100);
  view.log.info("said");
  expect(writes.map(drawn).join("")).toBe("[INFO] said\n");
  view.close();
});

test.each<[string, StepEvent[], string | undefined]>([
  ["hashing", [{ type: "hashing", files: 10, bytes: 5000 }], "hashing 0 of 10 files, 0 B of 5.0 kB (0%)"],
  [
    "the progress and rate of an upload",
    [
      { type: "uploading", files: 10, bytes: 5000 },
      { type: "upload-progress", files: 4, sentBytes: 2000, reused: 0 },
    ],
    "uploading 4 of 10 files, 2.0 kB of 5.0 kB (40%), 20 kB/s",
  ],
  [
    "a download of unknown length",
    [
      { type: "downloading", url: "http://a/b" },
      { type: "download-progress", bytes: 2000, total: undefined },
    ],
    "downloading http://a/b: 2.0 kB, 20 kB/s",
  ],
  [
    "a download of known length",
    [
      { type: "downloading", url: "http://a/b" },
      { type: "download-progress", bytes: 2000, total: 8000 },
    ],
    "downloading http://a/b: 2.0 kB of 8.0 kB (25%), 20 kB/s",
  ],
  [
    "the service's message about an import, as plain text",
    [{ type: "import-progress", message: "copying \u001b[2Jlayer 3\tof 5" }],
    "copying layer 3    of 5",
  ],
  ["a command without output", [{ type: "spawned", operation, title: "RUN" }], undefined],
  [
    "the output of a command",
    [
      { type: "spawned", operation, title: "RUN" },
      { type: "output", chunk: { stream: "stderr", text: "10 %\r20 %\r" } },
    ],
    "20 %",
  ],
])("below the step: %s", async (_, events, expected) => {
  const { clock, writes, view, begin } = open({ columns: 100, rows: 10 });
  const emit = begin(2);
  for (const event of events) emit(event);
  await clock.advance(100);
  expect(drawn(writes.at(-1)).split("\n").slice(1, -1)).toEqual(
    expected === undefined ? [] : [`  ${expected}`],
  );
  view.close();
});

describe("steps of two concurrent stages", () => {
  const two = parseDockerfile("FROM a AS build\nRUN make\nFROM a\nRUN test\n", "Dockerfile");
  const rowsOf = (writes: string[]) => drawn(writes.at(-1)).split("\n").slice(0, -1);

  test("are both drawn, each with its activity or output", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 20 });
    const test = begin(4, two);
    const make = begin(2, two);
    make({ type: "output", chunk: { stream: "stdout", text: "cc a.c\n" } });
    test({ type: "spawned", operation: "op", title: "RUN test" });
    make({ type: "output", chunk: { stream: "stderr", text: "cc b.c" } });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual([
      "[2/4] RUN make                     0.1s",
      "  cc a.c",
      "  cc b.c",
      "[4/4] RUN test                     0.1s",
    ]);
    view.close();
  });

  test("disappear one by one, except for the last one, to which the end of the build belongs", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 20 });
    const test = begin(4, two);
    const make = begin(2, two);
    test({ type: "output", chunk: { stream: "stdout", text: "ok 1\n" } });
    make({ type: "step-end", record: nothingMade(2) });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.1s", "  ok 1"]);
    test({ type: "step-end", record: nothingMade(4) });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.2s"]);
    test({ type: "spawned", operation: "op", title: "RUN :" });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.3s"]);
    view.close();
  });

  test("disappear when their stage has made its last layer", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 20 });
    const test = begin(4, two);
    const make = begin(2, two);
    const nothing = { bytes: 0, truncated: false };
    const ran = { operation: "op", succeeded: true, stdout: nothing, stderr: nothing };
    make({ type: "step-end", record: nothingMade(2) });
    make({ type: "spawned", operation: "op", title: "COPY a /" });
    await clock.advance(100);
    expect(rowsOf(writes)).toHaveLength(2);
    make({ type: "ran", ...ran });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.2s"]);
    make({ type: "cached", title: "COPY a /", layer: "0123456789abcdef", image: "i" });
    test({ type: "ran", ...ran });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.3s"]);
    view.close();
  });

  test("disappear when they fail, even without a command", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 20 });
    const test = begin(4, two);
    const make = begin(2, two);
    make({ type: "step-failed", title: "RUN make" });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.1s"]);
    test({ type: "cancelled", operation: "op", confirmed: true });
    test({ type: "step-failed", title: "RUN test", abandoned: true });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[4/4] RUN test                     0.2s"]);
    view.close();
  });

  test("share the rows of a small terminal", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 8 });
    for (const number of [2, 4])
      begin(number, two)({ type: "output", chunk: { stream: "stdout", text: "1\n2\n3\n" } });
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual([
      "[2/4] RUN make                     0.1s",
      "  3",
      "[4/4] RUN test                     0.1s",
      "  3",
    ]);
    view.close();
  });

  test("disappear if the build begins again", async () => {
    const { clock, writes, view, begin } = open({ columns: 40, rows: 20 });
    begin(2, two);
    begin(4, two);
    view.emit({ type: "forgotten-layer", layer: "0", image: "1" });
    begin(1, two);
    await clock.advance(100);
    expect(rowsOf(writes)).toEqual(["[1/4] FROM a AS build              0.1s", "  looking for the image"]);
    view.close();
  });

  function nothingMade(step: number): StepRecord {
    const none = { layer: null, image: null, operation: null, cached: null };
    return { stage: null, step, line: step, instruction: "RUN", ...none, seconds: 0 };
  }
});
