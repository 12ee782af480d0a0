import { existsSync, statfsSync } from "node:fs";
import { dirname } from "node:path";
import type { Engine, EngineOptions } from "../../engine/engine.ts";
import { releaseReserve } from "../../engine/prune/room.ts";
import { BoughError, usageError } from "../../errors.ts";
import { homeDirectory } from "../../home-directory.ts";
import { wording } from "../../messages/wording.ts";
import { findContainer } from "../process/container.ts";
import type { Runtime } from "../process/runtime.ts";
import { needsUserNamespace } from "../process/user-namespace.ts";
import { engineDirectory } from "./choice.ts";

/** Returns the directory of the embedded engine. Throws if this process can't work on it. */
async function requireEngine(runtime: Runtime): Promise<string> {
  if (runtime.platform !== "linux") {
    throw new BoughError("the embedded engine needs Linux", {
      hint: wording`On other systems bough needs a service: see ${{ option: "url" }}, or ${{ command: "auth", options: [{ option: "help", letter: "h" }] }}.`,
    });
  }
  if (runtime.engineProblem !== undefined) throw runtime.engineProblem;
  if (await needsUserNamespace(runtime)) throw new Error("the command's `needs` does not name the engine");
  return engineDirectory(runtime);
}

/**
 * Opens the embedded engine in this process. Its code is loaded only here, so that a build on a remote service starts without it.
 */
export async function startEngine(
  runtime: Runtime,
  options: Pick<EngineOptions, "isServer" | "allowsLocalFetch" | "warn">,
): Promise<Engine> {
  const directory = await requireEngine(runtime);
  requireNoOverlay(directory, runtime);
  if (options.isServer) await requireOwnProcessView();
  const { openEngine } = await import("../../engine/engine.ts");
  return openEngine({
    // Layers may be in caches that options of this command open.
    openBlobSource: async (address, dependencies) => {
      const { openBlobSource } = await import("../../registry/open-blob-store.ts");
      return openBlobSource(address, { ...dependencies, github: runtime.github });
    },
    directory,
    clock: runtime.clock,
    environment: runtime.environment,
    ...options,
  });
}

/** Throws if commands could see each other's processes. The engine would run them one at a time, so that a client could block others. */
async function requireOwnProcessView(): Promise<void> {
  const { mountableViews } = await import("../../engine/system/user-namespace.ts");
  if (mountableViews().proc) return;
  throw usageError(
    "the engine can't be served where parts of /proc are hidden, since commands of its clients could see each other's processes",
    "In a container: start it with --security-opt systempaths=unconfined (Podman: unmask=ALL; Kubernetes: procMount: Unmasked).",
  );
}

/** The type of overlayfs, from linux/magic.h. */
const overlayType = 0x794c7630;

/** Throws if the directory is on an overlay, such as a container's root: the kernel can't mount the overlays of layers there. */
function requireNoOverlay(directory: string, { environment }: Runtime): void {
  let existing = directory;
  while (!existsSync(existing)) existing = dirname(existing);
  if (statfsSync(existing).type !== overlayType) return;
  const kind = findContainer(environment);
  const place = environment.BOUGH_HOME || homeDirectory(environment);
  const setting =
    kind === undefined
      ? "set BOUGH_HOME to a directory on ext4, xfs, btrfs or tmpfs"
      : kind === "Kubernetes"
        ? `mount a volume at ${place}, such as an emptyDir`
        : `start the container with a volume there: -v bough:${place} (or --tmpfs ${place}, in memory)`;
  throw usageError(
    `the engine's directory ${directory} is on an overlay, which cannot carry the overlays of layers: ${setting}`,
  );
}

/** Returns the embedded engine's directory. Rejects if it does not exist. */
export async function requireEngineDirectory(runtime: Runtime): Promise<string> {
  const directory = await requireEngine(runtime);
  if (existsSync(directory)) {
    releaseReserve(directory);
    return directory;
  }
  throw new BoughError(`there is no engine in ${directory} yet`, {
    hint: wording`The first ${{ command: "build" }} without a service creates it.`,
  });
}
