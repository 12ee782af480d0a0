import { join } from "node:path";
import type { Engine } from "../engine/engine.ts";
import type { Runtime } from "./runtime.ts";
import { stateDirectory } from "./state-directory.ts";
import { enterUserNamespace } from "./user-namespace.ts";

/**
 * Opens the embedded engine in this process. Loaded only where it is needed: a build on a remote service starts
 * without it. An ordinary user's command is run again in a user namespace first: this never returns then.
 */
export async function startEngine(runtime: Runtime, importTransports: "all" | "registry"): Promise<Engine> {
  enterUserNamespace(runtime);
  const { openEngine } = await import("../engine/engine.ts");
  return openEngine({
    directory: join(stateDirectory(runtime.environment), "engine"),
    clock: runtime.clock,
    environment: runtime.environment,
    importTransports,
  });
}
