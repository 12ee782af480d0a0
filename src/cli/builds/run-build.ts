import type { BuildResult } from "../../builder/result.ts";
import { messageOf } from "../../errors.ts";
import { exitCodeOfDocker, failureOf } from "../../terminal/failure.ts";
import type { Progress } from "../../terminal/progress.ts";
import type { Surroundings } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { usesKey } from "./keys/key-in-tags.ts";
import { type Measures, startMeasures } from "./measures.ts";
import { parseProgressMode } from "./options/result-definitions.ts";
import { performBuild } from "./perform-build.ts";
import { createProgress } from "./progress.ts";
import { type Recording, startRecording } from "./recording/recording.ts";
import type { BuildInvocation } from "./request.ts";
import { dockerIdOf, prepareResultFiles, type ResultFiles } from "./result-files.ts";

/**
 * Runs `bough build` after its command line is parsed. Returns the exit code. `show` creates the display of the build; by default, the
 * one that its options select.
 */
export async function runBuildCommand(given: BuildInvocation, show = showBuild): Promise<number> {
  await checkOnError(given);
  const progress = await show(given).catch((error: unknown) => {
    // Removes the file of an earlier build: after this failure, too, it must not be taken for one of this build.
    prepareResultFiles(given);
    throw error;
  });
  let invocation: BuildInvocation = given;
  let measures: Measures | undefined;
  const hasReport = invocation.options.report !== undefined;
  let recording = startRecording(invocation, { keepsOutput: hasReport });
  let files: ResultFiles | undefined;
  try {
    files = prepareResultFiles(invocation);
    measures = await startMeasures(given, progress, files);
    const keyed = await withKey(given, measures, progress, files);
    if (keyed === "skipped") return 0;
    if (keyed !== undefined) {
      invocation = keyed;
      recording = startRecording(invocation, { keepsOutput: hasReport });
    }
    const { printsImage, buildx, ...result } = await performBuild(
      measures?.progress ?? progress,
      invocation,
      measures,
      undefined,
      recording,
    );
    try {
      files.write(result, buildx);
      if (hasReport) await writeReport(recording, files, invocation);
      measures?.end(result.seconds);
      if (invocation.options.explain === true && result.steps.every(({ cached }) => cached !== false))
        progress.log.info("every layer is cached: there is nothing to explain");
      // The last event: emitted only after the files are written.
      progress.emit({ type: "finished", result });
    } finally {
      // The image exists, even if the files could not be written.
      progress.close();
      measures?.print();
      const isWanted = invocation.runtime.isPlugin !== true || invocation.globals.quiet;
      if (printsImage && isWanted) printImage(invocation, result);
    }
    return 0;
  } catch (error) {
    measures?.endAfterFailure(progress.log);
    // The build's error is the one to report.
    if (hasReport && files !== undefined)
      await writeReport(recording, files, invocation).catch((cause: unknown) =>
        progress.log.warn(messageOf(cause)),
      );
    progress.close();
    measures?.print();
    const isReported = progress.fail(error);
    if (invocation.options["on-error"] === "shell") {
      const { openShellAfter } = await import("./failed-result.ts");
      const exitCode = await openShellAfter(error, invocation, isReported);
      if (exitCode !== undefined) return exitCode;
    }
    if (isReported) return invocation.runtime.isPlugin ? exitCodeOfDocker(error) : failureOf(error).exitCode;
    throw error;
  }
}

/** Ends a build whose command line has an invalid option: as with docker, no file of `--iidfile` is left. Returns the exit code. */
export async function refuseBuild(
  error: unknown,
  mode: string | undefined,
  given: BuildInvocation,
): Promise<number> {
  prepareResultFiles(given);
  const progress = await createProgress(
    mode === undefined ? undefined : parseProgressMode(mode),
    given,
    given,
  );
  progress.close();
  if (!progress.fail(error)) throw error;
  return given.runtime.isPlugin ? exitCodeOfDocker(error) : failureOf(error).exitCode;
}

/** Finds the content key if it is asked for. Returns the invocation with it; says so if the registry has the image already. */
async function withKey(
  given: BuildInvocation,
  measures: Measures | undefined,
  progress: Progress,
  files: ResultFiles,
): Promise<BuildInvocation | "skipped" | undefined> {
  if (!usesKey(given) && given.options["skip-existing"] !== true) return undefined;
  const { findOwnKey, printExisting } = await import("./keys/own-key.ts");
  const own = await findOwnKey({ ...given, log: progress.log }, measures);
  if (own.existing === undefined) return { ...own.invocation, log: given.log };
  files.writeDigest(own.existing);
  progress.log.info(`already in the registry, as ${own.existing}: it is not built`);
  progress.close();
  printExisting(own);
  return "skipped";
}

function showBuild(invocation: BuildInvocation): Promise<Progress> {
  return createProgress(invocation.options.progress, invocation, invocation);
}

/** Writes `--report`. A build that failed before it began to run has none. */
async function writeReport(
  recording: Recording,
  files: ResultFiles,
  invocation: Surroundings,
): Promise<void> {
  const recorded = recording.read();
  if (recorded === undefined) return;
  const { renderBuildPage: reportOf } = await import("../history/build-page.ts");
  files.writeReport(await reportOf(recorded, invocation));
}

async function checkOnError({ options, runtime }: BuildInvocation): Promise<void> {
  if (options["on-error"] === undefined) return;
  const { requireTerminal } = await import("../run/terminal.ts");
  const hint = "Leave it out: a failed build prints the commands that open the failed step.";
  requireTerminal(runtime, "bough build --on-error shell", hint);
}

/** Prints the result of a build. */
function printImage(invocation: Surroundings, result: BuildResult): void {
  const { image, tags, session, exported, platforms } = result;
  printResult(invocation, {
    id: invocation.runtime.isPlugin ? dockerIdOf(result) : (platforms?.map((each) => each.image) ?? image),
    json: {
      image,
      tag: tags[0] ?? null,
      tags,
      session,
      ...(platforms && { platforms }),
      digest: exported[0]?.descriptor.digest ?? null,
      exported,
    },
    table: () => {
      if (platforms !== undefined) {
        const named = tags.length === 0 ? [null] : tags;
        const rows = named.flatMap((tag) =>
          platforms.map((each) =>
            [each.image, each.platform, tag, session].map((whole) => whole && { whole }),
          ),
        );
        return { header: ["IMAGE", "PLATFORM", "TAG", "SESSION"], rows };
      }
      const rows = (tags.length === 0 ? [null] : tags).map((tag) =>
        [image, tag, session].map((whole) => whole && { whole }),
      );
      return { header: ["IMAGE", "TAG", "SESSION"], rows };
    },
  });
}
