import type { Clock } from "../../clock.ts";
import type { Service } from "../../service/client.ts";
import { mainProcessSpid } from "../../service/wire/operation.ts";
import { RequestError } from "../http/answers.ts";
import { readExecSpec } from "../processes/exec-spec.ts";
import type { InstanceProcesses } from "../processes/instance-processes.ts";
import { requireProcesses } from "../processes/require-processes.ts";
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
  const processesOf = async (uuid: string) => requireProcesses(state, await requireOperation(state, uuid));

  /** Returns `undefined` if the command has ended. Waits for one that is not ready: it starts, or reads its earlier input. */
  async function act<Result>(
    uuid: string,
    action: (processes: InstanceProcesses) => Promise<Result>,
  ): Promise<{ result: Result } | undefined> {
    for (;;) {
      try {
        return { result: await action(await processesOf(uuid)) };
      } catch (error) {
        if (!(error instanceof RequestError)) throw error;
        // 501: none can be started beside it.
        if (error.status === 409 || error.status === 501) return undefined;
        if (error.status !== 425 && error.status !== 429) throw error;
      }
      await clock.sleep(pauseMilliseconds, signal);
    }
  }

  return {
    openTerminal: (uuid) =>
      read(async () => {
        const opened = await act(uuid, async (processes) => {
          if (processes.terminal === undefined)
            throw new RequestError(409, `operation ${uuid} has no terminal`);
          await processes.requireStarted();
          return processes.terminal.output.attach(() => state.running.get(uuid)?.cancel());
        });
        return opened && interruptible(opened.result, signal);
      }),

    resizeTerminal: (uuid, size) =>
      read(async () => (await act(uuid, (processes) => processes.resize(size))) !== undefined),

    writeInput: (uuid, bytes, close = false) =>
      read(async () => {
        const written = await act(uuid, (processes) => processes.write(mainProcessSpid, { bytes, close }));
        return written === undefined ? "ended" : "taken";
      }),

    startProcess: (uuid, process) =>
      read(async () => {
        const spec = readExecSpec({ ...process });
        return (await act(uuid, (processes) => processes.create(spec))) !== undefined;
      }),
  };
}

const pauseMilliseconds = 200;
