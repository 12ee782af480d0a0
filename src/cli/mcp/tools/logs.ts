import { z } from "zod";
import { callCommand, callForJson } from "../call.ts";
import { readOnly, type Tool } from "../tool.ts";
import { maxBytes } from "./fields.ts";
import { endOf } from "./tail.ts";

const input = z.strictObject({
  operation: z.string().min(1).describe("Its id, or the first digits of its id"),
  max_bytes: maxBytes(256 * 1024),
});

const output = z.object({
  operation: z.string(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean().describe("True if only the last parts of stdout and stderr are returned"),
  hasEnded: z.boolean(),
  exitCode: z.number().nullable(),
});

const details = z.object({ uuid: z.string(), hasEnded: z.boolean(), exitCode: z.number().nullable() });

export const logs: Tool<typeof input, typeof output> = {
  name: "logs",
  title: "Show an operation's output",
  description: "Show the output of an operation so far; an import has none.",
  input,
  output,
  annotations: readOnly,
  async perform({ operation, max_bytes }, call) {
    const shown = await callForJson(["show"], { positionals: [operation] }, call);
    const { uuid, hasEnded, exitCode } = details.parse(shown);
    const { stdout, stderr } = await callCommand(["logs"], { positionals: [uuid] }, call);
    const [out, err] = [endOf(stdout.toString(), max_bytes), endOf(stderr.toString(), max_bytes)];
    const truncated = out.isCut || err.isCut;
    return { operation: uuid, stdout: out.text, stderr: err.text, truncated, hasEnded, exitCode };
  },
};
