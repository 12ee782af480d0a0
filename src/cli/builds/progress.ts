import { closeSync, constants, openSync, readSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import { usageError } from "../../errors.ts";
import type { SpoolFile } from "../../terminal/output/held-output.ts";
import { createPlainProgress, type Progress } from "../../terminal/progress.ts";
import { formatLogLines, formatOutput } from "../../terminal/terminal-text.ts";
import type { Surroundings } from "../command-line/command.ts";
import { stateDirectory, watchedTerminal } from "../process/runtime.ts";
import type { LocatedBuild } from "./inputs.ts";
import type { ProgressMode } from "./options/result-definitions.ts";

/**
 * Creates a display, and loads only its code. In GitHub Actions, log lines have annotations.
 *
 * @param build the one that is shown; `undefined` for several
 */
export async function createProgress(
  given: ProgressMode | undefined,
  surroundings: Surroundings,
  build?: LocatedBuild,
): Promise<Progress> {
  const mode = chooseMode(given, surroundings);
  const progress = await createDisplay(mode, surroundings);
  if (mode !== "plain" || surroundings.runtime.environment.GITHUB_ACTIONS !== "true") return progress;
  const { annotateBuild } = await import("./annotate.ts");
  return annotateBuild(progress, surroundings, build);
}

async function createDisplay(
  mode: Exclude<ProgressMode, "auto">,
  surroundings: Surroundings,
): Promise<Progress> {
  const { runtime, globals, log } = surroundings;
  const { stderr, clock, wordsOf } = runtime;
  const open = () => openSpoolFile(stateDirectory(runtime));
  switch (mode) {
    case "plain":
      return createPlainProgress({
        log,
        clock,
        logLevel: globals.logLevel,
        write: {
          line: (text) => stderr.write(formatLogLines(text, stderr)),
          output: (text) => stderr.write(formatOutput(text, stderr)),
        },
        openSpoolFile: open,
        wordsOf,
      });
    case "json": {
      const { createJsonProgress } = await import("../../terminal/json-progress.ts");
      return createJsonProgress({ write: stderr.write, clock, logLevel: globals.logLevel });
    }
    case "rawjson": {
      const { createSolveProgress } = await import("../../terminal/solve-progress.ts");
      return createSolveProgress({ write: stderr.write, clock, logLevel: globals.logLevel, wordsOf });
    }
    case "compact":
    case "tty": {
      const { createLiveView } = await import("../../terminal/live-view.ts");
      const view = createLiveView({
        terminal: stderr,
        clock,
        logLevel: globals.logLevel,
        openSpoolFile: open,
        isCompact: mode === "compact",
        signal: runtime.signal,
        wordsOf,
      });
      runtime.views.add(view);
      return view;
    }
  }
}

/** Returns the mode, or one that suits standard error. Throws a usage BoughError if the mode is impossible. */
function chooseMode(
  mode: ProgressMode = "auto",
  { runtime, globals }: Surroundings,
): Exclude<ProgressMode, "auto"> {
  const { stderr, environment } = runtime;
  if ((mode === "tty" || mode === "compact") && !stderr.isTerminal) {
    throw usageError(
      `--progress ${mode} needs a terminal on standard error`,
      "Without --progress a terminal is used if there is one; --progress plain prints log lines.",
    );
  }
  if (mode !== "auto") return mode;
  return watchedTerminal(runtime, globals) !== undefined && environment.TERM !== "dumb" ? "compact" : "plain";
}

const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = constants;

/** Opens a file in `directory` and removes its name, so that the file disappears with the process, however that ends. */
export function openSpoolFile(directory: string): SpoolFile {
  const path = join(directory, `.output-${crypto.randomUUID()}`);
  const descriptor = openSync(path, O_RDWR | O_CREAT | O_EXCL | (O_NOFOLLOW ?? 0), 0o600);
  let size = 0;
  let isNamed = true;
  const unname = () => {
    if (!isNamed) return;
    try {
      rmSync(path);
      isNamed = false;
    } catch {
      // Windows can't remove an open file: `close` removes it.
    }
  };
  unname();
  return {
    append(text) {
      const bytes = Buffer.from(text);
      for (let written = 0; written < bytes.length; )
        written += writeSync(descriptor, bytes, written, bytes.length - written, size + written);
      // Partly written text does not count.
      size += bytes.length;
    },
    read: (buffer, position) =>
      readSync(descriptor, buffer, 0, Math.min(buffer.length, size - position), position),
    close() {
      closeSync(descriptor);
      unname();
    },
  };
}
