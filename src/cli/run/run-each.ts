/** `bough run --each LIST`: runs a command in each image of a list, several at a time. */
import { steadyTime } from "../../clock.ts";
import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { forEachConcurrently } from "../../service/http/concurrency.ts";
import { StoppedCommandError } from "../../service/operations/outcome.ts";
import type { OperationOutcome } from "../../service/service.ts";
import { failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { prefixLog } from "../../terminal/log.ts";
import { formatCount } from "../../terminal/quantity.ts";
import type { Invocation, Surroundings } from "../command-line/command.ts";
import { defaultJobs } from "../service/choice.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import type { UnresolvedRun } from "./image-command.ts";
import { type ListedImage, readImageList } from "./image-list.ts";
import type { RunSource } from "./request.ts";
import { performRun } from "./run-to-end.ts";

/** A run whose image is replaced by each image of the list. */
type RunForEach = UnresolvedRun & { source: Extract<RunSource, { kind: "image" }> };

/** How the command ended in one image. */
type EachOutcome =
  | { status: "exited"; exitCode: number; outcome: OperationOutcome }
  | { status: "failed" | "cancelled"; error: unknown; outcome: OperationOutcome | undefined };

/**
 * Runs the command in each image, and prints a line of JSON when a command has ended. Returns the exit code: 0 if all commands have ended
 * with 0, else 1.
 *
 * @param given the number of commands that run at the same time
 */
export async function runEach(
  list: string,
  asked: RunForEach,
  given: number | undefined,
  surroundings: Surroundings,
): Promise<number> {
  const { runtime, globals, log } = surroundings;
  const { clock, stdout } = runtime;
  const images = await readImageList(list, runtime);
  if (images.length === 0) log.warn("there is nothing to run: the list has no image");
  const jobs = given ?? defaultJobs(runtime, globals);
  await using connection = await connectQuietly(surroundings);
  const counts = { exited: 0, succeeded: 0 };
  await forEachConcurrently(images, jobs, runtime.signal, async (image) => {
    const since = steadyTime(clock);
    const end = await runIn(image, asked, surroundings, connection);
    if (end.status === "exited") counts.exited += 1;
    if (end.status === "exited" && end.exitCode === 0) counts.succeeded += 1;
    const seconds = Math.round(steadyTime(clock) - since) / 1000;
    stdout.write(`${jsonText(describe(image, end, seconds, clock.now()))}\n`);
    // A slow reader must not let results fill the memory.
    await stdout.flush();
    if (end.status === "cancelled") throw end.error;
  });
  const failed = images.length - counts.succeeded;
  log.info(
    `${formatCount(images.length, "image")}: ${counts.succeeded} with exit code 0, ${counts.exited - counts.succeeded} with others, ${images.length - counts.exited} failed`,
  );
  return failed === 0 ? 0 : 1;
}

async function runIn(
  { image, target }: ListedImage,
  asked: RunForEach,
  surroundings: Surroundings,
  connection: Connection,
): Promise<EachOutcome> {
  const { globals, log, runtime } = surroundings;
  try {
    if (image === undefined)
      throw usageError(`the target ${target} has no image: it was not built, or has no tag`);
    // With the format json, output is not forwarded while it arrives.
    const own = {
      ...surroundings,
      globals: { ...globals, format: "json" as const },
      log: prefixLog(log, target ?? image),
    };
    const run = { ...asked, source: { ...asked.source, image } };
    const { exitCode, outcome } = await performRun(run, own, connection);
    return { status: "exited", exitCode, outcome };
  } catch (error) {
    const isCancelled = runtime.signal.aborted || failureOf(error).kind === "interrupted";
    const outcome = error instanceof StoppedCommandError ? error.outcome : undefined;
    return { status: isCancelled ? "cancelled" : "failed", error, outcome };
  }
}

/** Returns a line of the results. The keys are always the same. */
function describe(
  { image, target }: ListedImage,
  end: EachOutcome,
  seconds: number,
  endedAt: number,
): Record<string, unknown> {
  const { outcome } = end;
  const failure = "error" in end ? failureOf(end.error) : undefined;
  return {
    ...{ image: image ?? null, target: target ?? null, status: end.status },
    exitCode: end.status === "exited" ? end.exitCode : null,
    stdout: outcome?.stdout.text ?? "",
    stderr: outcome?.stderr.text ?? "",
    truncated: outcome !== undefined && (outcome.stdout.truncated || outcome.stderr.truncated),
    seconds,
    error:
      failure === undefined
        ? null
        : { code: failure.kind, message: failure.message, hint: failure.hint ?? null },
    operation: outcome?.operation ?? null,
    endedAt: new Date(endedAt).toISOString(),
  };
}

/** Options for a single image, or for the state of a session. */
const incompatibleOptions = ["tty", "keep", "use", "failed-step", "detach"];

/** Throws for an option that can't be used with `--each`. */
export function requireEachOptions({ values, globals }: Pick<Invocation, "values" | "globals">): void {
  const other = incompatibleOptions.find((name) => values.flag(name) || values.text(name) !== undefined);
  const each = { option: "each" };
  if (other !== undefined)
    throw usageError(wording`${each} and ${{ option: other }} cannot be used together`);
  if (globals.session !== undefined)
    throw usageError(wording`${each} changes no session`, "Leave out what names one.");
  const [image] = values.positionals;
  if (image === undefined) return;
  throw usageError(
    wording`${each} has the images, and ${image} is one more`,
    wording`The command goes after --, as in: ${{ command: "run", options: [{ option: "each", value: "images.txt" }], words: ["--", "ls", "/"], isLine: true }}`,
  );
}
