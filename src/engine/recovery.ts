import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { basename, join } from "node:path";
import { isAlive } from "../process-identity.ts";
import { RequestError } from "./http/answers.ts";
import {
  dropLostCaches,
  loseInterruptedCaches,
  loseUnsyncedCaches,
  removeOrphanedCaches,
} from "./records/lost-caches.ts";
import {
  describeCompletion,
  type Failure,
  findOperation,
  finishOperation,
  type Operation,
  unfinishedOperations,
} from "./records/operations.ts";
import { removeOrphanedLayers } from "./records/orphaned-layers.ts";
import { layersOfFailedSyncs, lostLayers } from "./records/unsynced-layers.ts";
import { removeContainer } from "./sandbox/containers.ts";
import type { EngineState } from "./state.ts";
import { killHelper } from "./system/helper-process.ts";

/** Cleans up after killed processes: operations, containers, unfinished layers and temporary files. */
export async function recover(state: EngineState, warn: (message: string) => void): Promise<void> {
  for (const operation of unfinishedOperations(state.database)) await endIfAbandoned(state, operation);
  loseInterruptedCaches(state.database, state.boot);
  await dropLost(state, warn);
  dropLostCaches(state.database);
  await removeAbandoned(state);
}

/** Drops layers that were not completely on the disk when the machine stopped, or when a sync failed. */
async function dropLost(
  { database, layout, boot, clock }: EngineState,
  warn: (message: string) => void,
): Promise<void> {
  if (lostLayers(database, boot).length === 0) return;
  loseUnsyncedCaches(database, clock.now());
  const { dropLayers } = await import("./repair.ts");
  const cause =
    layersOfFailedSyncs(database).length > 0 ? "writing to the disk failed" : "the machine stopped";
  const dropped = await dropLayers(database, layout, () => lostLayers(database, boot));
  if (dropped > 0)
    warn(
      `${cause} before ${dropped === 1 ? "a layer was" : `${dropped} layers were`} on the disk: images built on ${dropped === 1 ? "it" : "them"} must be built again`,
    );
}

/** Returns an operation. Ends it first if its process was killed, so that no client waits for it forever. */
export async function requireOperation(state: EngineState, uuid: string): Promise<Operation> {
  const operation = findOperation(state.database, uuid);
  if (operation === undefined) throw new RequestError(404, `there is no operation ${uuid}`);
  const unrecorded = state.unrecorded.get(uuid);
  if (unrecorded !== undefined)
    return { ...operation, ...unrecorded, result: null, finishedAt: operation.createdAt };
  if (operation.finishedAt !== null || isAlive(operation.owner)) return operation;
  await endIfAbandoned(state, operation);
  await removeAbandonedContainers(state);
  return findOperation(state.database, uuid) ?? operation;
}

async function endIfAbandoned(state: EngineState, operation: Operation): Promise<void> {
  if (isAlive(operation.owner)) return;
  const { uuid } = operation;
  const directory = join(state.layout.operations, uuid);
  await killHelper(directory, state.clock);
  await removeContainer(state, uuid);
  await rm(directory, { recursive: true, force: true });
  const outcome: Failure = operation.cancelRequested
    ? { status: "CANCELLED", error: null }
    : { status: "FAILED", error: "the process that ran this operation was killed" };
  if (!finishOperation(state.database, uuid, outcome, state.clock.now())) return;
  state.events.complete(uuid, describeCompletion(outcome, state.clock.now() - operation.createdAt));
}

async function removeAbandoned(state: EngineState): Promise<void> {
  const { layout, database } = state;
  await removeOrphanedLayers(state);
  // The directory is listed before the database is read, since an operation is recorded before its directory is made.
  const directories = readdirSync(layout.operations);
  const unfinished = new Set(unfinishedOperations(database).map(({ uuid }) => uuid));
  for (const name of directories) {
    if (!unfinished.has(name)) await rm(join(layout.operations, name), { recursive: true, force: true });
  }
  await removeAbandonedContainers(state);
  await removeOrphanedCaches(database, layout);
  for (const name of readdirSync(layout.scratches)) {
    if (name !== basename(layout.scratch) && !isAlive(name))
      await rm(join(layout.scratches, name), { recursive: true, force: true });
  }
}

/** Milliseconds. Opening the engine must not wait for a slow disk; a container that remains stays noted. */
const shortWaitMilliseconds = 500;

/** Control groups that are made in advance are named after their process, containers after their operation. */
async function removeAbandonedContainers(state: EngineState): Promise<void> {
  const names = readdirSync(state.layout.containers);
  const unfinished = new Set(unfinishedOperations(state.database).map(({ uuid }) => uuid));
  const abandoned = names.filter((name) => (name.includes(".") ? !isAlive(name) : !unfinished.has(name)));
  await Promise.all(abandoned.map((name) => removeContainer(state, name, shortWaitMilliseconds)));
}
