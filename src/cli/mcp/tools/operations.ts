import { z } from "zod";
import { callForJson } from "../call.ts";
import { readOnly, type Tool } from "../tool.ts";

const input = z.strictObject({
  operation: z
    .string()
    .min(1)
    .optional()
    .describe("Show only this one, by its id or the first digits of its id"),
  all: z.boolean().optional().describe("Also list operations that have ended"),
  since: z.string().min(1).optional().describe("Only operations started since a date, or an age such as 1h"),
  limit: z.int().positive().max(1000).default(50).describe("Maximum number, newest first"),
});

const one = z.looseObject({
  uuid: z.string(),
  kind: z.string(),
  status: z.string().describe("SUCCESS: the command ran to its end, with any exit code"),
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
    "List the operations that are under way on the service, newest first. With `operation`, show only that one, with its exit code and resulting image.",
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
