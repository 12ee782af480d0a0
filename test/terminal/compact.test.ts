/** `--progress compact`: what steps leave on the screen when they end. */
import { expect, test } from "bun:test";
import { openSpoolFile } from "../../src/cli/builds/spool-file.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { beginStep, operation } from "./stage-events.ts";

function open(columns: number) {
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
    ...{ terminal, clock: createManualClock(), logLevel: "info" as const, isCompact: true },
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
    "[INFO] [build 2/3] RUN make all  0.00 s",
    expect.stringMatching(/^\[INFO\] .*stderr:$/),
    "no rule",
    "[INFO] tagged image as app:dev",
  ]);
  view.close();
});

test.each([
  [80, "[INFO] [docs 2/3] COPY --from=build /srv /srv  0.00 s"],
  [40, "[INFO] [docs 2/3] COPY --from=b…  0.00 s"],
])("it fits %d columns", (columns, line) => {
  const { view, shown } = open(columns);
  beginStep(7, view.emit).end();
  expect(shown()).toEqual([line]);
  expect(line.length).toBeLessThanOrEqual(columns);
  view.close();
});
