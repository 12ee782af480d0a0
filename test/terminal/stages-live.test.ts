/**
 * Concurrent stages on a terminal: `test/cases/terminal/stages-<scene>-<columns>x<rows>.txt` are the scenes of
 * `stages-replay.ts`. `UPDATE_GOLDEN=1` writes them.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { expectGolden } from "../support/golden.ts";
import { openTerminal } from "../support/terminal.ts";

// Longer than the wait for a condition, whose error shows the screen.
setDefaultTimeout(180_000);

const cases = join(import.meta.dir, "../cases/terminal");
const replay = join(import.meta.dir, "stages-replay.ts");
const ended = /\n\$$/;
const sizes = [
  { columns: 80, rows: 24 },
  { columns: 40, rows: 10 },
  { columns: 40, rows: 3 },
];

/** `isThere` matches the end of the scene. It expects only the oldest step, because three rows show no other. */
const scenes: [title: string, scene: string, isThere: RegExp][] = [
  ["each running step has its rows", "three", /RUN make all +1m03s$/m],
  ["finished steps move up and free their rows", "two", /RUN npm test +1m02s$/m],
  ["the oldest steps are shown if there are too few rows", "many", /RUN make cron +9\.0s$/m],
  ["a failure shows the whole output of its stage only", "failure", ended],
  ["Ctrl-C leaves no row of what it has ended", "interruption", ended],
];

test.each(
  sizes.flatMap(({ columns, rows }) =>
    scenes.map(([title, scene, isThere]) => ({ title, scene, isThere, columns, rows })),
  ),
)("$columns x $rows: $title", async ({ scene, isThere, columns, rows }) => {
  const terminal = await openTerminal({
    ...{ columns, rows, workingDirectory: temporaryDirectory() },
    programs: { replay: [process.execPath, replay] },
    environment: {},
  });
  try {
    terminal.type(`replay ${scene}`);
    await terminal.waitFor(isThere);
    // With the lines that have scrolled out, among which no drawn row may stay.
    const shown = `${terminal.history()}\n`;
    expectGolden(join(cases, `stages-${scene}-${columns}x${rows}.txt`), shown);
    expect(terminal.isCursorShown()).toBe(true);
  } finally {
    terminal.close();
  }
});
