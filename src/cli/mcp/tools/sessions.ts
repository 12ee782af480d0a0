import { z } from "zod";
import { listSessions } from "../../sessions/list.ts";
import { rollBack, showSession } from "../../sessions/show.ts";
import { readOnly, type Tool } from "../tool.ts";
import { surroundingsFor } from "../tool-call.ts";
import { session, toolInput } from "./fields.ts";

const sessionsInput = toolInput({
  session: z.string().min(1).optional().describe("Show the history of this session, instead of the list"),
  filter: z.string().min(1).optional().describe("Only sessions whose key contains this, such as `build:`"),
});

const list = z.array(
  z.looseObject({
    key: z.string(),
    context: z.string().nullable().describe("Build context, for the session of a build"),
    branches: z.number(),
    entries: z.number(),
    image: z.string().nullable(),
    updatedAt: z.string(),
  }),
);

/** A session with all of its images. */
export const history = z.looseObject({
  key: z.string(),
  activeBranch: z.string(),
  history: z.array(
    z.looseObject({
      id: z.number(),
      parent: z.number().nullable(),
      image: z.string(),
      kind: z.string(),
      title: z.string(),
      operation: z.string().nullable(),
      createdAt: z.string(),
      branches: z.array(z.string()),
    }),
  ),
});

const sessionsOutput = z.object({ sessions: list.optional(), session: history.optional() });

export const sessions: Tool<typeof sessionsInput, typeof sessionsOutput> = {
  name: "sessions",
  title: "List sessions, or show one",
  description:
    "List the sessions of this machine: one for every context that was built (build:...), and those that were worked in. With `session`, show its history: every image, what made it, and the branches that are at it.",
  input: sessionsInput,
  output: sessionsOutput,
  annotations: readOnly,
  async perform({ session, filter }, call) {
    if (session === undefined) return { sessions: listSessions(filter ?? "", surroundingsFor(call)).json };
    return { session: showSession(session, surroundingsFor(call)).json };
  },
};

const rollbackInput = toolInput({
  session,
  steps: z.int().positive().default(1).describe("How many images to go back"),
});
const rollbackOutput = z.looseObject({ session: z.string(), branch: z.string(), image: z.string() });

export const rollback: Tool<typeof rollbackInput, typeof rollbackOutput> = {
  name: "rollback",
  title: "Go back to an earlier image",
  description:
    "Take the session's branch back to the image before the last `run` or `write_files` that was kept. Nothing is lost: `sessions` still shows what was rolled back.",
  input: rollbackInput,
  output: rollbackOutput,
  annotations: { readOnlyHint: false, destructiveHint: false, openWorldHint: false },
  async perform({ session, steps }, call) {
    return { ...rollBack(steps, surroundingsFor(call, { session })).json };
  },
};
