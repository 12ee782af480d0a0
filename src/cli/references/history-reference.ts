/** Entries of a session's history by position: `@3`, `HEAD~2`, as in the service's own client. */
import { quote } from "../../builder/commands/command.ts";
import { BoughError } from "../../errors.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { requireHistory } from "./session-argument.ts";

/** An entry by its number, or by steps from the current one: negative steps go back. */
type HistoryReference = { id: number } | { steps: number };

/** Parses `@`, `:` or `HEAD`; `@N`; `@-N`, `HEAD~N`, `HEAD~`; `@+N`. Returns `undefined` for anything else, such as an id. */
export function parseHistoryReference(text: string): HistoryReference | undefined {
  const [, sign, digits] = /^(?:[@:]([+-]?)(\d{1,9})|[@:]|HEAD)$/.exec(text) ?? [];
  const [, back] = /^HEAD~(\d{0,9})$/.exec(text) ?? [];
  if (back !== undefined) return { steps: -Number(back === "" ? 1 : back) };
  if (digits === undefined) return /^(?:[@:]|HEAD)$/.test(text) ? { steps: 0 } : undefined;
  return sign === "" ? { id: Number(digits) } : { steps: Number(`${sign}${digits}`) };
}

/** Finds the entry, or throws. Going forward, the latest of several next entries counts. */
export function requireReferred(
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
    hint: `\`bough session show ${quote(key)}\` lists its history with the numbers for @N.`,
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
