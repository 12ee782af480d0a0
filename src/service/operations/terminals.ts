/** A command's terminal and its standard input, while it runs. */

import type { Clock } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { unsupportedStatuses } from "../capabilities.ts";
import { isRefusal, parseRetryAfter, retryAfterIn } from "../http/retry.ts";
import type { Transport } from "../http/transport.ts";
import type { InstanceRequest, TerminalSize } from "../wire/instance.ts";
import { mainProcessSpid } from "../wire/operation.ts";
import { maxRetryAfterMilliseconds } from "./polling.ts";

export interface Terminals {
  /**
   * Opens the output of the command's terminal, once the command has started; `undefined` if it has ended already. Only with the
   * extension `terminals`, and for one reader: the command is ended when the reader leaves.
   */
  openTerminal(operation: string): Promise<ReadableStream<Uint8Array> | undefined>;
  /** False if the command has ended. */
  resizeTerminal(operation: string, size: TerminalSize): Promise<boolean>;
  /**
   * Adds to the standard input of an instance's command, which was left open. `ended`: the command no longer reads it.
   * `unsupported`: this service takes no more input than a request brings.
   */
  writeInput(
    operation: string,
    bytes: Uint8Array,
    close?: boolean,
  ): Promise<"taken" | "ended" | "unsupported">;
  /** Starts another process beside an instance's command. False if the command has ended, or the service has no such call. */
  startProcess(operation: string, process: BesideProcess): Promise<boolean>;
}

type BesideProcess = Pick<InstanceRequest, "command" | "args" | "shell" | "uid" | "gid">;

/** Wait before a command that has not started yet is asked for again. */
const pauseMilliseconds = 200;
/** Time for which a service may refuse to show a terminal because it is busy. */
const refusalMilliseconds = 60_000;

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
        // Compression would delay the display of a typed character.
        headers: { accept: "application/octet-stream", "accept-encoding": "identity" },
      };
      const started = clock.now();
      for (;;) {
        const { status, headers, body } = await transport.open(parts, signal);
        if (status === 200 && body !== null) return body;
        await body?.cancel();
        if (status === 409) return undefined;
        const wait = parseRetryAfter(retryAfterIn(headers), clock.now()) ?? pauseMilliseconds;
        const isTemporary = isRefusal(status) && clock.now() - started + wait <= refusalMilliseconds;
        if (status !== 425 && !isTemporary)
          throw new BoughError(`${transport.nameOf(parts)} responded with ${status}`);
        await clock.sleep(Math.min(wait, maxRetryAfterMilliseconds), signal);
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
        ...pathOf(operation, `subprocesses/${mainProcessSpid}/stdin`),
        json: { value: Buffer.from(bytes).toString("base64"), encoding: "base64", close },
        // A repeat could type the same bytes twice.
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
