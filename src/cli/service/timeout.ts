import { usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Service } from "../../service/client.ts";
import type { Surroundings } from "../command-line/command.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { isEmbedded } from "./choice.ts";

/** A number of seconds; `undefined` for the default. */
export type Timeout = number | "none" | undefined;

/** The default of the API, and of the specification for a RUN. */
const defaultTimeoutSeconds = 600;

/** The timeout of a command with a terminal on a service that does not report its maximum: one hour. */
const unknownMaximum = 3600;

/** Parses `--timeout SEC`, where 0 means none. */
export function parseTimeout(text: string | undefined, hint: string): Timeout {
  return text === "0" ? "none" : positiveInteger(text, "--timeout", hint);
}

/** Returns the timeout of a command. On the engine, a command without `--timeout` runs until it ends, as in docker. */
export async function findTimeout(
  { timeout, hasTerminal }: { timeout: Timeout; hasTerminal: boolean },
  { runtime, globals }: Pick<Surroundings, "runtime" | "globals">,
  service: Pick<Service, "address" | "capabilities">,
): Promise<number> {
  if (timeout === "none") return noTimeout(service);
  if (timeout !== undefined) return timeout;
  if (!hasTerminal && !isEmbedded(runtime, globals)) return defaultTimeoutSeconds;
  return (await service.capabilities.maxTimeoutSeconds()) ?? unknownMaximum;
}

/** Returns the timeout of each RUN of a build. The default is the specification's 600 seconds on every service. */
export async function buildTimeout(
  timeout: Timeout,
  service: Pick<Service, "address" | "capabilities">,
): Promise<number> {
  return timeout === "none" ? noTimeout(service) : (timeout ?? defaultTimeoutSeconds);
}

/** Returns the maximum of the service, which for bough's own engine means none. */
async function noTimeout(service: Pick<Service, "address" | "capabilities">): Promise<number> {
  const seconds = await service.capabilities.maxTimeoutSeconds();
  if (seconds !== undefined) return seconds;
  throw usageError(
    wording`${{ option: "timeout" }} 0: ${service.address} does not say how long a command may take`,
    wording`Give a number of seconds, such as ${{ option: "timeout" }} 3600.`,
  );
}
