import { wording } from "../../messages/wording.ts";
import type { Service } from "../../service/client.ts";
import { requireEnd } from "../../service/operations/outcome.ts";
import type { EventListener, OperationOutcome, OutputChunk } from "../../service/service.ts";
import type { InstanceRequest } from "../../service/wire/instance.ts";
import { sha256Of } from "../../sha256.ts";
import type { Log } from "../../terminal/log.ts";
import { describeTruncation } from "../../terminal/quantity.ts";
import type { Runtime } from "../process/runtime.ts";

interface RunOptions {
  service: Service;
  signal: AbortSignal;
  log: Log;
  onStart?: (operation: string) => void;
}

/**
 * Runs an instance to its end. `whileRunning` is called when the instance has started. An interruption, or an error of `whileRunning`,
 * cancels the instance on the service before it is rethrown.
 */
export async function runInstance(
  request: InstanceRequest,
  { service, signal, log, onStart }: RunOptions,
  listener?: EventListener,
  whileRunning?: (operation: string, ended: Promise<unknown>) => Promise<void>,
): Promise<OperationOutcome> {
  const operation = await service.spawn(request);
  log.debug(`operation ${operation}`);
  onStart?.(operation);
  const ended = service.follow(operation, undefined, { onProgress: log.info, ...listener });
  const interaction = whileRunning?.(operation, ended);
  try {
    const [outcome] = await Promise.all([ended, interaction]);
    return outcome;
  } catch (error) {
    // The terminal must be restored before anything is logged.
    await interaction?.catch(() => {});
    if (!signal.aborted && whileRunning === undefined) throw error;
    log.warn(`interrupted: cancelling operation ${operation}`);
    if (await service.cancel(operation)) log.warn(`operation ${operation} is cancelled`);
    else log.error(`the end of operation ${operation} is not confirmed: it may still run`);
    throw error;
  }
}

/** Returns the exit code of a command that ran to its end. Throws if something else ended it. */
export function requireExitCode(outcome: OperationOutcome, timeoutSeconds: number): number {
  requireEnd(outcome, timeoutSeconds);
  return processExitCode(outcome.exitCode ?? 0);
}

/** The system keeps only eight bits of an exit code: 256 would become success. */
export function processExitCode(code: number): number {
  return Number.isInteger(code) && code >= 0 && code <= 255 ? code : 1;
}

type StreamName = OutputChunk["stream"];
const streams: readonly StreamName[] = ["stdout", "stderr"];

/** Forwards the output of an operation to the process's own streams, byte for byte. */
interface OutputRelay extends EventListener {
  onBytes(stream: StreamName, bytes: Uint8Array): void;
  /** Forwards output that was missing in the events, and warns of lost output. */
  finish(outcome: Pick<OperationOutcome, "operation" | StreamName>): Promise<void>;
}

export function createOutputRelay(
  runtime: Pick<Runtime, StreamName>,
  service: Pick<Service, "recordedOutput">,
  log: Log,
): OutputRelay {
  const passed = { stdout: createPassedOutput(), stderr: createPassedOutput() };

  return {
    onBytes(stream, bytes) {
      recordPassed(passed[stream], bytes);
      runtime[stream].write(bytes);
    },

    async finish(outcome) {
      const lacking = streams.filter((stream) => outcome[stream].text.length > textLength(passed[stream]));
      // The record is read once, and only if the events did not bring everything.
      const recorded = lacking.length === 0 ? undefined : await service.recordedOutput(outcome.operation);
      for (const stream of lacking) {
        const whole = recorded?.[stream] ?? new Uint8Array();
        const { bytes, hasher } = passed[stream];
        const begun = sha256Of(whole.subarray(0, bytes));
        if (begun === hasher.digest("hex")) {
          runtime[stream].write(whole.subarray(bytes));
          passed[stream].bytes = whole.byteLength;
        } else
          log.warn(
            wording`parts of ${stream} were lost on the way: ${{ command: "logs", words: [outcome.operation] }} has them`,
          );
      }
      for (const stream of streams) {
        // The outcome's text has another length: it has replacement characters for bytes that are not UTF-8.
        if (outcome[stream].truncated) log.warn(describeTruncation(stream, passed[stream].bytes));
      }
      await Promise.all(streams.map((stream) => runtime[stream].flush()));
    },
  };
}

/** The forwarded output of a stream as counts and a hash, to check that a record continues it. */
interface PassedOutput {
  bytes: number;
  characters: number;
  decoder: TextDecoder;
  hasher: Bun.CryptoHasher;
}

function createPassedOutput(): PassedOutput {
  return {
    bytes: 0,
    characters: 0,
    decoder: new TextDecoder("utf-8", { ignoreBOM: true }),
    hasher: new Bun.CryptoHasher("sha256"),
  };
}

function recordPassed(passedOutput: PassedOutput, bytes: Uint8Array): void {
  passedOutput.bytes += bytes.byteLength;
  passedOutput.characters += passedOutput.decoder.decode(bytes, { stream: true }).length;
  passedOutput.hasher.update(bytes);
}

function textLength(passedOutput: PassedOutput): number {
  return passedOutput.characters + passedOutput.decoder.decode().length;
}
