/** bough on its own engine, as root or as an ordinary user. */
import { chmodSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser } from "../support/ordinary-user.ts";
import { type Place, run } from "./place.ts";
import { type Input, startProgram } from "./program.ts";

interface EnginePlaceOptions {
  user: "root" | "ordinary";
  input?: Input;
}

export async function openEnginePlace({ user, input = "null" }: EnginePlaceOptions): Promise<Place> {
  const ordinary = user === "ordinary" ? makeOrdinaryUser() : undefined;
  const home = ordinary?.home ?? temporaryDirectory();
  const program = ordinary?.giveBough() ?? compileBough();
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
      const command = [...(ordinary?.prefix ?? []), "env", "-C", directory, program, ...words];
      return startProgram({ command, directory: "/", environment, input }, options);
    },
    close: async () => ordinary?.remove(),
  };
  await importBase(place);
  return place;
}

/** Gives the place's own store its base image. */
export async function importBase(place: Place): Promise<void> {
  const layout = await makeBusyboxLayout(place.makeDirectory({}));
  const { exitCode, stderr } = await run(place, "/", ["images", "import", layout, "--tag", place.base]);
  if (exitCode !== 0) throw new Error(stderr);
}

/** Makes a directory that anyone may write to. */
export function makeOpenDirectory(files: Parameters<Place["makeDirectory"]>[0]): string {
  const directory = join(temporaryDirectory(), "open");
  for (const path of [join(directory, ".."), join(directory, "../..")]) chmodSync(path, 0o755);
  mkdirSync(directory);
  writeFiles(directory, files);
  chmodSync(directory, 0o777);
  return directory;
}
