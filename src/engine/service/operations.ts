import type { Clock } from "../../clock.ts";
import type { Service } from "../../service/client.ts";
import type { ServiceNotice } from "../../service/http/attempt.ts";
import { withDeadline } from "../../service/http/deadline.ts";
import { importError } from "../../service/images/import-error.ts";
import { withRequestId } from "../../service/operations/request-id.ts";
import { reportSilence } from "../../service/operations/silence.ts";
import type { EventListener, OperationOutcome, OutputChunk, ServedTime } from "../../service/service.ts";
import { cancelMilliseconds, operationName } from "../../service/wire/operation.ts";
import type { EngineCore } from "../core.ts";
import { listOperations } from "../records/operation-list.ts";
import { requireOperation } from "../recovery.ts";
import { cancelOperation } from "../run-operation.ts";
import { startImport } from "../unpack/start-import.ts";
import type { Calls } from "./calls.ts";
import { followOperation, takeEvent, untilEnded } from "./outcome.ts";

type Operations = Pick<
  Service,
  "spawn" | "findSpawned" | "follow" | "hasEnded" | "cancel" | "importImage" | "readEventsSoFar"
>;

interface OperationsOptions {
  clock: Clock;
  signal: AbortSignal;
  onNotice: (notice: ServiceNotice) => void;
  onServed: ((time: ServedTime) => void) | undefined;
  /** Descriptions of the operations that are awaited, kept up to date. */
  running: Set<string>;
}

/** Starts operations, follows them to their end, and cancels them. */
export function createOperations(core: EngineCore, calls: Calls, options: OperationsOptions): Operations {
  const { state } = core;
  const { clock, signal, onNotice, running } = options;
  const { read, change } = calls;

  async function follow(
    uuid: string,
    onOutput: ((chunk: OutputChunk) => void) | undefined,
    listener: EventListener,
  ): Promise<OperationOutcome> {
    running.add(operationName(uuid));
    const silence = reportSilence(options, uuid);
    try {
      const { operation, outcome } = await read(() =>
        followOperation(state, uuid, {
          signal,
          listener,
          onOutput(chunk) {
            silence.touch();
            onOutput?.(chunk);
          },
          onFault: (text) => onNotice({ level: "debug", text }),
        }),
      );
      if (outcome.served !== undefined)
        options.onServed?.({ operation: uuid, kind: operation.kind, ...outcome.served });
      running.delete(operationName(uuid));
      return outcome;
    } finally {
      silence.stop();
    }
  }

  /** Cancels an operation. Also works after an interruption, when the signal of the other calls is aborted. */
  async function cancel(uuid: string): Promise<boolean> {
    const never = new AbortController().signal;
    try {
      await core.prepare();
      const operation = await requireOperation(state, uuid);
      if (operation.finishedAt === null) {
        cancelOperation(state, operation);
        const limit = { clock, milliseconds: cancelMilliseconds, parent: never };
        await withDeadline(limit, (signal) => untilEnded(state, uuid, signal));
      }
      running.delete(operationName(uuid));
      return true;
    } catch {
      // The caller learns that the operation may still run. The reason would not help it.
      return false;
    }
  }

  return {
    cancel,

    spawn: (request, { requestId = 0 } = {}) =>
      change(async () => {
        // Loaded with the first command: a build that finds all of its layers cached runs none.
        const { startRequested } = await import("../instances/start-instance.ts");
        const { uuid } = await startRequested(state, { ...withRequestId(request, requestId) }, signal);
        running.add(operationName(uuid));
        return uuid;
      }),

    findSpawned: ({ requestId, repeats, truncateAt, since }) =>
      read(() => {
        const started = listOperations(state, { ...all, kind: "instance", since });
        const found = started.find(
          ({ uuid, metadata }) =>
            metadata.truncate_output_at === truncateAt + requestId && repeats?.isOfAnother(uuid) !== true,
        );
        return found?.uuid;
      }),

    follow: (uuid, onOutput, listener = {}) => follow(uuid, onOutput, listener),

    hasEnded: (uuid) => read(async () => (await requireOperation(state, uuid)).finishedAt !== null),

    async importImage({ url, tag, platform, timeoutSeconds, credentials, onProgress }) {
      const uuid = await change(() =>
        startImport(state, { url, tag, platform, timeoutSeconds, credentials }),
      );
      try {
        const outcome = await follow(uuid, undefined, onProgress === undefined ? {} : { onProgress });
        if (outcome.status === "SUCCESS" && outcome.image !== undefined) return outcome.image;
        throw importError(url, outcome, true);
      } catch (error) {
        if (signal.aborted) await cancel(uuid);
        throw error;
      }
    },

    readEventsSoFar: (uuid, listener) =>
      read(async () => {
        await requireOperation(state, uuid);
        if (!state.events.exists(uuid)) return false;
        for await (const event of state.events.readAll(uuid, state.closing))
          if (event !== undefined) takeEvent(event, undefined, listener);
        return true;
      }),
  };
}

const all = {
  status: undefined,
  until: undefined,
  limit: 1000,
  offset: 0,
};
