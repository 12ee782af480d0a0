/** bough as a client: of `bough serve`, and of a service with nothing but the specification's six calls. */
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { TestEngine } from "../support/engine.ts";
import { startServer } from "../support/server.ts";
import { makeOpenDirectory } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";
import { serveSixCalls } from "./six-calls.ts";

/** `bough serve` with the base image. The client's program, its paths and its surroundings are the place's. */
export interface ServedEngine {
  url: string;
  token: string;
  base: string;
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
  return { url: server.url, token, base: "base:1", close: async () => void (await server.stop()) };
}

export async function openServePlace(): Promise<Place> {
  const { close, ...service } = await serveEngine();
  return clientOf(service, close);
}

export async function openSixCallsPlace(): Promise<Place> {
  const engine = await TestEngine.open();
  const base = await engine.importBase();
  const service = serveSixCalls(engine);
  return clientOf({ url: service.url, token: "tok-5ecret", base }, async () => {
    service.stop();
    await engine.close();
  });
}

function clientOf(service: Pick<ServedEngine, "url" | "token" | "base">, close: () => Promise<void>): Place {
  const home = temporaryDirectory();
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    BOUGH_HOME: join(home, "state"),
    CONTREE_URL: service.url,
    CONTREE_TOKEN: service.token,
    BOUGH_DOCKER: "1",
    LC_ALL: "C.UTF-8",
  };
  return {
    base: service.base,
    makeDirectory: makeOpenDirectory,
    path: (path) => path,
    start: (directory, words, options) =>
      startProgram({ command: [compileBough(), ...words], directory, environment, input: "null" }, options),
    close,
  };
}
