/** Help and the manual at a real terminal: they fit its width, and longer ones go through the pager. */
import { afterEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { expectGolden } from "../support/golden.ts";
import type { Terminal } from "../support/terminal.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(180_000);

const golden = join(import.meta.dir, "../cases/terminal");
/** Marks what it shows, and waits for Enter as a pager does. */
const pager = "cat; echo PAGED; read line </dev/tty";

let terminal: Terminal | undefined;
afterEach(() => {
  terminal?.close();
  terminal = undefined;
});

async function open(columns: number, rows: number, PAGER = pager): Promise<Terminal> {
  terminal = await openBoughTerminal({
    ...{ home: temporaryDirectory(), columns, rows },
    environment: { PAGER, NO_COLOR: "1" },
  });
  return terminal;
}

test.each([
  ["overview", "-h", 80, 24],
  ["overview", "-h", 120, 40],
  ["build-help", "build -h", 80, 24],
  ["build-help", "build -h", 120, 40],
  ["topics", "help", 80, 24],
  ["topics", "help", 120, 40],
])("%s (bough %s) fits a screen of %d columns and %d rows", async (name, line, columns, rows) => {
  const shown = await open(columns, rows);
  await shown.run(`clear; bough ${line}`);
  expect(shown.screen()).not.toContain("PAGED");
  expectGolden(join(golden, `${name}-${columns}x${rows}.txt`), `${shown.screen()}\n`);
});

test.each([
  ["topic", "help disk", 80],
  ["topic", "help disk", 120],
])(
  "%s (bough %s) goes through the pager at %d columns if it is longer than the screen",
  async (name, line, columns) => {
    const shown = await open(columns, 16);
    shown.type(`clear; bough ${line}; echo "exit code $?"`);
    await shown.waitFor("\nPAGED");
    // Ctrl-C is the pager's: bough ends after it, not before.
    expectGolden(join(golden, `${name}-${columns}x16.txt`), `${shown.history()}\n`);
    shown.type("");
    await shown.waitFor("exit code 0");
  },
);

test("help that is longer than the screen is paged; without a pager it is printed", async () => {
  const shown = await open(80, 10);
  shown.type("bough build -h");
  await shown.waitFor("\nPAGED");
  shown.type("");
  await shown.waitForLastLine("$");
  shown.type("clear; PAGER=/nowhere bough build -h; echo over");
  expect(await shown.waitFor("\nover")).toContain("--no-cache bypasses cached layers. See `bough agent`.");
});

test("Ctrl-C in the pager does not end bough before it", async () => {
  const shown = await open(
    80,
    10,
    "trap 'echo CAUGHT' INT; cat; echo PAGED; read line </dev/tty; read line </dev/tty; echo LEFT",
  );
  shown.type('bough build -h; echo "exit code $?"');
  await shown.waitFor("\nPAGED");
  shown.press("C-c");
  await shown.waitFor("CAUGHT");
  expect(shown.screen()).not.toContain("exit code");
  shown.type("");
  shown.type("");
  expect(await shown.waitFor("exit code 0")).toContain("LEFT");
});
