import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { startServer } from "../support/server.ts";

/** `bough serve` with the base image. The client's program, its paths and its surroundings are the place's. */
export interface ServedEngine {
  url: string;
  token: string;
  base: string;
  /** Its state directory. */
  home: string;
  close(): Promise<void>;
}

export async function serveEngine(): Promise<ServedEngine> {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const words = ["--local", "images", "import", layout, "--tag", "base:1"];
  const imported = await runBough(words, { workingDirectory: "/", environment });
  if (imported.exitCode !== 0) throw new Error(imported.stderr);
  const token = "token-of-the-place";
  const server = await startServer(environment, "--listen", "127.0.0.1:0", "--token", token);
  const home = environment.BOUGH_HOME;
  return { url: server.url, token, base: "base:1", home, close: async () => void (await server.stop()) };
}
