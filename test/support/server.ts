/** `bough serve` in a separate process. */
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "./bough.ts";
import { compileBough } from "./compiled.ts";
import { writeFiles } from "./files.ts";

export interface ServerProcess {
  url: string;
  pid: number;
  /** The token that the server made; `null` if it was given one. */
  token: string | null;
  /** Sends SIGINT or another signal, and returns the exit code and standard error. */
  stop(signal?: NodeJS.Signals): Promise<{ exitCode: number; stderr: string }>;
}

export async function startServer(
  environment: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<ServerProcess> {
  return start([compileBough()], environment, words);
}

/** Starts one that says that its machine is for linux/arm64, and imports images for that. */
export async function startArm64Server(
  environment: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<ServerProcess> {
  const programs = temporaryDirectory();
  const skopeo = Bun.which("skopeo");
  writeFiles(programs, { skopeo: `#!/bin/sh\nexec ${skopeo} --override-arch=arm64 "$@"\n` });
  chmodSync(join(programs, "skopeo"), 0o755);
  const preload = join(import.meta.dir, "arm64-machine.ts");
  const main = join(import.meta.dir, "../../src/main.ts");
  const PATH = `${programs}:${process.env.PATH}`;
  return start([process.execPath, "--preload", preload, main], { PATH, ...environment }, words);
}

async function start(
  program: readonly string[],
  environment: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<ServerProcess> {
  const child = Bun.spawn([...program, "serve", "-f", "json", ...words], {
    env: { PATH: process.env.PATH ?? "", HOME: process.env.HOME ?? "", ...environment },
    stdout: "pipe",
    stderr: "pipe",
  });
  const { value } = await child.stdout.getReader().read();
  const { url, token } = JSON.parse(new TextDecoder().decode(value));
  return {
    url,
    pid: child.pid,
    token,
    async stop(signal = "SIGINT") {
      child.kill(signal);
      return { exitCode: await child.exited, stderr: await new Response(child.stderr).text() };
    },
  };
}
