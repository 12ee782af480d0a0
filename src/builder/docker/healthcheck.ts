import { nanosecondsOf } from "../../dockerfile/duration.ts";
import type { HealthcheckInstruction } from "../../dockerfile/instruction.ts";

/** Returns the healthcheck as Docker writes it in an image's configuration: times in nanoseconds, zeros left out. */
export function healthcheckOf(
  instruction: HealthcheckInstruction,
): { Test: string[] } & Record<string, unknown> {
  const { command, interval, timeout, startPeriod, startInterval, retries = "0" } = instruction;
  if (command === undefined) return { Test: ["NONE"] };
  const Test = command.form === "exec" ? ["CMD", ...command.words] : ["CMD-SHELL", command.line];
  const numbers = {
    Interval: nanosecondsOf(interval ?? "0"),
    Timeout: nanosecondsOf(timeout ?? "0"),
    StartPeriod: nanosecondsOf(startPeriod ?? "0"),
    StartInterval: nanosecondsOf(startInterval ?? "0"),
    Retries: Number(retries),
  };
  return { Test, ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== 0)) };
}
