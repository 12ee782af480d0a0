import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../errors.ts";
import { renderTable } from "../output/table.ts";
import { nearest } from "../suggest.ts";
import type { ArgumentDefinitions } from "./arguments.ts";
import type { Command, Invocation } from "./command.ts";
import { openLocalStore } from "./connection.ts";
import { printResult } from "./result.ts";

const listArguments: ArgumentDefinitions = {
  filter: { type: "string", valueHint: "TEXT", description: "Only sessions whose key contains TEXT" },
};

export const list: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "list", description: "List the sessions: one for every context that was built." },
    args: listArguments,
    run: ({ data }) => listSessions(data),
  }),
  examples: [["session list --filter build:", "the builds' sessions"]],
};

const showArguments: ArgumentDefinitions = {
  session: {
    type: "positional",
    required: false,
    description: "The session's key, such as build:0123456789abcdef (default: -S)",
  },
};

export const show: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "show",
      description: "Show a session's history: every image, what made it, and the branches at it.",
    },
    args: showArguments,
    run: ({ data }) => showSession(data),
  }),
  examples: [["session show build:0123456789abcdef", "the layers of a context's builds"]],
};

function listSessions(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const store = openLocalStore(runtime, globals);
  try {
    const sessions = store.sessions.list(values.text("filter") ?? "");
    printResult(invocation, {
      id: sessions.map(({ key }) => key).join("\n"),
      json: sessions.map((session) => ({ ...session, updatedAt: new Date(session.updatedAt).toISOString() })),
      table: () =>
        renderTable(
          ["SESSION", "BRANCHES", "IMAGES", "UPDATED"],
          sessions.map(({ key, branches, entries, updatedAt }) => [
            key,
            String(branches),
            String(entries),
            new Date(updatedAt).toISOString(),
          ]),
        ),
    });
  } finally {
    store.close();
  }
}

function showSession(invocation: Invocation): void {
  const { values, globals, runtime } = invocation;
  const key = values.positionals[0] ?? globals.session;
  if (key === undefined) {
    throw new BoughError("bough session show: which session?", {
      kind: "usage",
      hint: "`bough session list` lists them; give one's key.",
    });
  }
  const store = openLocalStore(runtime, globals);
  try {
    const history = store.sessions.history(key);
    if (history === undefined) {
      const guess = nearest(
        key,
        store.sessions.list("").map((session) => session.key),
      );
      throw new BoughError(`there is no session ${JSON.stringify(key)}`, {
        hint: guess === undefined ? "`bough session list` lists them." : `Did you mean ${guess}?`,
      });
    }
    printResult(invocation, {
      id: history.map(({ image }) => image).join("\n"),
      json: {
        key,
        history: history.map((entry) => ({ ...entry, createdAt: new Date(entry.createdAt).toISOString() })),
      },
      table: () =>
        renderTable(
          ["ID", "IMAGE", "PARENT", "KIND", "TITLE", "BRANCHES"],
          history.map(({ id, image, parent, kind, title, branches }) => [
            String(id),
            image,
            parent === null ? "-" : String(parent),
            kind,
            title,
            branches.length === 0 ? "-" : branches.join(" "),
          ]),
        ),
    });
  } finally {
    store.close();
  }
}
