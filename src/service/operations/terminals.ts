/** A command's terminal and its standard input, while it runs. */

import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { unsupportedStatuses } from "../capabilities.ts";
import { parseRetryAfter } from "../http/retry.ts";
import type { Transport } from "../http/transport.ts";
import type { InstanceRequest, TerminalSize } from "../wire/instance.ts";

export interface Terminals {
  /**
   * What the command writes to its terminal, once it has started; `undefined` where it has ended already. Only with the extension
   * `terminals`, and for one reader: the command is ended where that one leaves.
   */
  openTerminal(operation: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** False where the command has ended. */
  resizeTerminal(operation: string, size: TerminalSize): Promise<boolean>;
  /**
   * Adds to the standard input of an instance's command, which was left open. `ended`: nobody reads it any more. `unsupported`: this
   * service takes no more input than a request brings.
   */
  writeInput(
    operation: string,
    bytes: Uint8Array,
    close?: boolean,
  ): Promise<"taken" | "ended" | "unsupported">;
  /** Starts another process beside an instance's command. False where that has ended, or the service has no such call. */
  startProcess(operation: string, process: BesideProcess): Promise<boolean>;
}

type BesideProcess = Pick<InstanceRequest, "command" | "args" | "shell" | "uid" | "gid">;

const mainProcess = 1;
/** A command that has not started yet is asked again. */
const pauseMilliseconds = 200;

export function createTerminals(
  transport: Transport,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Terminals {
  const pathOf = (operation: string, rest: string) => {
    const { path, query } = transport.operations.addressOf(operation);
    return { path: `${path}/${rest}`, ...(query === undefined ? {} : { query }) };
  };
  return {
    async openTerminal(operation) {
      const parts = {
        method: "GET" as const,
        ...pathOf(operation, "terminal"),
        // Packed, a key that is pressed would be seen when many more have been.
        headers: { accept: "application/octet-stream", "accept-encoding": "identity" },
      };
      for (;;) {
        const { status, headers, body } = await transport.open(parts, signal);
        if (status === 200 && body !== null) return body;
        await body?.cancel();
        if (status === 409) return undefined;
        if (status !== 425) throw new BoughError(`${transport.nameOf(parts)} answered ${status}`);
        await clock.sleep(
          parseRetryAfter(headers.get("retry-after"), clock.now()) ?? pauseMilliseconds,
          signal,
        );
      }
    },

    async resizeTerminal(operation, size) {
      const { status } = await transport.call({
        method: "POST",
        ...pathOf(operation, "terminal"),
        json: size,
        repeatable: true,
        handles: [409],
        signal,
      });
      return status !== 409;
    },

    async writeInput(operation, bytes, close = false) {
      const { status } = await transport.call({
        method: "POST",
        ...pathOf(operation, `subprocesses/${mainProcess}/stdin`),
        json: { value: Buffer.from(bytes).toString("base64"), encoding: "base64", close },
        // What is typed twice is something else.
        repeatable: false,
        handles: [409, ...unsupportedStatuses],
        signal,
      });
      if (status === 409) return "ended";
      return unsupportedStatuses.includes(status) ? "unsupported" : "taken";
    },

    async startProcess(operation, process) {
      const { status } = await transport.call({
        method: "POST",
        ...pathOf(operation, "subprocesses"),
        json: process,
        repeatable: false,
        handles: [409, ...unsupportedStatuses],
        signal,
      });
      return status < 400;
    },
  };
}
