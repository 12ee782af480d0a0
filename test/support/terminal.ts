/** A terminal of a given size, with a shell at its prompt. tmux keeps the screen, so that tests can read it. */
import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./bough.ts";

export interface Terminal {
  /** Types text. */
  write(text: string): void;
  /** Types a line and presses Enter. */
  type(line: string): void;
  /** Runs a command line at the prompt `$`, and waits for the next prompt. */
  run(line: string): Promise<void>;
  /** Presses a key, which has tmux's name, such as `C-c`. */
  press(key: string): void;
  /** The text on the screen, without trailing blanks. */
  screen(): string;
  /** The same after all lines that have scrolled out of the screen. */
  history(): string;
  /** The same with the control sequences of its colours. */
  styledHistory(): string;
  /** Waits until the screen contains the text or matches the pattern, and returns it. */
  waitFor(condition: string | RegExp): Promise<string>;
  /** Waits until the last line of the screen is `expected`. */
  waitForLastLine(expected: string): Promise<string>;
  resize(columns: number, rows: number): void;
  isCursorShown(): boolean;
  /** Ids of the running processes that the shell has started. */
  jobs(): number[];
  close(): void;
}

interface TerminalOptions {
  columns: number;
  rows: number;
  workingDirectory: string;
  /** Programs that the shell finds by their names, and the command that each stands for. */
  programs: Record<string, readonly string[]>;
  environment: Record<string, string>;
  /** An interactive shell whose prompt is `$ `; bash, if none is given. */
  shell?: readonly string[];
}

const maxWaitMilliseconds = 60_000;
export const bash = ["bash", "--norc", "--noprofile", "-i"];

export async function openTerminal(options: TerminalOptions): Promise<Terminal> {
  const { columns, rows, workingDirectory, programs, environment, shell = bash } = options;
  // If a test is killed, this is removed with the home of the tests.
  const directory = temporaryDirectory();
  const tmux = (...words: string[]) =>
    Bun.spawnSync(["tmux", "-S", join(directory, "socket"), "-f", "/dev/null", ...words], {
      env: { PATH: process.env.PATH, LANG: "C.UTF-8", LC_ALL: "C.UTF-8" },
    });
  const call = (...words: string[]): string => {
    const ended = tmux(...words);
    if (ended.exitCode !== 0) throw new Error(`tmux ${words.join(" ")}: ${ended.stderr.toString()}`);
    return ended.stdout.toString();
  };
  const path = `${writePrograms(directory, programs)}:${process.env.PATH}`;
  const variables = { ...environment, PATH: path, PS1: "$ ", LC_ALL: "C.UTF-8" };
  const settings = Object.entries(variables).map(([name, value]) => `${name}=${value}`);
  const size = ["-x", String(columns), "-y", String(rows)];
  call("new-session", "-d", ...size, "-c", workingDirectory, "env", ...settings, ...shell);

  const capture = (...words: string[]): string =>
    call("capture-pane", "-p", ...words)
      .split("\n")
      .map((line) => line.trimEnd())
      .join("\n")
      .trimEnd();

  const terminal: Terminal = {
    write: (text) => void call("send-keys", "-l", text),
    type: (line) => {
      terminal.write(line);
      call("send-keys", "Enter");
    },
    async run(line) {
      terminal.write(line);
      // Until the shell shows what was typed, the prompt before it is the last line.
      await terminal.waitFor(/(^|\n)(?!\$$)[^\n]*$/);
      terminal.press("Enter");
      await terminal.waitForLastLine("$");
    },
    press: (key) => void call("send-keys", key),
    screen: () => capture(),
    history: () => capture("-S", "-"),
    styledHistory: () => capture("-e", "-S", "-"),
    async waitFor(condition) {
      const deadline = Date.now() + maxWaitMilliseconds;
      for (;;) {
        const screen = terminal.screen();
        const isThere = typeof condition === "string" ? screen.includes(condition) : condition.test(screen);
        if (isThere) return screen;
        if (Date.now() > deadline) throw new Error(`never on the screen: ${condition}\n${screen}`);
        await Bun.sleep(20);
      }
    },
    waitForLastLine: (expected) =>
      terminal.waitFor(new RegExp(`(^|\\n)${expected.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`)),
    resize: (newColumns, newRows) =>
      void call("resize-window", "-x", String(newColumns), "-y", String(newRows)),
    isCursorShown: () => call("display-message", "-p", "#{cursor_flag}").trim() === "1",
    jobs() {
      const shellId = call("display-message", "-p", "#{pane_pid}").trim();
      const children = readFileSync(`/proc/${shellId}/task/${shellId}/children`, "utf8");
      return children.split(" ").filter(Boolean).map(Number);
    },
    close() {
      // This fails if the server has ended with its shell.
      tmux("kill-server");
      rmSync(directory, { recursive: true, force: true });
    },
  };
  try {
    await terminal.waitFor(/^\$$/m);
  } catch (error) {
    terminal.close();
    throw error;
  }
  return terminal;
}

/** Writes a script for each program. Returns the directory that they are in. */
function writePrograms(parent: string, programs: TerminalOptions["programs"]): string {
  const directory = join(parent, "programs");
  mkdirSync(directory);
  for (const [name, command] of Object.entries(programs)) {
    const words = command.map((word) => `'${word}'`).join(" ");
    writeFileSync(join(directory, name), `#!/bin/sh\nexec ${words} "$@"\n`, { mode: 0o755 });
  }
  return directory;
}
