import { z } from "zod";
import { callForJson } from "../call.ts";
import { readOnly, type Tool } from "../tool.ts";

const input = z.strictObject({
  operation: z.string().min(1).optional().describe("This one, by its id or the first digits of it"),
  all: z.boolean().optional().describe("Those that have ended, too"),
  since: z.string().min(1).optional().describe("Started since then: a date, or an age such as 1h"),
  limit: z.int().positive().max(1000).default(50).describe("The newest so many"),
});

const one = z.looseObject({
  uuid: z.string(),
  kind: z.string(),
  status: z.string().describe("SUCCESS: the command was run to its end, whatever its exit code"),
  error: z.string().nullable(),
  createdAt: z.string().nullable(),
  durationSeconds: z.number().nullable(),
  command: z.string().nullable(),
  image: z.string().nullable(),
});
const output = z.object({ operations: z.array(one) });

export const operations: Tool<typeof input, typeof output> = {
  name: "operations",
  title: "List operations, or show one",
  description:
    "List what is under way on the service, newest first. With operation that one alone, with its exit code and resulting image.",
  input,
  output,
  annotations: readOnly,
  async perform({ operation, all, since, limit }, call) {
    if (operation !== undefined)
      return { operations: [one.parse(await callForJson(["show"], { positionals: [operation] }, call))] };
    const words = { flags: all === true ? ["all"] : [], texts: { since, limit: String(limit) } };
    return { operations: z.array(one).parse(await callForJson(["ps"], words, call)) };
  },
};
