/** `bough shell` and `bough run -it` in terminals of three sizes, on the embedded engine. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { quote } from "../../src/programs/quote.ts";
import { makeAttacker } from "../hostile/attacker.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { lastingProcesses, untilRuns } from "../support/processes.ts";
import type { Terminal } from "../support/terminal.ts";
import { openBoughTerminal } from "./bough-terminal.ts";

setDefaultTimeout(180_000);

const home = temporaryDirectory();
const state = join(home, "state");
beforeAll(async () => {
  const layout = await makeBusyboxLayout(join(home, "layout"));
  const { exitCode } = await bough("images", "import", layout, "--tag", "base:1");
  expect(exitCode).toBe(0);
});

const bough = (...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory: home, environment: { BOUGH_HOME: state } });

const terminals: Terminal[] = [];
afterAll(() => {
  for (const terminal of terminals) terminal.close();
});

async function open(columns = 80, rows = 24): Promise<Terminal> {
  const terminal = await openBoughTerminal({ home, columns, rows });
  terminals.push(terminal);
  return terminal;
}

/** Waits until the screen ends with the sandbox's prompt. */
const ready = (shown: Terminal) => shown.waitFor(/\/ #$/);

/** Seconds that a command sleeps, which differ for each command so that it can be found. */
let lastSeconds = 71_000;
const uniqueSeconds = () => ++lastSeconds;

describe.each([
  [80, 24],
  [200, 50],
  [40, 10],
])("%i by %i", (columns, rows) => {
  test("a shell has the terminal's size and keys, and its exit code is bough's; then the terminal is restored", async () => {
    const shown = await open(columns, rows);
    shown.type(
      "stty -a | sed 1d > before; bough --local shell base:1; echo exit code $?; stty -a | sed 1d > after",
    );
    await ready(shown);
    shown.type("clear; stty size; tty");
    await shown.waitFor(`${rows} ${columns}\n/dev/pts/0`);
    shown.resize(columns + 7, rows + 3);
    const larger = `${rows + 3} ${columns + 7}`;
    const seconds = uniqueSeconds();
    shown.type(
      `clear; until [ "$(stty size)" = '${larger}' ]; do sleep 0.1; done; echo re''sized; sleep ${seconds}`,
    );
    await shown.waitFor("resized");
    await untilRuns(`sleep ${seconds}`);
    shown.press("C-c");
    await ready(shown);
    shown.type("clear; echo be''gun; cat");
    await shown.waitFor("begun");
    shown.type("one");
    await shown.waitFor("one\none");
    shown.press("C-z");
    await shown.waitFor("Stopped");
    shown.type("clear; fg");
    await shown.waitFor(/^cat$/m);
    shown.type("two");
    await shown.waitFor("two\ntwo");
    shown.press("C-d");
    await ready(shown);
    shown.type("printf '\\033[1;31mred\\033[0m\\n'; exit 3");
    await shown.waitFor("exit code 3");
    shown.type("clear; cmp before after && echo as before");
    await shown.waitFor(/^as before/m);
  });
});

test("a shell's changes are kept with --keep only, and those of `run -it` without -D", async () => {
  const shown = await open();
  shown.type("bough --local -S kept use base:1; clear");
  const sessions: [line: string, path: string][] = [
    ["shell kept", "/dropped"],
    ["-S kept shell --keep", "/kept"],
    ["-S kept run -it -- sh", "/kept-too"],
    ["-S kept run -Dit base:1 sh", "/dropped-too"],
  ];
  for (const [line, path] of sessions) {
    shown.type(`bough --local ${line}; echo over`);
    await ready(shown);
    shown.type(`touch ${path}; exit`);
    await shown.waitFor(/^over/m);
    shown.type("clear");
    await shown.waitFor(/^\$$/);
  }
  const { stdout } = await bough("-S", "kept", "ls", "/");
  const names = stdout.split("\n").flatMap((line) => /(dropped|kept)\S*/.exec(line)?.[0] ?? []);
  expect(names).toEqual(["kept", "kept-too"]);
});

test("SIGKILL leaves no sandbox behind, and after SIGTERM the terminal is restored, too", async () => {
  const shown = await open();
  shown.type("stty -a > before; bough --local shell base:1; clear; echo killed");
  await ready(shown);
  shown.type("sleep 6123.4");
  await shown.waitFor("sleep 6123.4");
  const [job = 0] = shown.jobs();
  process.kill(job, "SIGKILL");
  // Not the line that was typed.
  await shown.waitFor(/^killed/m);
  expect(await lastingProcesses("sleep 6123.4")).toEqual([]);
  const { stdout } = await bough("ps", "-f", "json");
  expect(JSON.parse(stdout)).toEqual([]);

  shown.type(
    "clear; bough --local shell base:1; echo exit code $?; stty -a | cmp - before && echo as before",
  );
  await ready(shown);
  process.kill(shown.jobs()[0] ?? 0, "SIGTERM");
  const screen = await shown.waitFor("as before");
  expect(screen).toContain("exit code 130");
});

test.each(["SIGSTOP", "SIGTSTP"])(
  "%s restores the terminal, and bough takes it again after fg",
  async (signal) => {
    const shown = await open();
    shown.type("stty -a | sed 1d > before; bough --local shell base:1");
    await ready(shown);
    process.kill(shown.jobs()[0] ?? 0, signal);
    await shown.waitFor("Stopped");
    shown.type("clear; stty -a | sed 1d | cmp - before && echo as before");
    await shown.waitFor(/^as before/m);
    shown.resize(70, 20);
    shown.type("clear; fg; echo exit code $?");
    await shown.waitFor("bough --local shell");
    const seconds = uniqueSeconds();
    shown.type(`clear; stty size; sleep ${seconds}`);
    await shown.waitFor("20 70");
    await untilRuns(`sleep ${seconds}`);
    shown.press("C-c");
    await ready(shown);
    shown.type("exit 3");
    await shown.waitFor("exit code 3");
    shown.type("clear; stty -a | sed 1d | cmp - before && echo as before");
    await shown.waitFor(/^as before/m);
  },
);

test.each<[string[]]>([[["nowhere:1"]], [["base:1", "--platform", "linux/riscv64"]]])(
  "a missing image is an error without the message about changes: %j",
  async ([image = "", ...options]) => {
    const ended = await runBough(["--local", "shell", image, ...options], {
      workingDirectory: home,
      environment: { BOUGH_HOME: state },
      hasInputTerminal: true,
      terminalColumns: 80,
    });
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain("has no image ");
    expect(ended.stderr).toContain(image);
    expect(ended.stderr).not.toContain("thrown away");
  },
);

test("a missing program is reported at the terminal", async () => {
  const shown = await open();
  shown.type("bough --local run -it -D base:1 nothing-there; echo exit code $?");
  const screen = await shown.waitFor("exit code 127");
  expect(screen).toContain('exec: "nothing-there": executable file not found in $PATH');
});

test.each([
  [["shell", "base:1"], {}, "bough shell needs a terminal, but standard input is not one"],
  [
    ["shell", "base:1"],
    { hasInputTerminal: true },
    "bough shell needs a terminal, but standard output is not one",
  ],
  [["run", "-it", "base:1", "sh"], {}, "bough run -it needs a terminal, but standard input is not one"],
  [["run", "-itd", "base:1", "sh"], {}, "-it cannot be used with -d"],
  [["run", "-d", "-it", "base:1", "sh"], {}, "-it cannot be used with -d"],
  [
    ["shell", "-f", "json", "base:1"],
    { hasInputTerminal: true, terminalColumns: 80 },
    "-f json is not supported",
  ],
  [
    ["shell", "--platform", "linux/arm64"],
    { hasInputTerminal: true, terminalColumns: 80 },
    "--platform needs an IMAGE",
  ],
  [["run", "-it", "-f", "json", "base:1"], {}, "-it cannot be used with -f json"],
  [
    ["build", "--on-error", "shell"],
    {},
    "bough build --on-error shell needs a terminal, but standard input is not one",
  ],
  [["build", "--on-error", "stop"], {}, "--on-error takes shell, not"],
])("%j is refused without a terminal", async (words, options, message) => {
  const ended = await runBough(["--local", ...words], {
    workingDirectory: home,
    environment: { BOUGH_HOME: state },
    ...options,
  });
  expect(ended).toMatchObject({ exitCode: 2, stderr: expect.stringContaining(message) });
});

test("--on-error shell starts a shell in the place of the failed step, with its secrets; then the build fails", async () => {
  const context = join(home, "broken");
  mkdirSync(context);
  writeFileSync(
    join(context, "Dockerfile"),
    "FROM base:1\nENV MODE=fast API_TOKEN=t0ken-t0ken\nWORKDIR /srv\nCOPY Dockerfile .\nUSER 1000\nRUN cat nothing\n",
  );
  const shown = await open(120);
  shown.type(`bough --local build ${context} --on-error shell; echo exit code $?`);
  const failure = await shown.waitFor(/\/srv [$]$/m);
  expect(failure).toContain("RUN cat nothing");
  expect(failure).toContain("opening a shell in place of the failed step");
  expect(failure).not.toContain("To open the failed step");
  shown.type("clear; id -u; pwd; ls; echo $MODE $API_TOKEN");
  await shown.waitFor("1000\n/srv\nDockerfile\nfast t0ken-t0ken\n");
  shown.type("exit 7");
  await shown.waitFor("exit code 1\n$");
});

test("an ordinary user gets such a shell, too, and is root in it", async () => {
  const attacker = makeAttacker("an ordinary user");
  try {
    await attacker.importImage("base:1");
    const shown = await open();
    shown.type(`${attacker.bough.map(quote).join(" ")} shell base:1; echo exit code $?`);
    await ready(shown);
    const seconds = uniqueSeconds();
    shown.type(`clear; id -u; tty; touch /etc/mine; stty size; sleep ${seconds}`);
    await shown.waitFor("0\n/dev/pts/0\n24 80");
    await untilRuns(`sleep ${seconds}`);
    shown.press("C-c");
    await ready(shown);
    shown.type("exit 5");
    await shown.waitFor("exit code 5");
  } finally {
    attacker.close();
  }
});
