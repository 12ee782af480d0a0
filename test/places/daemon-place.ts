/** bough in the place of docker's builder, beside a daemon: docker's command line starts it, and runs the images that it gives the daemon. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { startDocker } from "../support/docker.ts";
import { makeOpenDirectory } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";

export async function openDaemonPlace(): Promise<Place> {
  const docker = await startDocker(join(temporaryDirectory(), "docker"));
  const base = "base:1";
  await docker.importBase(await makeBusyboxLayout(temporaryDirectory()), base);
  const home = temporaryDirectory();
  const plugins = join(home, "cli-plugins");
  mkdirSync(plugins);
  symlinkSync(compileBough(), join(plugins, "docker-buildx"));
  const environment = {
    ...docker.environment,
    ...{ HOME: home, DOCKER_CONFIG: home, BOUGH_HOME: join(home, "state"), LC_ALL: "C.UTF-8" },
  };
  return {
    base,
    makeDirectory: makeOpenDirectory,
    path: (path) => path,
    start(directory, words, options) {
      const command = [...docker.command, ...wordsOfDocker(words)];
      return startProgram({ command, directory, environment, input: "null" }, options);
    },
    close: docker.close,
  };
}

/** Returns docker's own words for what bough does. */
function wordsOfDocker([name = "", ...words]: readonly string[]): string[] {
  switch (name) {
    case "run":
      return ["run", "--rm", "--interactive", "--network", "none", "--pull", "never", ...words];
    case "images": {
      const [, image = "", destination = ""] = words;
      return ["save", "--output", destination.replace("docker-archive:", ""), image];
    }
    case "tag":
      return [name, ...words];
    default:
      return ["buildx", name, ...words];
  }
}
