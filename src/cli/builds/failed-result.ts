import { layerBranch } from "../../builder/cache/layer-cache.ts";
import { FailedStepError } from "../../builder/operations/failed-step.ts";
import { BoughError, causeOf, messageOf } from "../../errors.ts";
import { type CommandTerm, lines, type Message, type OptionTerm, wording } from "../../messages/wording.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import { isStateDiskFull, unlessStateDiskFull } from "../../state-failure.ts";
import type { Store } from "../../store/store.ts";
import { describeFailure, failureOf } from "../../terminal/failure.ts";
import { formatLogLines } from "../../terminal/terminal-text.ts";
import type { Surroundings } from "../command-line/command.ts";
import { type GlobalOptions, serviceOptions } from "../command-line/globals.ts";
import { DaemonError } from "../export/daemon.ts";
import { sessionKey } from "../references/session-argument.ts";
import { failedStepOf, saveFailedStep } from "../run/failed-step.ts";
import { runDefaults } from "../run/image-command.ts";
import { runToEnd } from "../run/run-to-end.ts";
import { isEmbedded } from "../service/choice.ts";
import { type Connection, connectQuietly } from "../service/connection.ts";
import { withRoomHint, withStateRoomHint } from "../service/make-room.ts";

/** A failure on a service that `--platform-service` names. */
export class ServiceFailure extends BoughError {
  override readonly name = "ServiceFailure";
  /** They choose the service. */
  readonly globals: GlobalOptions;

  constructor(cause: BoughError, globals: GlobalOptions) {
    super(cause.wording, { kind: cause.kind, hint: cause.hint, cause });
    this.globals = globals;
  }
}

/** Keeps or removes the image of the failed step. Returns the build's error, with a hint if the disk is full. */
export async function concludeFailure(
  error: unknown,
  session: string,
  connection: Connection,
  { runtime, globals, log }: Surroundings,
): Promise<unknown> {
  if (runtime.signal.aborted || error instanceof DaemonError) return error;
  if (isStateDiskFull(error)) return withStateRoomHint(error, runtime, isEmbedded(runtime, globals));
  // Only the embedded engine uses this machine's disk.
  if (!isEmbedded(runtime, globals)) return error;
  await keepNewestFailure(error, connection, session).catch((cause: unknown) => log.debug(messageOf(cause)));
  const isFull = causeOf(error, FailedStepError)?.reportsDiskFull === true;
  return withRoomHint(error, runtime, "What the step wrote was removed", isFull);
}

/**
 * Keeps the image of a failed RUN for inspection (`bough show OP` names it) until the next RUN of the session fails. Removes it
 * if the disk is full, since the disk would stay full.
 */
async function keepNewestFailure(
  error: unknown,
  { service, store }: Pick<Connection, "service" | "store">,
  session: string,
): Promise<void> {
  const step = causeOf(error, FailedStepError);
  if (step === undefined) return;
  const result = await findResult(step, service);
  if (result !== undefined && step.reportsDiskFull) await remove(result);
  const earlier = store.sessions.setFailedImage(session, step.reportsDiskFull ? null : (result ?? null));
  if (earlier !== null && earlier !== result) await remove(earlier);

  /** Removes the image, unless a session uses it or it has a tag. */
  async function remove(image: string): Promise<void> {
    if (store.sessions.images().includes(image)) return;
    const records = await service.listImages({ uuid: image });
    if (records.every(({ tag }) => tag === null))
      await service.removeImage(image).catch((cause: unknown) => {
        if (!(cause instanceof NotFoundError)) throw cause;
      });
  }
}

/** Finds the image that the command made. A command that changes nothing has the image it started from as its result. */
async function findResult(
  { result, operation }: FailedStepError,
  service: Connection["service"],
): Promise<string | undefined> {
  if (result === undefined) return undefined;
  const [record] = await service.listImages({ uuid: result });
  return record?.operation_uuid === operation ? result : undefined;
}

const shownDigits = 12;

interface Place {
  session: string;
  globals: GlobalOptions;
  store: Store;
  /** True if a shell is opened in the failed step now, without a further command line. */
  opensShell: boolean;
}

/** Adds to the error of a failed RUN the command lines that open a shell in its place. */
export function withDebugHint(error: unknown, place: Place): unknown {
  const step = causeOf(error, FailedStepError);
  if (step === undefined || !(error instanceof BoughError)) return error;
  const hint = lines([error.hint, waysInto(step, place)]);
  return new BoughError(error.wording, { kind: error.kind, hint, cause: error });
}

const failedStep: OptionTerm = { option: "failed-step" };

function waysInto(
  step: FailedStepError,
  { session, globals, store, opensShell }: Place,
): Message | undefined {
  const service = serviceOptions(globals);
  const line = (term: Pick<CommandTerm, "command" | "options" | "words">) =>
    wording`  ${{ ...term, session, service, isLine: true }}`;
  const run = (...options: OptionTerm[]) =>
    line({
      command: "run",
      options: [{ option: "disposable", letter: "D" }, ...options],
      words: ["--", "COMMAND"],
    });
  if (step.place === undefined) {
    const layer = step.branch.slice(0, layerBranch("").length + shownDigits);
    return lines(
      [line({ command: "session checkout", words: [layer] }), run()],
      "To open the image before the failed step:",
    );
  }
  const { place } = step;
  // The step's own error is the one to report.
  const missing = unlessStateDiskFull(() => saveFailedStep(session, step, place, store));
  if (missing === undefined || opensShell) return undefined;
  const without = missing.length === 0 ? "" : ` (without ${missing.join(", ")})`;
  return lines(
    [line({ command: "shell", options: [failedStep] }), run(failedStep)],
    `To open the failed step, as its command found it${without}:`,
  );
}

/**
 * `--on-error shell`: prints the failure, unless `isReported`, and opens a shell in the place of the failed step, with all that its
 * command had. Returns the build's exit code after the shell exits; `undefined` if the build did not fail in a step that was run.
 */
export async function openShellAfter(
  error: unknown,
  given: Surroundings,
  isReported: boolean,
): Promise<number | undefined> {
  const invocation = error instanceof ServiceFailure ? { ...given, globals: error.globals } : given;
  const { runtime, globals, log } = invocation;
  const step = causeOf(error, FailedStepError);
  if (step?.place === undefined || runtime.signal.aborted) return undefined;
  const { text } = describeFailure(error, globals.format);
  if (!isReported) runtime.stderr.write(formatLogLines(text, runtime.stderr));
  log.info("opening a shell in place of the failed step; its changes are thrown away when you leave");
  await using connection = await connectQuietly(invocation);
  await runToEnd(
    {
      ...runDefaults,
      key: sessionKey(invocation),
      source: { kind: "step", step: failedStepOf(step, step.place) },
      command: "shell",
      isDisposable: true,
      hasTerminal: true,
    },
    invocation,
    connection,
  );
  return failureOf(error).exitCode;
}
