/**
 * Shows a scene of a build of several stages on the terminal: `bun stages-replay.ts SCENE`. The clock is simulated. If the
 * build does not end, the process stays.
 */
import { openSpoolFile } from "../../src/cli/builds/progress.ts";
import { parseDockerfile } from "../../src/dockerfile/parse.ts";
import { createLiveView } from "../../src/terminal/live-view.ts";
import type { Progress } from "../../src/terminal/progress.ts";
import { createManualClock, type ManualClock } from "../fake-service/manual-clock.ts";
import { beginStep, operation, type StageStep } from "./stage-events.ts";

const second = 1000;

interface Stages {
  view: Progress;
  clock: ManualClock;
  make: StageStep;
  test: StageStep;
  copy: StageStep;
}

/** Begins three steps, of which two have output. */
async function beginThree({ view, clock }: Pick<Stages, "view" | "clock">): Promise<Stages> {
  const make = beginStep(2, view.emit);
  make.emit({ type: "spawned", operation, title: "RUN make all" });
  await clock.advance(2 * second);
  const test = beginStep(5, view.emit);
  test.emit({ type: "spawned", operation, title: "RUN npm test" });
  for (let line = 1; line <= 10; line++) {
    make.out(`cc -c file${line}.c\n`);
    test.err(`ok ${line}`);
    make.out(`cc -c more${line}.c`);
    test.err(` - case ${line}\n`);
    make.out("\n");
  }
  await clock.advance(60 * second);
  const copy = beginStep(7, view.emit);
  return { view, clock, make, test, copy };
}

const interruption = new AbortController();

const scenes: Record<string, (start: Pick<Stages, "view" | "clock">) => Promise<"ended" | "goes on">> = {
  async three(start) {
    const { clock } = await beginThree(start);
    await clock.advance(second);
    return "goes on";
  },
  async two(start) {
    const { clock, copy, make } = await beginThree(start);
    make.ran();
    make.end();
    await clock.advance(second);
    copy.end();
    await clock.advance(second);
    return "goes on";
  },
  /** Nine steps, of which one has output. */
  async many({ view, clock }) {
    const names = [
      "api",
      "web",
      "worker",
      "cron",
      "docs",
      "assets",
      "tools",
      "production-dependencies",
      "schema",
    ];
    const text = names.map((name) => `FROM base:1 AS ${name}\nRUN make ${name}\n`).join("");
    const dockerfile = parseDockerfile(text, "Dockerfile");
    // They begin in another order than in the Dockerfile.
    for (const index of [3, 1, 2, 0, 4, 8, 7, 6, 5]) {
      const step = beginStep(2 * index + 2, view.emit, dockerfile);
      if (index === 1) step.out("one\ntwo\nthree\n");
      await clock.advance(second);
    }
    return "goes on";
  },
  async failure(start) {
    const { view, clock, make, test, copy } = await beginThree(start);
    make.err("file10.c:1: error\n");
    make.ran({ succeeded: false });
    await clock.advance(second);
    test.ran({ succeeded: false, abandoned: true });
    test.emit({ type: "cancelling", operation, abandoned: true });
    await clock.advance(second);
    test.emit({ type: "cancelled", operation, confirmed: true });
    copy.end();
    view.close();
    return "ended";
  },
  async interruption(start) {
    const { view, clock, make, test } = await beginThree(start);
    interruption.abort();
    for (const step of [make, test]) {
      step.ran({ succeeded: false });
      step.emit({ type: "cancelling", operation });
    }
    await clock.advance(second);
    test.emit({ type: "cancelled", operation, confirmed: true });
    await clock.advance(second);
    make.emit({ type: "cancelled", operation, confirmed: true });
    view.close();
    return "ended";
  },
};

const clock = createManualClock();
const { stderr } = process;
const view = createLiveView({
  terminal: {
    write: (text) => void stderr.write(text),
    get columns() {
      return stderr.columns;
    },
    get rows() {
      return stderr.rows;
    },
    hasColor: true,
  },
  clock,
  logLevel: "info",
  openSpoolFile: () => openSpoolFile(process.cwd()),
  signal: interruption.signal,
});
const scene = scenes[process.argv[2] ?? ""];
if (scene === undefined) throw new Error(`one of ${Object.keys(scenes).join(", ")}`);
if ((await scene({ view, clock })) === "goes on") await Bun.sleep(60 * second);
