/**
 * git for the Windows machine: a program of Windows that has the git of this machine do what it is asked for, with paths of this
 * machine. It stands in for Git for Windows, which keeps no modes and makes no links if bough says so.
 */
import { join } from "node:path";
import { bunFor } from "../support/compiled-for.ts";
import { writeFiles } from "../support/files.ts";

interface Call {
  words: string[];
  environment: Record<string, string>;
}

/** The environments of the calls so far. */
export interface WindowsGit {
  calls: readonly Call[];
  stop(): void;
}

/** Makes `D:\git\git.exe`. `drive` is the drive D:. */
export function installGit(drive: string): WindowsGit {
  const calls: Call[] = [];
  const toLocal = (word: string) =>
    /^D:\\/.test(word) ? join(drive, word.slice(3).replaceAll("\\", "/")) : word;
  const server = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    async fetch(request) {
      const call = (await request.json()) as Call;
      calls.push(call);
      const own = Object.entries(call.environment).filter(([name]) => name.startsWith("GIT_"));
      const git = Bun.spawn(["git", ...call.words.map(toLocal)], {
        env: { PATH: process.env.PATH, HOME: "/dev/null", ...Object.fromEntries(own) },
        stdin: "ignore",
        stdout: "pipe",
        stderr: "pipe",
      });
      const [stdout, stderr] = await Promise.all([
        new Response(git.stdout).text(),
        new Response(git.stderr).text(),
      ]);
      return Response.json({ stdout, stderr, status: await git.exited });
    },
  });
  writeFiles(drive, { "git/main.js": programOf(server.url.href) });
  const compile = ["build", "--compile", "--target=bun-windows-x64"];
  const { success, stderr } = Bun.spawnSync(
    [
      ...[process.execPath, ...compile, `--compile-executable-path=${bunFor("windows-x64")}`],
      ...[`--outfile=${join(drive, "git/git.exe")}`, join(drive, "git/main.js")],
    ],
    { stdout: "ignore", stderr: "pipe" },
  );
  if (!success) throw new Error(stderr.toString());
  return { calls, stop: () => void server.stop(true) };
}

function programOf(address: string): string {
  return `
    const body = JSON.stringify({ words: process.argv.slice(2), environment: process.env });
    const response = await fetch(${JSON.stringify(address)}, { method: "POST", body });
    const { stdout, stderr, status } = await response.json();
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    process.exitCode = status;`;
}
