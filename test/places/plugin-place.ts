/** bough in the place of docker's builder, without a daemon: docker's command line starts it. */
import { mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { findClient } from "../support/docker.ts";
import { importBase, makeOpenDirectory } from "./engine-place.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";

/** Commands that docker has under the same names; the others are bough's own, on the same home. */
const ofDocker = new Set(["build", "bake"]);

export async function openPluginPlace(): Promise<Place> {
  const home = temporaryDirectory();
  const plugins = join(home, ".docker/cli-plugins");
  mkdirSync(plugins, { recursive: true });
  symlinkSync(compileBough(), join(plugins, "docker-buildx"));
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: home,
    BOUGH_HOME: join(home, "state"),
    BOUGH_DOCKER: "1",
    LC_ALL: "C.UTF-8",
  };
  const place: Place = {
    base: "base:1",
    makeDirectory: makeOpenDirectory,
    path: (path) => path,
    start(directory, words, options) {
      const isDockers = ofDocker.has(words[0] ?? "");
      const command = [...(isDockers ? [findClient(), "buildx"] : [compileBough()]), ...words];
      return startProgram({ command, directory, environment, input: "null" }, options);
    },
    close: async () => {},
  };
  await importBase(place);
  return place;
}
