import { type Clock, systemClock } from "../../src/clock.ts";
import type { EngineOptions } from "../../src/engine/engine.ts";
import type { InstanceResult, OperationRecord } from "../../src/service/wire/operation.ts";
import { TestEngine } from "./engine.ts";

const timeout = 71;

/**
 * Runs a command whose timeout expires once it has written something, regardless of the time. A real timeout of a second may
 * expire before a busy machine has started the command.
 */
export async function runUntilExpired(
  { directory }: TestEngine,
  image: string,
  command: string,
  environment: EngineOptions["environment"] = { PATH: process.env.PATH },
): Promise<OperationRecord> {
  const { promise: isOver, resolve: passTime } = Promise.withResolvers<void>();
  const clock: Clock = {
    now: systemClock.now,
    sleep: (milliseconds, signal) =>
      milliseconds === timeout * 1000 ? isOver : systemClock.sleep(milliseconds, signal),
  };
  const engine = await TestEngine.open({ directory, clock, environment });
  const { uuid } = await engine.start({ image, command, timeout });
  const hasWritten = async () => {
    const path = `/v1/operations/${uuid}/subprocesses/1`;
    const { state, stdout, stderr } = await engine.json<InstanceResult>("GET", path);
    return state?.exit_code !== -1 || `${stdout?.value ?? ""}${stderr?.value ?? ""}` !== "";
  };
  while (!(await hasWritten())) await Bun.sleep(5);
  passTime();
  const operation = await engine.finish({ uuid });
  await engine.engine.close();
  return operation;
}
