/** bough's program for Windows, on a Windows machine, with a service on this one. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBoughFor } from "../support/compiled-for.ts";
import { startServer } from "../support/server.ts";
import { startWindows, type WindowsMachine } from "./machine.ts";

export interface WindowsBough extends WindowsMachine {
  /** The state directory of the service. */
  serverHome: string;
  /** Runs a command line of bough. Services have the image `busybox:1`. */
  bough(words: readonly string[], options?: Parameters<WindowsMachine["run"]>[1]): Promise<Ended>;
  /** Runs a command line of Windows' shell. */
  shell(line: string, options?: Parameters<WindowsMachine["run"]>[1]): Promise<Ended>;
}

export async function startWindowsBough(): Promise<WindowsBough> {
  const BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory(), { tag: "1" });
  const imported = await runBough(["images", "import", layout, "--tag", "busybox:1"], {
    workingDirectory: BOUGH_HOME,
    environment: { BOUGH_HOME },
  });
  if (imported.exitCode !== 0) throw new Error(imported.stderr);
  const machine = await startWindows();
  const server = await startServer({ BOUGH_HOME });
  linkSync(compileBoughFor("windows-x64"), join(machine.drive, "bough.exe"));
  let stopped: Promise<unknown> | undefined;
  const service = { CONTREE_URL: server.url, CONTREE_TOKEN: server.token ?? "" };
  const run = (command: readonly string[], options: Parameters<WindowsMachine["run"]>[1] = {}) =>
    machine.run(command, { ...options, environment: { ...service, ...options.environment } });
  return {
    ...machine,
    serverHome: BOUGH_HOME,
    bough: (words, options) => run(["D:\\bough.exe", ...words], options),
    shell: (line, options) => run(["cmd", "/c", line], options),
    async stop() {
      stopped ??= Promise.all([machine.stop(), server.stop()]);
      await stopped;
    },
  };
}
