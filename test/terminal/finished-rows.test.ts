/** What steps leave on the screen when they end, by default and with `--progress tty`. */
import { expect, test } from "bun:test";
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { beginStep, operation } from "./stage-events.ts";

function open(columns: number, { isCompact = true, signal = AbortSignal.any([]) } = {}) {
  let text = "";
  const terminal = {
    columns,
    rows: 24,
    hasColor: false,
    write(more: string) {
      text += more;
    },
  };
  const view = createLiveView({
    ...{ terminal, clock: createManualClock(), logLevel: "info" as const, isCompact, signal },
    openSpoolFile: () => openSpoolFile(temporaryDirectory()),
  });
  return {
    view,
    /** Lines that stay. Nothing else is drawn, because the clock does not advance. */
    shown: () =>
      text
        .replace(/\u001b\[[?\d]*[A-Za-z]|\r/g, "")
        .trimEnd()
        .split("\n"),
  };
}

test("a finished step leaves one line with its time, a failed one its output; warnings and the end are shown", () => {
  const { view, shown } = open(80);
  const first = beginStep(2, view.emit);
  first.emit({ type: "spawned", operation, title: "RUN make all" });
  first.out("compiling\n");
  first.emit({ type: "warning", message: "old", line: 2 });
  first.ran();
  first.end();
  const second = beginStep(3, view.emit);
  second.emit({ type: "spawned", operation, title: "RUN make install" });
  second.err("no rule\n");
  second.ran({ succeeded: false });
  view.emit({ type: "tagged", image: "image", tag: "app:dev" });
  expect(shown()).toEqual([
    "[WARN] line 2: old",
    "[build 2/3] RUN make all                                                   0.0s",
    "[build 3/3] RUN make install                                        failed 0.0s",
    "no rule",
    "[INFO] tagged image as app:dev",
  ]);
  view.close();
});

test.each([
  [80, "[docs 2/3] COPY --from=build /srv /srv                     2 files, 41 kB  0.0s"],
  [40, "[docs 2/3] COPY --from=build /srv… 0.0s"],
])("it fits %d columns", (columns, line) => {
  const { view, shown } = open(columns);
  const step = beginStep(7, view.emit);
  step.emit({ type: "staged", title: "COPY", files: 2, bytes: 41_000 });
  step.end();
  expect(shown()).toEqual([line]);
  expect(line.length).toBeLessThanOrEqual(columns);
  view.close();
});

test("both streams of a command stand in the order in which their lines ended", () => {
  const { view, shown } = open(40, { isCompact: false });
  const step = beginStep(2, view.emit);
  step.out("one\nt");
  step.err("two\n");
  step.out("hree\n");
  step.err("four");
  step.ran();
  step.end();
  expect(shown()).toEqual(["[build 2/3] RUN make all           0.0s", "one", "two", "three", "four"]);
  view.close();
});

test("a command that Ctrl-C has ended, or another stage's failure, leaves nothing", () => {
  const interruption = new AbortController();
  const { view, shown } = open(80, { signal: interruption.signal });
  const [make, check] = [beginStep(2, view.emit), beginStep(5, view.emit)];
  for (const step of [make, check]) step.out("working\n");
  make.ran({ succeeded: false, abandoned: true });
  make.emit({ type: "step-failed", title: "RUN make all", abandoned: true });
  interruption.abort();
  check.ran({ succeeded: false });
  check.emit({ type: "cancelling", operation });
  check.emit({ type: "cancelled", operation, confirmed: true });
  check.emit({ type: "step-failed", title: "RUN npm test" });
  expect(shown()).toEqual([""]);
  view.close();
});
