import type { Clock } from "../../clock.ts";
import { messageOf } from "../../errors.ts";
import type { Message } from "../../messages/wording.ts";
import type { Store } from "../../store/store.ts";
import type { DecodedIndex, UnusableIndexError } from "./index-file.ts";
import type { ScopeService } from "./index-images.ts";
import { type ReadOptions, type ReadScope, readScope, readSteps } from "./read-scope.ts";
import { emptyIndex, formatLayers, mergeIndexes, type ScopeIndex } from "./scope-index.ts";
import type { ScopeKeys } from "./signature.ts";
import { writeScope } from "./write-scope.ts";

/** The scopes of a service, for all builds of a command there: each is read once, and has one writer. */
export interface ServiceScopes {
  read(name: string, explains: boolean): Promise<ReadScope>;
  add(name: string, additions: ScopeAdditions): void;
  /** Writes all that was added. Rejects only if interrupted. */
  write(): Promise<void>;
}

interface ScopeAdditions {
  index: ScopeIndex;
  /** UUIDs of images that the service has lost. */
  gone: ReadonlySet<string>;
  /** Images with a shell. */
  bases: ReadonlySet<string>;
}

export interface ScopesOptions extends ScopeKeys {
  service: ScopeService;
  store: Pick<Store, "scopeCopies">;
  clock: Clock;
  signal: AbortSignal;
  log: { info(text: string): void; warn(text: Message): void };
}

export function createServiceScopes({
  service,
  store,
  verify,
  sign,
  clock,
  signal,
  log,
}: ScopesOptions): ServiceScopes {
  const known = new Map<string, DecodedIndex | UnusableIndexError>();
  const reading: ReadOptions = { service, verify, known, warn: log.warn, copies: store.scopeCopies };
  const reads = new Map<string, Promise<ReadScope>>();
  const added = new Map<string, ScopeAdditions>();

  async function read(name: string, explains: boolean): Promise<ReadScope> {
    const scope = await readScope(name, reading);
    return explains ? { ...scope, index: await readSteps(scope, reading) } : scope;
  }

  async function write(name: string, { index, gone, bases }: ScopeAdditions): Promise<void> {
    try {
      const writing = { ...reading, sign, clock, signal, bases: [...bases] };
      const written = await writeScope(name, { ...index, facts: new Map() }, gone, writing);
      if (written !== undefined)
        log.info(`cache: scope ${name} has ${formatLayers(written.all)}, ${written.added} new`);
    } catch (error) {
      signal.throwIfAborted();
      // The build has succeeded.
      log.warn(`cache: nothing is written to scope ${name}: ${messageOf(error)}`);
    }
  }

  return {
    read: (name, explains) => reads.getOrInsertComputed(`${name} ${explains}`, () => read(name, explains)),
    add(name, { index, gone, bases }) {
      const before = added.get(name) ?? { index: emptyIndex(), gone: new Set(), bases: new Set() };
      added.set(name, {
        index: mergeIndexes(before.index, index),
        gone: before.gone.union(gone),
        bases: before.bases.union(bases),
      });
    },
    async write() {
      const all = [...added];
      added.clear();
      await Promise.all(all.map(([name, additions]) => write(name, additions)));
    },
  };
}
