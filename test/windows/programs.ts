/** Programs for the Windows machine that this machine acts for: no real ones of git and docker can be had for it here. */
import { linkSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { bunFor } from "../support/compiled-for.ts";

/** A call of such a program. */
export interface Call {
  words: string[];
  /** Standard input. */
  input: string;
  environment: Record<string, string>;
}

interface Answer {
  stdout?: string;
  stderr?: string;
  status?: number;
}

/** The directory of the programs, for the PATH. */
export const programsPath = "D:\\programs";

/** Puts `NAME.exe` for each name into the directory on `drive`, the drive D:. A call has its answer from the function. */
export function installPrograms(
  drive: string,
  programs: Readonly<Record<string, (call: Call) => Answer | Promise<Answer>>>,
): { stop(): void } {
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const name = new URL(request.url).pathname.slice(1);
      return Response.json(await programs[name]?.((await request.json()) as Call));
    },
  });
  const [first, ...others] = Object.keys(programs).map((name) => join(drive, "programs", `${name}.exe`));
  compile(first ?? "", programOf(server.url.href));
  for (const other of others) linkSync(first ?? "", other);
  return { stop: () => void server.stop(true) };
}

/** Makes `pipe.exe`: it passes connections to a named pipe there on to a port of this machine, and then makes `D:\\pipe-listens`. */
export function compilePipe(drive: string, pipe: string, port: number): void {
  compile(
    join(drive, "programs/pipe.exe"),
    `const { createServer, connect } = require("node:net");
    createServer((client) => {
      const server = connect(${port}, "127.0.0.1");
      for (const [one, other] of [[client, server], [server, client]]) {
        one.pipe(other);
        one.on("error", () => other.destroy());
      }
    }).listen(${JSON.stringify(pipe)}, () => require("node:fs").writeFileSync("D:\\\\pipe-listens", ""));`,
  );
}

function compile(program: string, text: string): void {
  mkdirSync(join(program, ".."), { recursive: true });
  const source = `${program}.js`;
  writeFileSync(source, text);
  const runtime = bunFor("windows-x64");
  const words = ["build", "--compile", "--target=bun-windows-x64", `--compile-executable-path=${runtime}`];
  const { success, stderr } = Bun.spawnSync([process.execPath, ...words, `--outfile=${program}`, source], {
    stdout: "ignore",
    stderr: "pipe",
  });
  if (!success) throw new Error(stderr.toString());
}

function programOf(address: string): string {
  return `
    const name = require("node:path").win32.basename(process.execPath, ".exe");
    const input = await new Response(Bun.stdin.stream()).text();
    const body = JSON.stringify({ words: process.argv.slice(2), input, environment: process.env });
    const response = await fetch(${JSON.stringify(address)} + name, { method: "POST", body });
    const { stdout = "", stderr = "", status = 0 } = await response.json();
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    process.exitCode = status;`;
}

/**
 * Does what git is asked for, with paths of this machine. It stands in for Git for Windows, which keeps no modes and makes no links if
 * bough says so.
 */
export async function runGit(drive: string, { words, environment }: Call): Promise<Answer> {
  const toLocal = (word: string) =>
    /^D:\\/.test(word) ? join(drive, word.slice(3).replaceAll("\\", "/")) : word;
  const own = Object.entries(environment).filter(([name]) => name.startsWith("GIT_"));
  const git = Bun.spawn(["git", ...words.map(toLocal)], {
    env: { PATH: process.env.PATH, HOME: "/dev/null", ...Object.fromEntries(own) },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [stdout, stderr] = await Promise.all([
    new Response(git.stdout).text(),
    new Response(git.stderr).text(),
  ]);
  return { stdout, stderr, status: await git.exited };
}
