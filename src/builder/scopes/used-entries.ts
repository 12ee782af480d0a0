import type { Clock } from "../../clock.ts";
import type { Store } from "../../store/store.ts";
import { version } from "../../version.ts";
import { isOfBase, layerBranch, type NewCacheLayer } from "../cache/layer-cache.ts";
import {
  inputsOf,
  type RecordedValue,
  type RecordedVariables,
  type StepInputs,
} from "../cache/step-inputs.ts";
import type { RememberedStep } from "../cache/step-memory.ts";
import { emptyIndex, type ScopeEntry, type ScopeIndex, type SectionName } from "./scope-index.ts";

/** Collects the entries that a build has made or used, for a scope. */
export interface UsedEntries {
  add<Name extends SectionName>(section: Name, key: string, entry: Unstamped<Name>): void;
  /** Adds a layer of this machine. */
  addLayer(hash: string, made?: NewCacheLayer): void;
  addStep(step: RememberedStep, hash: string): void;
  /** Returns all entries. They are computed only at the end: most builds have nothing new. */
  toIndex(): ScopeIndex;
}

/** An entry whose `usedAt` will be now. */
type Unstamped<Name extends SectionName> = Omit<ScopeEntry<Name>, "usedAt">;

interface UsedEntriesOptions {
  store: Pick<Store, "sessions">;
  session: string;
  /** Relative to the context. */
  dockerfile: string;
  clock: Pick<Clock, "now">;
}

/** The size limit of a step's inputs. Larger ones are left out: they only explain to people why a step was run. */
const maxInputCharacters = 512 * 1024;

export function createUsedEntries({ store, session, dockerfile, clock }: UsedEntriesOptions): UsedEntries {
  const index = emptyIndex();
  const made = new Map<string, NewCacheLayer | undefined>();
  const steps = new Map<RememberedStep, string>();

  function layerOf(hash: string): Unstamped<"layers"> | undefined {
    const entry = store.sessions.findTip(session, layerBranch(hash));
    // Every machine finds a FROM itself, and configures an image that it has found.
    if (entry === undefined || isOfBase(entry)) return undefined;
    const { image, operation, title, createdAt: madeAt } = entry;
    const { bytes = null, seconds = null } = made.get(hash) ?? {};
    const by = made.get(hash) === undefined ? null : version;
    return { image, operation, title, madeAt, bytes, seconds, by };
  }

  return {
    add(section, key, entry) {
      const entries: Map<string, object> = index[section];
      entries.set(key, { ...entry, usedAt: clock.now() });
    },

    addLayer(hash, layer) {
      // The scope's entry is outdated.
      if (layer !== undefined) index.layers.delete(hash);
      made.set(hash, layer ?? made.get(hash));
    },

    addStep: (step, hash) => void steps.set(step, hash),

    toIndex() {
      const usedAt = clock.now();
      for (const hash of made.keys()) {
        // A layer from a scope has its entry already.
        const layer = index.layers.has(hash) ? undefined : layerOf(hash);
        if (layer !== undefined) index.layers.set(hash, { ...layer, usedAt });
      }
      for (const [step, hash] of steps) {
        const { ordinal, title } = step;
        const text = JSON.stringify(sharedInputs(step));
        if (text.length > maxInputCharacters) continue;
        index.steps.set(`${dockerfile}\n${title}`, { ordinal, hash, title, inputs: text, usedAt });
      }
      return index;
    },
  };
}

/** Returns a step's inputs without salted hashes, whose only use is to compare values on one machine. */
export function sharedInputs(step: RememberedStep): StepInputs {
  const variables = (all: RecordedVariables): RecordedVariables =>
    Object.fromEntries(
      Object.entries(all).map(([name, value]): [string, RecordedValue | null] => [
        name,
        value !== null && "withheld" in value ? { withheld: "" } : value,
      ]),
    );
  const { options: _, ...inputs } = inputsOf(step, "");
  return { ...inputs, command: "", args: variables(inputs.args), env: variables(inputs.env) };
}
