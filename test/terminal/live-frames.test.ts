import { expect, test } from "bun:test";
import type { BuildEvent } from "../../src/builder/events.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";

const { instructions } = parseDockerfile("FROM a\nRUN make all\n", "Dockerfile");
const operation = "00000000-0000-4000-8000-000000000001";

function open(size: { columns: number; rows: number } = { columns: 40, rows: 10 }) {
  const clock = createManualClock();
  const writes: string[] = [];
  const terminal = { ...size, hasColor: false, write: (text: string) => void writes.push(text) };
  const view = createLiveView({ terminal, clock, logLevel: "info" });
  const step = (number: number): BuildEvent => {
    const instruction = instructions[number - 1];
    if (instruction === undefined) throw new Error("no such step");
    return { type: "step", instruction, step: number, steps: instructions.length };
  };
  return { clock, writes, terminal, view, step };
}

/** What a frame draws, without the sequences around it. */
function drawn(frame: string | undefined): string {
  return (frame ?? "").replace(/\u001b\[[?\d]*[A-Za-z]/g, "").replace(/^\r/, "");
}

test("nothing is drawn in the first tenth of a second; then the step, with the time at the right edge", async () => {
  const { clock, writes, view, step } = open();
  view.emit(step(2));
  view.emit({ type: "spawned", operation, title: "RUN make all" });
  expect(drawn(writes.pop())).toBe(`[INFO] RUN spawned op=${operation} RUN make all\n`);
  await clock.advance(100);
  expect(drawn(writes.pop())).toBe(
    "[2/2] RUN make all                 0.1s\n  operation 00000000-0000-4000-8000-00…\n",
  );
  view.close();
});

test("each frame is one write that hides the cursor, shows it again, and stands where it began", async () => {
  const { clock, writes, view, step } = open();
  view.emit(step(2));
  view.emit({ type: "output", chunk: { stream: "stdout", text: "one\ntwo\n" } });
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

test("log lines go above what is drawn, and a line that is repeated stays", async () => {
  const { clock, writes, view, step } = open();
  view.emit(step(2));
  await clock.advance(100);
  view.log.info("said");
  view.log.debug("not said");
  expect(drawn(writes.at(-1))).toBe("[INFO] said\n[2/2] RUN make all                 0.1s\n");
  view.close();
});

test("a terminal that has become narrower has broken the rows: all of their lines are drawn over", async () => {
  const { clock, writes, view, terminal, step } = open();
  view.emit(step(2));
  view.emit({ type: "output", chunk: { stream: "stdout", text: `${"x".repeat(60)}\nshort\n` } });
  await clock.advance(100);
  terminal.columns = 20;
  await clock.advance(100);
  // 39, 39 and 7 columns at a width of 20.
  expect(writes.at(-1)).toContain("\r\u001b[5A");
  expect(drawn(writes.at(-1))).toBe("[2/2] RUN mak… 0.2s\n  xxxxxxxxxxxxxxxx…\n  short\n");
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
  const { clock, writes, view, step } = open({ columns: 40, rows });
  view.emit(step(2));
  view.emit({ type: "output", chunk: { stream: "stdout", text: "1\n2\n3\n4\n" } });
  await clock.advance(100);
  const shown = ["[2/2] RUN make all                 0.1s", ...output.map((line) => `  ${line}`), ""];
  expect(drawn(writes.at(-1))).toBe(shown.join("\n"));
  view.close();
});

test("a terminal of one row gets the log alone: whatever is drawn there would be pushed up for good", async () => {
  const { clock, writes, view, step } = open({ columns: 40, rows: 1 });
  view.emit(step(2));
  await clock.advance(100);
  view.log.info("said");
  expect(writes.map(drawn).join("")).toBe("[INFO] said\n");
  view.close();
});

test.each<[string, BuildEvent[], string]>([
  ["hashing", [{ type: "hashing", files: 10, bytes: 5000 }], "hashing 0 of 10 files, 0 B of 5.0 kB"],
  [
    "how far it has come, and how fast",
    [
      { type: "uploading", files: 10, bytes: 5000 },
      { type: "upload-progress", files: 4, sentBytes: 2000, reused: 0 },
    ],
    "uploading 4 of 10 files, 2.0 kB of 5.0 kB, 20 kB/s",
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
    "a download whose length the server says",
    [
      { type: "downloading", url: "http://a/b" },
      { type: "download-progress", bytes: 2000, total: 8000 },
    ],
    "downloading http://a/b: 2.0 kB of 8.0 kB, 20 kB/s",
  ],
  [
    "what the service says of an import, in plain text",
    [{ type: "import-progress", message: "copying \u001b[2Jlayer 3\tof 5" }],
    "copying layer 3    of 5",
  ],
  [
    "a command that has said nothing yet",
    [{ type: "spawned", operation, title: "RUN" }],
    `operation ${operation} is running`,
  ],
  [
    "its output once it says something",
    [
      { type: "spawned", operation, title: "RUN" },
      { type: "output", chunk: { stream: "stderr", text: "10 %\r20 %\r" } },
    ],
    "20 %",
  ],
])("below the step: %s", async (_, events, expected) => {
  const { clock, writes, view, step } = open({ columns: 100, rows: 10 });
  view.emit(step(2));
  for (const event of events) view.emit(event);
  await clock.advance(100);
  expect(drawn(writes.at(-1)).split("\n").slice(1, -1)).toEqual([`  ${expected}`]);
  view.close();
});
