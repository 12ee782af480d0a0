/** The plain log of concurrent stages: each line has the label of its step, and no line mixes the output of two. */
import { describe, expect, test } from "bun:test";
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { createLog, type LogLevel } from "../../src/terminal/log.ts";
import { createPlainProgress } from "../../src/terminal/progress.ts";
import { formatOutput } from "../../src/terminal/terminal-text.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { beginStep, operation, type StageStep } from "./stage-events.ts";

interface Start {
  logLevel?: LogLevel;
  isTerminal?: boolean;
}

function start({ logLevel = "info", isTerminal = false }: Start = {}) {
  let written = "";
  const write = (text: string) => {
    written += formatOutput(text, { isTerminal, hasColor: false });
  };
  const clock = createManualClock();
  const progress = createPlainProgress({
    ...{ log: createLog(logLevel, write), clock, logLevel, write: { line: write, output: write } },
    openSpoolFile: () => openSpoolFile(temporaryDirectory()),
  });
  return { ...progress, clock, begin: (line: number) => beginStep(line, progress.emit), log: () => written };
}

const long = "x".repeat(5000);

test.each<[title: string, play: (make: StageStep, test: StageStep) => void, log: string]>([
  [
    "whole lines are shown at once",
    (make, test) => {
      make.out("cc a.c\ncc b.c\n");
      test.err("ok 1\n");
      make.out("\n");
    },
    "[build 2/3] cc a.c\n[build 2/3] cc b.c\n[stage-1 2/2] ok 1\n[build 2/3] \n",
  ],
  [
    "a line that arrives in parts waits for its end",
    (make, test) => {
      make.out("cc ");
      test.out("ok");
      make.out("a.c\ncc ");
      test.out(" 1\n");
      make.out("b.c\n");
    },
    "[build 2/3] cc a.c\n[stage-1 2/2] ok 1\n[build 2/3] cc b.c\n",
  ],
  [
    "the streams of a step have separate lines",
    (make) => {
      make.out("cc a.c");
      make.err("warning: ");
      make.out("\n");
      make.err("unused\n");
    },
    "[build 2/3] cc a.c\n[build 2/3] warning: unused\n",
  ],
  [
    "a line without an end is ended with its command",
    (make, test) => {
      make.out("no end");
      make.err("none here");
      make.ran();
      test.out("ok 1\n");
    },
    "[build 2/3] no end\n[build 2/3] none here\n[stage-1 2/2] ok 1\n",
  ],
  [
    "a line without an end is ended with the build",
    (make, test) => {
      make.out("no end");
      test.out("ok");
    },
    "[build 2/3] no end\n[stage-1 2/2] ok\n",
  ],
  [
    "a very long line is shown before its end, and ended before another step's line",
    (make, test) => {
      make.out(long);
      make.out("y");
      test.out("ok 1\n");
      make.out("z\n");
    },
    `[build 2/3] ${long}y\n[stage-1 2/2] ok 1\n[build 2/3] z\n`,
  ],
  [
    "text after a carriage return has the label again",
    (make) => make.out("10 %\r20 %\rdone\r\n"),
    "[build 2/3] 10 %\r[build 2/3] 20 %\r[build 2/3] done\r\n",
  ],
  [
    "text after a carriage return has the label again in a line that is shown in parts",
    (make) => {
      make.out(`${long}\r`);
      make.out("20 %\r");
      make.out("\n");
    },
    `[build 2/3] ${long}\r[build 2/3] 20 %\r\n`,
  ],
  [
    "log lines have the label, too, unless they name a line of the Dockerfile",
    (make, test) => {
      make.emit({ type: "spawned", operation, title: "RUN make all" });
      test.emit({ type: "cached", title: "RUN npm test", layer: "0123456789abcdef", image: "i" });
      test.emit({ type: "warning", message: "odd", line: 5 });
      test.emit({ type: "warning", message: "it ran into a limit", line: undefined });
    },
    `[INFO] [build 2/3] RUN spawned op=${operation} RUN make all\n` +
      "[INFO] [stage-1 2/2] cached layer:0123456789ab RUN npm test\n[WARN] line 5: odd\n" +
      "[WARN] [stage-1 2/2] it ran into a limit\n",
  ],
  [
    "a step whose begin was logged has an end with its time, below the last line of its output",
    (make, test) => {
      make.emit({ type: "spawned", operation, title: "RUN make all" });
      make.out("no end");
      make.ran();
      make.end();
      test.emit({ type: "cached", title: "RUN npm test", layer: "0123456789abcdef", image: "i" });
      test.end();
    },
    `[INFO] [build 2/3] RUN spawned op=${operation} RUN make all\n[build 2/3] no end\n` +
      "[INFO] [build 2/3] done in 0.00 s: RUN make all\n" +
      "[INFO] [stage-1 2/2] cached layer:0123456789ab RUN npm test\n",
  ],
  [
    "a failed step is reported at once if others have to end first, and abandoned steps are not reported",
    (make, test) => {
      make.emit({ type: "step-failed", title: "RUN make all" });
      test.emit({ type: "step-failed", title: "RUN npm test", abandoned: true });
    },
    "[WARN] [build 2/3] failed: RUN make all\n",
  ],
  [
    "a failed step whose begin was logged has an end with its time, too",
    (make, test) => {
      make.emit({ type: "spawned", operation, title: "RUN make all" });
      test.emit({ type: "spawned", operation, title: "RUN npm test" });
      make.emit({ type: "step-failed", title: "RUN make all" });
      test.emit({ type: "step-failed", title: "RUN npm test", abandoned: true });
    },
    `[INFO] [build 2/3] RUN spawned op=${operation} RUN make all\n` +
      `[INFO] [stage-1 2/2] RUN spawned op=${operation} RUN npm test\n` +
      "[WARN] [build 2/3] failed after 0.00 s: RUN make all\n",
  ],
  [
    "a failed step is reported only by the error if no other step runs",
    (make, test) => {
      make.end();
      test.emit({ type: "step-failed", title: "RUN npm test" });
    },
    "",
  ],
  [
    "a step that is cancelled after another step's failure is reported",
    (make, test) => {
      test.out("ok 1\nnot");
      make.err("a.c:1: error\n");
      make.ran({ succeeded: false });
      test.ran({ succeeded: false, abandoned: true });
      test.emit({ type: "cancelling", operation, abandoned: true });
      test.emit({ type: "cancelled", operation, confirmed: true });
    },
    "[stage-1 2/2] ok 1\n[build 2/3] a.c:1: error\n[stage-1 2/2] not\n" +
      `[WARN] [stage-1 2/2] another stage has failed: cancelling operation ${operation}\n` +
      `[WARN] [stage-1 2/2] operation ${operation} is cancelled\n`,
  ],
])("%s", (_, play, log) => {
  const progress = start();
  play(progress.begin(2), progress.begin(5));
  progress.close();
  expect(progress.log()).toBe(log);
});

describe("a line without an end", () => {
  test("is shown after half a second if no other step runs, and continued in place", async () => {
    const { begin, clock, log, close } = start();
    const make = begin(2);
    make.out("Continue? ");
    await clock.advance(499);
    expect(log()).toBe("");
    await clock.advance(1);
    make.out("[y/n] ");
    expect(log()).toBe("[build 2/3] Continue? [y/n] ");
    begin(5).out("ok 1\n");
    make.out("y\n");
    close();
    expect(log()).toBe("[build 2/3] Continue? [y/n] \n[stage-1 2/2] ok 1\n[build 2/3] y\n");
  });

  test("waits while another step runs", async () => {
    const { begin, clock, log, close } = start();
    const [make, test] = [begin(2), begin(5)];
    make.out("Continue? ");
    await clock.advance(5000);
    expect(log()).toBe("");
    test.end();
    await clock.advance(500);
    expect(log()).toBe("[build 2/3] Continue? ");
    close();
  });

  test("is shown when the log is closed", async () => {
    const { begin, clock, log, close } = start();
    begin(2).out("no end");
    close();
    await clock.advance(1000);
    expect(log()).toBe("[build 2/3] no end\n");
  });
});

test("on a terminal a progress bar leaves its last state, with its label", () => {
  const { begin, log } = start({ isTerminal: true });
  begin(2).out("10 %\r20 %\rdone\r\n");
  expect(log()).toBe("[build 2/3] done\n");
});

test("if only errors are shown, the failed step's output is complete, and other output is not shown", () => {
  const { begin, log } = start({ logLevel: "error" });
  const [make, test] = [begin(2), begin(5)];
  make.out("cc a.c\n");
  test.out("ok 1\n");
  make.out("cc b.c");
  make.ran({ succeeded: false });
  test.ran({ succeeded: false, abandoned: true });
  expect(log()).toBe("[ERROR] [build 2/3] stdout:\ncc a.c\ncc b.c\n");
});
