import { existsSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { layerBranch } from "../../builder/cache/layer-cache.ts";
import type { SessionUse } from "../../engine/prune/selection.ts";
import { BoughError } from "../../errors.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import { openStore, type Store } from "../../store/store.ts";
import { listScopeNames, readScope } from "../cache/read-scope.ts";
import type { Surroundings } from "../command-line/command.ts";
import { removeContextsOf } from "../contexts/kept-contexts.ts";
import type { Runtime } from "../process/runtime.ts";
import { stateDirectory } from "../process/runtime.ts";
import { isLayerBranch } from "../references/working-branch.ts";
import { connect } from "../service/connection.ts";
import { findRunningBuilds } from "../sessions/running-builds.ts";

/** The engine's images that sessions use, and changes of the sessions' databases. */
interface SessionImages {
  /** Uses of the images of branches, including those before a branch's tip, which a rollback needs. */
  uses: Map<string, SessionUse>;
  /** Build contexts by the sessions' keys. */
  contexts: Map<string, string | null>;
  /** Forgets images that the engine no longer has. */
  forgetImages(images: readonly string[]): void;
  /** Returns the keys of the engine's own sessions that were last used before `moment`, without those that builds run in. */
  sessionsUntil(moment: number): string[];
  /** Milliseconds since the epoch: images, files and caches used since then may belong to a build that runs. */
  buildsSince: number | undefined;
  /** Also removes the fetched contexts of builds. */
  deleteSessions(keys: readonly string[]): void;
}

/** Returns the paths of all databases that may refer to the engine's images: its own, and those of servers on this machine. */
export function sessionDatabases(runtime: Runtime): string[] {
  const directory = join(stateDirectory(runtime), "sessions");
  const names = existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith(".db")) : [];
  return names.map((name) => join(directory, name));
}

/** Runs `work` with these databases open. */
export async function withSessionImages<Result>(
  runtime: Runtime,
  work: (images: SessionImages) => Promise<Result>,
): Promise<Result> {
  const stores: Store[] = [];
  try {
    for (const path of sessionDatabases(runtime)) stores.push(openStore(path, runtime.clock));
    const { since: buildsSince, isBuilding } = findRunningBuilds(stateDirectory(runtime));
    const uses = new Map<string, SessionUse>();
    const contexts = new Map<string, string | null>();
    for (const store of stores) {
      for (const { key, context, updatedAt } of store.sessions.list("")) {
        contexts.set(key, context);
        addUses(uses, store, key, isBuilding(key) ? Number.POSITIVE_INFINITY : updatedAt);
      }
    }
    const own = stores.find(({ path }) => basename(path) === "embedded.db");
    return await work({
      uses,
      contexts,
      buildsSince,
      sessionsUntil: (moment) =>
        own?.sessions
          .list("")
          .flatMap(({ key, updatedAt }) => (updatedAt < moment && !isBuilding(key) ? key : [])) ?? [],
      deleteSessions(keys) {
        for (const key of keys) {
          own?.sessions.delete(key);
          removeContextsOf(key, stateDirectory(runtime));
        }
      },
      forgetImages(images) {
        for (const store of stores) {
          store.sessions.forgetImages(images);
          store.forgetImages(images);
        }
      },
    });
  } finally {
    for (const store of stores) store.close();
  }
}

/** `updatedAt`: infinite while a build runs in the session. */
function addUses(uses: Map<string, SessionUse>, store: Store, session: string, updatedAt: number): void {
  const history = store.sessions.history(session) ?? [];
  const latest = new Set(Array.from(store.steps.latestHashes(session), layerBranch));
  const newest = history.at(-1);
  // The newest layer of a build may belong to an instruction that is no longer in the Dockerfile.
  const isNewest = (entry: HistoryEntry) => entry === newest && (latest.size === 0 || startsFrom(entry));
  const isTip = (entry: HistoryEntry) =>
    isNewest(entry) || entry.branches.some((branch) => !isLayerBranch(branch) || latest.has(branch));
  const current = withParents(history, history.filter(isTip));
  const reachable = withParents(
    history,
    history.filter(({ branches }) => branches.length > 0),
  );
  const isWork = (branch: string) => !isLayerBranch(branch);
  const work = withParents(
    history,
    history.filter(({ branches }) => branches.some(isWork)),
  );
  for (const entry of reachable) {
    const isCurrent = current.has(entry);
    const known = uses.get(entry.image);
    uses.set(entry.image, {
      // The session that made the image, not one that only starts from it.
      session: known === undefined || !startsFrom(entry) ? session : known.session,
      usedAt: Math.max(
        known?.usedAt ?? 0,
        isCurrent || !Number.isFinite(updatedAt) ? updatedAt : entry.createdAt,
      ),
      isCurrent: isCurrent || known?.isCurrent === true,
      holdsWork: work.has(entry) || known?.holdsWork === true,
    });
  }
}

/** True if the entry names an existing image instead of a new one. */
function startsFrom({ kind }: HistoryEntry): boolean {
  return kind === "from" || kind === "use";
}

function withParents(history: readonly HistoryEntry[], tips: readonly HistoryEntry[]): Set<HistoryEntry> {
  const byId = new Map(history.map((entry) => [entry.id, entry]));
  const found = new Set<HistoryEntry>();
  for (const tip of tips) {
    for (let at: HistoryEntry | undefined = tip; at !== undefined && !found.has(at); ) {
      found.add(at);
      at = at.parent === null ? undefined : byId.get(at.parent);
    }
  }
  return found;
}

/** The prefix of a scope's name as an owner of layers. No session has such a key, since keys have no spaces. */
export const scopeOwner = "scope ";

/**
 * Adds the images of scopes to those of sessions, since other machines, which have no session here, build on them. The layers of the
 * latest builds are current.
 */
export async function addScopeUses(
  uses: Map<string, SessionUse>,
  { runtime, globals, log }: Surroundings,
): Promise<void> {
  try {
    const silent = { ...log, info() {} };
    await using connection = await connect({ runtime, globals: { ...globals, local: true }, log: silent });
    const { service } = connection;
    for (const name of await listScopeNames(service)) {
      const { found: scope, reader } = await readScope(name, service, { runtime, log });
      const { steps } = await reader.readSteps(scope);
      const latest = new Set(Array.from(steps.values(), ({ hash }) => hash));
      for (const [hash, { image, usedAt }] of scope.index.layers) {
        const known = uses.get(image);
        uses.set(image, {
          session: known?.session ?? `${scopeOwner}${name}`,
          usedAt: Math.max(known?.usedAt ?? 0, usedAt),
          isCurrent: known?.isCurrent === true || latest.has(hash),
          holdsWork: known?.holdsWork === true,
        });
      }
    }
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (!(error instanceof BoughError)) throw error;
    log.warn(`cannot read the scopes: ${error.message}`);
  }
}
