import type { Clock } from "../../clock.ts";
import type { Service } from "../../service/client.ts";
import { mainProcessSpid } from "../../service/wire/operation.ts";
import { RequestError } from "../http/responses.ts";
import { readExecSpec } from "../processes/exec-spec.ts";
import type { InstanceProcesses } from "../processes/instance-processes.ts";
import { attachTerminal, requireProcesses } from "../processes/require-processes.ts";
import type { Operation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { EngineState } from "../state.ts";
import { type Calls, interruptible } from "./calls.ts";

type Terminals = Pick<Service, "openTerminal" | "resizeTerminal" | "writeInput" | "startProcess">;

/** A running command's terminal, its standard input, and processes beside it. */
export function createTerminals(
  state: EngineState,
  { read }: Calls,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Terminals {
  /** Returns `undefined` if the command has ended. Tries again while the command is starting, or has not read its earlier input. */
  async function act<Result>(
    uuid: string,
    action: (operation: Operation) => Promise<Result>,
  ): Promise<{ result: Result } | undefined> {
    for (;;) {
      try {
        return { result: await action(await requireOperation(state, uuid)) };
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        // The status is 501 if no process can be started beside the command.
        if (error.status === 409 || error.status === 501) return undefined;
        if (error.status !== 425 && error.status !== 429) throw error;
      }
      await clock.sleep(pauseMilliseconds, signal);
    }
  }

  const actIn = <Result>(uuid: string, action: (processes: InstanceProcesses) => Promise<Result>) =>
    act(uuid, async (operation) => action(requireProcesses(state, operation)));

  return {
    openTerminal: (uuid) =>
      read(async () => {
        const opened = await act(uuid, (operation) => attachTerminal(state, operation));
        return opened && interruptible(opened.result, signal);
      }),

    resizeTerminal: (uuid, size) =>
      read(async () => (await actIn(uuid, (processes) => processes.resize(size))) !== undefined),

    writeInput: (uuid, bytes, close = false) =>
      read(async () => {
        const written = await actIn(uuid, (processes) => processes.write(mainProcessSpid, { bytes, close }));
        return written === undefined ? "ended" : "taken";
      }),

    startProcess: (uuid, process) =>
      read(async () => {
        const spec = readExecSpec({ ...process });
        return (await actIn(uuid, (processes) => processes.create(spec))) !== undefined;
      }),
  };
}

const pauseMilliseconds = 200;
