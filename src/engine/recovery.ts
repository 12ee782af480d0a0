import { readdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { takeOverLock } from "../lock-file.ts";
import { RequestError } from "./http/responses.ts";
import { isOpen } from "./layout.ts";
import {
  dropLostCaches,
  markInterruptedCachesLost,
  markUnsyncedCachesLost,
  removeOrphanedCaches,
} from "./records/caches.ts";
import { removeOrphanedLayers } from "./records/layers.ts";
import {
  describeCompletion,
  findOperation,
  finishOperation,
  type Operation,
  outcomeOfAbandoned,
  unfinishedOperations,
} from "./records/operations.ts";
import { layersOfFailedSyncs, lostLayers } from "./records/unsynced-layers.ts";
import { removeContainer } from "./sandbox/containers.ts";
import type { EngineState } from "./state.ts";
import { killHelper } from "./system/helper-process.ts";

/**
 * Cleans up after killed processes: operations, containers, unfinished layers and temporary files. An engine calls it before the
 * first request that changes something. An engine that only reads leaves everything as it is.
 */
export async function recover(state: EngineState, warn: (message: string) => void): Promise<void> {
  for (const operation of unfinishedOperations(state.database)) await endIfAbandoned(state, operation);
  markInterruptedCachesLost(state.database, state.layout, state.boot);
  await dropLostLayers(state, warn);
  dropLostCaches(state.database, state.layout);
  await removeAbandoned(state);
}

/** Drops layers that were not completely on the disk when the machine stopped, or when a sync failed. */
async function dropLostLayers(
  { database, layout, clock }: EngineState,
  warn: (message: string) => void,
): Promise<void> {
  if (lostLayers({ database, layout }).length === 0) return;
  markUnsyncedCachesLost(database, clock.now());
  const { dropLayers } = await import("./repair.ts");
  const cause =
    layersOfFailedSyncs(database).length > 0 ? "writing to the disk failed" : "the machine stopped";
  const dropped = await dropLayers(database, layout, () => lostLayers({ database, layout }));
  if (dropped > 0)
    warn(
      `${cause} before ${dropped === 1 ? "a layer was" : `${dropped} layers were`} on the disk: images built on ${dropped === 1 ? "it" : "them"} must be built again`,
    );
}

/**
 * Returns an operation. One whose process was killed has failed, so that no client waits for it forever; that is recorded if this
 * engine has changed anything else.
 */
export async function requireOperation(state: EngineState, uuid: string): Promise<Operation> {
  const operation = findOperation(state.database, uuid);
  if (operation === undefined) throw new RequestError(404, `there is no operation ${uuid}`);
  const unrecorded = state.unrecorded.get(uuid);
  if (unrecorded !== undefined)
    return { ...operation, ...unrecorded, result: null, finishedAt: operation.createdAt };
  if (operation.finishedAt !== null || isOpen(state.layout, operation.owner)) return operation;
  if (!state.hasChanged)
    return { ...operation, ...outcomeOfAbandoned(operation), finishedAt: operation.createdAt };
  await endIfAbandoned(state, operation);
  await removeAbandonedContainers(state);
  return findOperation(state.database, uuid) ?? operation;
}

async function endIfAbandoned(state: EngineState, operation: Operation): Promise<void> {
  if (isOpen(state.layout, operation.owner)) return;
  const { uuid } = operation;
  const directory = join(state.layout.operations, uuid);
  await killHelper(directory, state.clock);
  await removeContainer(state, uuid);
  await rm(directory, { recursive: true, force: true });
  const outcome = outcomeOfAbandoned(operation);
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
  for (const owner of readdirSync(layout.scratches)) {
    if (!isOpen(layout, owner)) await rm(join(layout.scratches, owner), { recursive: true, force: true });
  }
  for (const owner of readdirSync(layout.locks)) takeOverLock(join(layout.locks, owner))?.[Symbol.dispose]();
}

/** Opening the engine must not wait longer for a slow disk. A container that is still there stays on record. */
const shortWaitMilliseconds = 500;

/** Removes containers without a process. A container is named after its operation, or, in a trial, after its engine and a further ID. */
async function removeAbandonedContainers(state: EngineState): Promise<void> {
  const names = readdirSync(state.layout.containers);
  const unfinished = new Set(unfinishedOperations(state.database).map(({ uuid }) => uuid));
  const abandoned = names.filter((name) => {
    const [, owner] = /^([^.]*\.[^.]*)\./.exec(name) ?? [];
    return owner === undefined ? !unfinished.has(name) : !isOpen(state.layout, owner);
  });
  await Promise.all(abandoned.map((name) => removeContainer(state, name, shortWaitMilliseconds)));
}
