import { existsSync } from "node:fs";
import { releaseReserve } from "../../engine/reserve.ts";
import { BoughError } from "../../errors.ts";
import type { Runtime } from "../process/runtime.ts";
import { enterEngine } from "./engine-host.ts";

/** Returns the embedded engine's directory. Rejects if it does not exist. */
export async function engineDirectory(runtime: Runtime): Promise<string> {
  const directory = await enterEngine(runtime);
  if (existsSync(directory)) {
    releaseReserve(directory);
    return directory;
  }
  throw new BoughError(`there is no engine in ${directory} yet`, {
    hint: "The first `bough build` without a service creates it.",
  });
}
