/** bough's program for Windows, on a Windows machine, with `bough serve` on this one. */
import { linkSync } from "node:fs";
import { join } from "node:path";
import { type ServedEngine, serveEngine } from "../places/served-engine.ts";
import type { Ended } from "../support/bough.ts";
import { compileBoughFor } from "../support/compiled-for.ts";
import { startWindows, type WindowsMachine } from "./machine.ts";

export interface WindowsBough extends WindowsMachine, Pick<ServedEngine, "base" | "home"> {
  /** The variables that name the service. */
  service: Readonly<Record<string, string>>;
  /** Runs a command line of bough, `D:\bough.exe`. */
  bough(words: readonly string[], options?: Parameters<WindowsMachine["run"]>[1]): Promise<Ended>;
  /** Runs a command line of Windows' shell. */
  shell(line: string, options?: Parameters<WindowsMachine["run"]>[1]): Promise<Ended>;
}

export async function startWindowsBough(): Promise<WindowsBough> {
  const [machine, server] = await Promise.all([startWindows(), serveEngine()]);
  linkSync(compileBoughFor("windows-x64"), join(machine.drive, "bough.exe"));
  const service = { CONTREE_URL: server.url, CONTREE_TOKEN: server.token };
  const run = (program: readonly string[], options: Parameters<WindowsMachine["run"]>[1] = {}) =>
    machine.run(program, { ...options, environment: { ...service, ...options.environment } });
  let stopped: Promise<unknown> | undefined;
  return {
    ...machine,
    ...{ service, base: server.base, home: server.home },
    bough: (words, options) => run(["D:\\bough.exe", ...words], options),
    shell: (line, options) => run(["cmd", "/c", line], options),
    async stop() {
      stopped ??= Promise.all([machine.stop(), server.close()]);
      await stopped;
    },
  };
}
