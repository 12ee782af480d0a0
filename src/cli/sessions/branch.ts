import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Store } from "../../store/store.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult, type Result } from "../command-line/result.ts";
import { requireSessionImage } from "../references/image-argument.ts";
import {
  checkBranchName,
  parseHistoryReference,
  requireBranch,
  requireEntry,
  requireHistory,
  requireHistoryEntry,
  sessionKey,
} from "../references/session-argument.ts";
import { shortLayer } from "../references/working-branch.ts";
import { openLocalStore } from "../service/connection.ts";

export const branch = command({
  name: "branch",
  description: "List the session's branches, make one, or delete one.",
  args: {
    name: {
      type: "positional",
      completes: "branch",
      required: false,
      description: "Branch to make (default: list them)",
    },
    from: {
      type: "string",
      completes: "branch",
      valueHint: "BRANCH|ID",
      description: "Where it starts: a branch, or the number of a history entry (default: the active branch)",
    },
    delete: { type: "boolean", description: "Delete the branch NAME; its history stays" },
  },
  run: branchSession,
  examples: [
    ["-S work session branch", "list them"],
    ["-S work session branch try --from main", "a new one; `session checkout try` switches to it"],
    ["-S work session branch try --delete", "delete it"],
  ],
  agentNote: "Branch before you try something: going back is then a `bough session checkout`.",
});

function branchSession(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const key = sessionKey(invocation);
  const [name] = values.positionals;
  const from = values.text("from");
  const isDeletion = values.flag("delete");
  if (name === undefined && (isDeletion || from !== undefined)) {
    throw usageError(`bough session branch: NAME is missing`);
  }
  if (isDeletion && from !== undefined) {
    throw usageError("--from and --delete cannot be used together");
  }
  using store = openLocalStore(runtime, globals);
  if (name === undefined) list(invocation, store, key);
  else if (isDeletion) remove(invocation, store, key, requireBranch(store, key, name));
  else make(invocation, store, key, checkBranchName(name), from);
}

function list(invocation: Invocation, store: Store, key: string): void {
  requireHistory(store, key);
  const branches = store.branches.list(key);
  printResult(invocation, {
    id: branches.map(({ name }) => name),
    json: branches,
    table: (style) => ({
      header: ["BRANCH", "ACTIVE", "IMAGE", "ID", "TITLE"],
      rows: branches.map(({ name, isActive, image, entry, title }) => [
        { shown: shortLayer(name, style), value: name },
        isActive ? "*" : "",
        { id: image },
        String(entry),
        title,
      ]),
    }),
  });
}

function make(
  invocation: Invocation,
  store: Store,
  key: string,
  name: string,
  from: string | undefined,
): void {
  requireHistory(store, key);
  if (store.sessions.findBranch(key, name) !== undefined) {
    throw new BoughError(`session ${key} already has a branch ${name}`, {
      hint: wording`${{ command: "session checkout", session: key, words: [name] }} switches to it.`,
    });
  }
  const start = from ?? store.branches.active(key);
  const reference = parseHistoryReference(start);
  const { id, image } =
    reference === undefined
      ? requireEntry(store, key, start)
      : requireHistoryEntry(store, key, start, reference);
  store.branches.set(key, name, id);
  printResult(invocation, {
    id: name,
    json: { session: key, branch: name, image },
    table: () => ({ header: ["SESSION", "BRANCH", "IMAGE"], rows: [[key, name, image]] }),
  });
}

function remove(invocation: Invocation, store: Store, key: string, name: string): void {
  if (name === store.branches.active(key)) {
    throw new BoughError(`branch ${name} is the active branch of session ${key}`, {
      hint: wording`Switch to another branch first: ${{ command: "session checkout", session: key, words: ["BRANCH"] }}.`,
    });
  }
  store.sessions.deleteBranch(key, name);
  printResult(invocation, {
    id: name,
    json: { session: key, deleted: name },
    table: () => `${visible(name)}\n`,
  });
}

export const checkout = command({
  name: "checkout",
  description: "Make another branch the session's active one: `run` continues there.",
  args: {
    branch: {
      type: "positional",
      completes: "branch",
      required: true,
      description: "A branch; the first digits of a build's layer:<hash> are enough",
    },
  },
  run: checkOut,
  examples: [
    ["-S work session checkout try", "continue on the branch `try`"],
    [
      "-S build:0123456789abcdef session checkout layer:8709f41f767e",
      "switch to a layer of a build, to look around with `run`",
    ],
  ],
  agentNote:
    "A build's layers never move: the first `run` without -D on one creates a branch debug:<hash> and continues there.",
});

function checkOut(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const key = sessionKey(invocation);
  using store = openLocalStore(runtime, globals);
  const branch = requireBranch(store, key, values.positionals[0] ?? "");
  store.branches.checkOut(key, branch);
  const image = requireSessionImage(store, key);
  printResult(invocation, branchResult({ session: key, branch, image }));
}

export interface BranchImage {
  session: string;
  branch: string;
  image: string;
}

/** Returns the result that shows a session's branch and its image. */
export function branchResult({ session, branch, image }: BranchImage): Result<BranchImage> {
  return {
    id: image,
    json: { session, branch, image },
    table: (style) => ({
      header: ["SESSION", "BRANCH", "IMAGE"],
      rows: [[session, { shown: shortLayer(branch, style), value: branch }, image]],
    }),
  };
}
