/** Starts the programs of a place, with a given standard input. */
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Started, StartOptions } from "./place.ts";

/** Standard input where a promise gives none: `/dev/null`, a closed descriptor, a pipe that nobody writes to, or a terminal. */
export type Input = "null" | "closed" | "pipe" | "terminal";

interface Program {
  command: readonly string[];
  directory: string;
  environment: Readonly<Record<string, string>>;
  input: Input;
}

export function startProgram(program: Program, { stdin, environment }: StartOptions = {}): Started {
  const given = { ...program, environment: { ...program.environment, ...environment } };
  return stdin === undefined && program.input === "terminal"
    ? startInTerminal(given)
    : startOnPipes(given, stdin);
}

function startOnPipes(
  { command, directory, environment, input }: Program,
  stdin: StartOptions["stdin"],
): Started {
  const closed = stdin === undefined && input === "closed" ? ["sh", "-c", 'exec "$@" <&-', "sh"] : [];
  const child = Bun.spawn([...closed, ...command], {
    cwd: directory,
    env: { ...environment },
    stdin: stdin !== undefined ? Buffer.from(stdin) : input === "pipe" ? "pipe" : "ignore",
    stdout: "pipe",
    stderr: "pipe",
    // A process group of its own gets signals as from a terminal.
    detached: true,
  });
  let said = "";
  const read = async () => {
    for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text;
  };
  const ended = Promise.all([new Response(child.stdout).text(), read(), child.exited]).then(
    ([stdout, , exitCode]) => ({ exitCode, stdout, stderr: said }),
  );
  return {
    ended,
    untilStderr: (text) => waitFor(text, () => said, ended),
    interrupt: () => process.kill(-child.pid, "SIGINT"),
    kill: () => process.kill(-child.pid, "SIGKILL"),
  };
}

/** Only standard input is the terminal: what the program writes goes to files. */
function startInTerminal({ command, directory, environment }: Program): Started {
  const place = mkdtempSync(join(tmpdir(), "bough-terminal-"));
  const [out, err, id] = ["out", "err", "id"].map((name) => join(place, name)) as [string, string, string];
  const quoted = command.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  writeFileSync(join(place, "script"), `echo $$ > '${id}'\nexec ${quoted} > '${out}' 2> '${err}'\n`);
  for (const path of [out, err]) writeFileSync(path, "");
  const child = Bun.spawn(
    ["script", "--quiet", "--return", "--command", `sh '${join(place, "script")}'`, "/dev/null"],
    {
      cwd: directory,
      env: { ...environment },
      stdin: "pipe",
      stdout: "ignore",
      stderr: "ignore",
    },
  );
  const read = (path: string) => readFileSync(path, "utf8");
  const ended = child.exited.then((exitCode) => ({ exitCode, stdout: read(out), stderr: read(err) }));
  return {
    ended,
    untilStderr: (text) => waitFor(text, () => read(err), ended),
    interrupt() {
      child.stdin.write("\x03");
      child.stdin.flush();
    },
    kill: () => process.kill(Number(read(id)), "SIGKILL"),
  };
}

async function waitFor(text: string, said: () => string, ended: Promise<unknown>): Promise<void> {
  let isOver = false;
  void ended.finally(() => {
    isOver = true;
  });
  for (;;) {
    const wasOver = isOver;
    if (said().includes(text)) return;
    if (wasOver) throw new Error(`the program ended without saying ${JSON.stringify(text)}:\n${said()}`);
    await Bun.sleep(5);
  }
}
