import { layerBranch } from "../../builder/cache/layer-cache.ts";
import { quote } from "../../builder/commands/command.ts";
import { BoughError } from "../../errors.ts";
import { firstBranch } from "../../store/branches.ts";
import type { HistoryEntry } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import { nearest } from "../../suggest.ts";
import type { Invocation } from "../command-line/command.ts";

/** Returns the whole history of a session; throws if it does not exist. */
export function requireHistory(store: Store, key: string): HistoryEntry[] {
  const history = store.sessions.history(key);
  if (history !== undefined) return history;
  const guess = nearest(
    key,
    store.sessions.list("").map((session) => session.key),
  );
  throw new BoughError(`there is no session ${JSON.stringify(key)}`, {
    hint: guess === undefined ? "`bough session list` lists them." : `Did you mean ${guess}?`,
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
        ? `\`bough -S ${quote(key)} session branch\` lists them.`
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

/** Returns the name of a new branch if it is valid, else throws. */
export function checkBranchName(name: string): string {
  const fault = faultOf(name);
  if (fault === undefined) return name;
  throw new BoughError(`invalid branch name ${JSON.stringify(name)}: ${fault}`, {
    kind: "usage",
    hint: `A name such as ${firstBranch} or try/2 may have letters, digits and - _ . / : @ in it, at most 128.`,
  });
}

function faultOf(name: string): string | undefined {
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
export function sessionKey({ globals, runtime }: Pick<Invocation, "globals" | "runtime">): string {
  return globals.session ?? (runtime.environment.BOUGH_SESSION || "default");
}
