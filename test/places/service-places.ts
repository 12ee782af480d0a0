/** bough as a client: of `bough serve`, and of a service with nothing but the specification's six calls. */
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { TestEngine } from "../support/engine.ts";
import { makeOpenDirectory } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";
import { type ServedEngine, serveEngine } from "./served-engine.ts";
import { serveSixCalls } from "./six-calls.ts";

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

export function clientOf(
  service: Pick<ServedEngine, "url" | "token" | "base">,
  close: () => Promise<void>,
  program: readonly string[] = [compileBough()],
): Place {
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
      startProgram({ command: [...program, ...words], directory, environment, input: "null" }, options),
    close,
  };
}
