import { layerBranch } from "../../builder/cache/layer-cache.ts";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import { firstBranch } from "../../store/branches.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { nearest } from "../../suggest.ts";
import type { Surroundings } from "../command-line/command.ts";

/** Returns the whole history of a session; throws if it does not exist. */
export function requireHistory(store: Store, key: string): HistoryEntry[] {
  const history = store.sessions.history(key);
  if (history !== undefined) return history;
  const guess = nearest(
    key,
    store.sessions.list("").map((session) => session.key),
  );
  throw new BoughError(`there is no session ${JSON.stringify(key)}`, {
    hint:
      guess === undefined ? wording`${{ command: "session list" }} lists them.` : `Did you mean ${guess}?`,
  });
}

/** Returns the full name of a branch. A layer's branch can be given by the first digits of its hash. */
export function requireBranch(store: Store, key: string, given: string): string {
  requireHistory(store, key);
  const names = store.branches.list(key).map(({ name }) => name);
  if (names.includes(given)) return given;
  const matches = isLayerPrefix(given) ? names.filter((name) => name.startsWith(given)) : [];
  const [match, ...others] = matches;
  if (match !== undefined && others.length === 0) return match;
  if (match !== undefined) {
    throw new BoughError(
      `${given} is ambiguous: ${matches.length} branches of session ${key} begin with it`,
      {
        hint: `Give more digits: ${matches.slice(0, 5).join(", ")}${matches.length > 5 ? ", ..." : "."}`,
      },
    );
  }
  const guess = nearest(given, names);
  throw new BoughError(`session ${key} has no branch ${given}`, {
    hint:
      guess === undefined
        ? wording`${{ command: "session branch", session: key }} lists them.`
        : `Did you mean ${guess}?`,
  });
}

/** Returns the entry named by a branch or by the number of an entry. */
export function requireEntry(store: Store, key: string, given: string): HistoryEntry {
  const history = requireHistory(store, key);
  const byName = store.sessions.findBranch(key, given);
  const byNumber = /^\d+$/.test(given) ? history.find(({ id }) => id === Number(given)) : undefined;
  const entry = byName ?? byNumber ?? store.sessions.findBranch(key, requireBranch(store, key, given));
  if (entry === undefined) throw new Error(`branch ${given} of ${key} vanished while it was looked up`);
  return entry;
}

/** Returns the name of a new branch; throws if it is invalid. */
export function checkBranchName(name: string): string {
  const fault = branchNameProblem(name);
  if (fault === undefined) return name;
  throw usageError(
    `invalid branch name ${JSON.stringify(name)}: ${fault}`,
    `A name such as ${firstBranch} or try/2 may have letters, digits and - _ . / : @ in it, at most 128.`,
  );
}

function branchNameProblem(name: string): string | undefined {
  if (isLayerPrefix(name)) return "names of this form are for the layers of builds";
  if (/^\d+$/.test(name)) return "a number is a history entry";
  if (name === "HEAD") return "HEAD is the current history entry";
  return /^[\p{L}\p{N}_][\p{L}\p{N}_./:@-]{0,127}$/u.test(name)
    ? undefined
    : "it is too long or has unsupported characters";
}

function isLayerPrefix(name: string): boolean {
  return name.startsWith(layerBranch(""));
}

/** Returns the session that a command works in: `-S`, else `BOUGH_SESSION`, else `default`. */
export function sessionKey({ globals, runtime }: Pick<Surroundings, "globals" | "runtime">): string {
  return globals.session ?? (runtime.environment.BOUGH_SESSION || "default");
}

/**
 * An entry of a session's history by its number, or by steps from the current entry, negative ones backwards. `@3` and `HEAD~2` are the
 * notation of the service's own client.
 */
export type HistoryReference = { id: number } | { steps: number };

/** Parses `@`, `:` or `HEAD`; `@N`; `@-N`, `HEAD~N`, `HEAD~`; `@+N`. Returns `undefined` for anything else, such as an id. */
export function parseHistoryReference(text: string): HistoryReference | undefined {
  const [, sign, digits] = /^(?:[@:]([+-]?)(\d{1,9})|[@:]|HEAD)$/.exec(text) ?? [];
  const [, back] = /^HEAD~(\d{0,9})$/.exec(text) ?? [];
  if (back !== undefined) return { steps: -Number(back === "" ? 1 : back) };
  if (digits === undefined) return /^(?:[@:]|HEAD)$/.test(text) ? { steps: 0 } : undefined;
  return sign === "" ? { id: Number(digits) } : { steps: Number(`${sign}${digits}`) };
}

/** Finds the entry, or throws. Steps forward take the latest of several next entries. */
export function requireHistoryEntry(
  store: Store,
  key: string,
  text: string,
  reference: HistoryReference,
): HistoryEntry {
  const history = requireHistory(store, key);
  const entries = new Map(history.map((entry) => [entry.id, entry]));
  const head = store.branches.head(key);
  const found = "id" in reference ? entries.get(reference.id) : walk(head, reference.steps, entries);
  if (found !== undefined) return found;
  throw new BoughError(`session ${key} has no history entry ${text}`, {
    hint: wording`${{ command: "session show", words: [key] }} lists its history with the numbers for @N.`,
  });
}

function walk(
  head: HistoryEntry | undefined,
  steps: number,
  entries: ReadonlyMap<number, HistoryEntry>,
): HistoryEntry | undefined {
  let entry = head;
  for (let step = 0; step < Math.abs(steps) && entry !== undefined; step++) {
    const from = entry;
    entry =
      steps < 0
        ? entries.get(from.parent ?? -1)
        : [...entries.values()].findLast(({ parent }) => parent === from.id);
  }
  return entry;
}
