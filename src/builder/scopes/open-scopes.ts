import type { Clock } from "../../clock.ts";
import { BoughError, messageOf } from "../../errors.ts";
import type { Store } from "../../store/store.ts";
import type { LayerCache } from "../cache/layer-cache.ts";
import type { StepMemory } from "../cache/step-memory.ts";
import type { DecodedIndex, UnusableIndexError } from "./index-file.ts";
import type { ScopeService } from "./index-images.ts";
import { type ReadOptions, readScope, readSteps } from "./read-scope.ts";
import { type FoundScope, shareLayers, shareSteps, shareStore } from "./shared-cache.ts";
import type { ScopeKeys } from "./signature.ts";
import { createUsedEntries } from "./used-entries.ts";
import { writeScope } from "./write-scope.ts";

/** The scopes that a build reads, in this order, and the scope that it writes. */
export interface ScopeChoice {
  from: readonly string[];
  to: string | undefined;
}

/** The cache that a build uses instead of this machine's own: that one, extended by the scopes. */
interface OpenScopes {
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  /** Writes what the build has made or used, once. Rejects only if interrupted, as the build has succeeded by then. */
  finish(): Promise<void>;
}

interface ScopesOptions extends ScopeKeys {
  service: ScopeService;
  store: Store;
  layers: LayerCache;
  memory: StepMemory;
  session: string;
  /** Relative to the context. */
  dockerfile: string;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: string): void };
}

/** Reads the scopes. Warns of a scope that can't be read, and goes on without it. */
export async function openScopes({ from, to }: ScopeChoice, options: ScopesOptions): Promise<OpenScopes> {
  const { service, store, memory, session, dockerfile, clock, signal, log, verify, sign } = options;
  const known = new Map<string, DecodedIndex | UnusableIndexError>();
  const reading: ReadOptions = { service, verify, known, warn: log.warn, copies: store.scopeCopies };
  const scopes: FoundScope[] = [];
  const found = await Promise.all(from.map((name) => tryRead(name, memory.explains, reading, signal)));
  for (const [at, name] of from.entries()) {
    const scope = found[at];
    if (scope instanceof Error) log.warn(`cache: scope ${name} is not used: ${scope.message}`);
    else if (scope?.written !== undefined) scopes.push({ name, index: scope.index });
    // The reason why an index can't be used has been reported.
    else if (scope?.images.length === 0) log.info(`cache: scope ${name} is empty`);
  }

  const used = to === undefined ? undefined : createUsedEntries({ store, session, dockerfile, clock });
  let isFinished = false;
  const gone = new Set<string>();
  const bases = new Set<string>();
  return {
    store: shareStore(store, scopes, used),
    layers: shareLayers(options.layers, { scopes, used, gone, bases, clock }),
    memory: shareSteps(memory, { scopes, used, dockerfile }),

    async finish() {
      if (to === undefined || used === undefined || isFinished) return;
      isFinished = true;
      try {
        const additions = used.toIndex();
        const writing = { ...reading, sign, clock, signal, bases: [...bases] };
        const written = await writeScope(to, additions, gone, writing);
        if (written !== undefined)
          log.info(`cache: scope ${to} has ${countLayers(written.all)}, ${written.added} new`);
      } catch (error) {
        signal.throwIfAborted();
        if (!(error instanceof BoughError)) throw error;
        log.warn(`cache: nothing is written to scope ${to}: ${error.message}`);
      }
    },
  };
}

function countLayers(count: number): string {
  return count === 1 ? "1 layer" : `${count} layers`;
}

async function tryRead(name: string, explains: boolean, options: ReadOptions, signal: AbortSignal) {
  try {
    const scope = await readScope(name, options);
    return explains ? { ...scope, index: await readSteps(scope, options) } : scope;
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof BoughError) return error;
    throw new Error(`reading scope ${name}: ${messageOf(error)}`, { cause: error });
  }
}
