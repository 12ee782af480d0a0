/** `bough serve` in a separate process. */
import { compileBough } from "./compiled.ts";

export interface ServerProcess {
  url: string;
  pid: number;
  /** The token that the server made; `null` if it was given one. */
  token: string | null;
  /** Sends SIGINT, and returns the exit code and standard error. */
  stop(): Promise<{ exitCode: number; stderr: string }>;
}

export async function startServer(
  environment: Readonly<Record<string, string>>,
  ...words: readonly string[]
): Promise<ServerProcess> {
  const child = Bun.spawn([compileBough(), "serve", "-f", "json", ...words], {
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
    async stop() {
      child.kill("SIGINT");
      return { exitCode: await child.exited, stderr: await new Response(child.stderr).text() };
    },
  };
}
