/**
 * What a person sees on a terminal of stages that are built at once: `test/cases/terminal/stages-<scene>-<columns>x<rows>.txt`,
 * the scenes of `stages-replay.ts`. `UPDATE_GOLDEN=1` writes them.
 */
import { expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { openTerminal } from "../support/terminal.ts";

// A condition that never comes is told with the screen, before the test's own time is over.
setDefaultTimeout(30_000);

const cases = join(import.meta.dir, "../cases/terminal");
const replay = join(import.meta.dir, "stages-replay.ts");
const ended = /\n\$$/;
const sizes = [
  { columns: 80, rows: 24 },
  { columns: 40, rows: 10 },
  { columns: 40, rows: 3 },
];

/** `isThere`: the scene has come to its end. The oldest step alone is shown in three rows. */
const scenes: [title: string, scene: string, isThere: RegExp][] = [
  ["each running step has its rows", "three", /RUN make all +1m03s$/m],
  ["what is over passes up, and leaves its room", "two", /RUN npm test +1m02s$/m],
  ["of more steps than rows the oldest are shown", "many", /RUN make cron +9\.0s$/m],
  ["a failure shows its stage's output whole, and no other's", "failure", ended],
  ["Ctrl-C shows what each stage has come to", "interruption", ended],
];

test.each(
  sizes.flatMap(({ columns, rows }) =>
    scenes.map(([title, scene, isThere]) => ({ title, scene, isThere, columns, rows })),
  ),
)("$columns x $rows: $title", async ({ scene, isThere, columns, rows }) => {
  const programs = temporaryDirectory();
  const program = join(programs, "replay");
  writeFileSync(program, `#!/bin/sh\nexec '${process.execPath}' '${replay}' "$@"\n`);
  chmodSync(program, 0o755);
  const terminal = await openTerminal({
    ...{ columns, rows, workingDirectory: temporaryDirectory() },
    environment: { PATH: `${programs}:${process.env.PATH}` },
  });
  try {
    terminal.type(`replay ${scene}`);
    await terminal.waitFor(isThere);
    // All that has scrolled out, too: nothing that was drawn may stay there.
    const shown = `${terminal.history()}\n`;
    const golden = join(cases, `stages-${scene}-${columns}x${rows}.txt`);
    if (process.env.UPDATE_GOLDEN === "1") writeFileSync(golden, shown);
    expect(shown).toBe(existsSync(golden) ? readFileSync(golden, "utf8") : "");
    expect(terminal.isCursorShown()).toBe(true);
  } finally {
    terminal.close();
  }
});
