/** The Windows program as a client of `bough serve`, under Wine. */
import { mkdtempSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { writeFiles } from "../support/files.ts";
import { installPrograms, programsPath, runGit } from "../windows/programs.ts";
import { startWindowsBough } from "../windows/windows-bough.ts";
import type { Place } from "./place.ts";
import { startProgram } from "./program.ts";

export async function openWindowsPlace(): Promise<Place> {
  const windows = await startWindowsBough();
  const { drive } = windows;
  const programs = installPrograms(drive, { git: (call) => runGit(drive, call) });
  const environment = {
    ...windows.service,
    BOUGH_HOME: "D:\\home",
    BOUGH_DOCKER: "1",
    WINEPATH: programsPath,
  };
  let inputs = 0;
  return {
    base: windows.base,
    makeDirectory(files) {
      const directory = mkdtempSync(join(drive, "place-"));
      writeFiles(directory, files);
      return directory;
    },
    path: (path) =>
      path.startsWith("/")
        ? `D:\\${relative(drive, path).replaceAll("/", "\\")}`
        : path.replaceAll("/", "\\"),
    start(directory, words, { stdin, ...options } = {}) {
      const program = ["D:\\bough.exe", ...words];
      const given = { directory, environment: { ...environment, ...options.environment } };
      const command = windows.command(stdin === undefined ? program : readingFile(program, stdin), given);
      return startProgram({
        command,
        directory: "/",
        environment: { PATH: process.env.PATH ?? "" },
        input: "null",
      });
    },
    async close() {
      programs.stop();
      await windows.stop();
    },
  };

  /** Wine passes no pipes of this machine on: its shell redirects a file. */
  function readingFile(program: readonly string[], stdin: string | Uint8Array): string[] {
    const name = `input-${inputs++}`;
    writeFileSync(join(drive, name), stdin);
    return ["cmd", "/c", `${program.join(" ")} < D:\\${name}`];
  }
}
