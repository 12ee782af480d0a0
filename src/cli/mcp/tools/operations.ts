import { z } from "zod";
import { activeStatuses } from "../../../service/wire/operation.ts";
import { parseTime } from "../../command-line/option-values.ts";
import { listOperations } from "../../operations/ps.ts";
import { describeOperation, printLogs } from "../../operations/show.ts";
import { connectQuietly } from "../../service/connection.ts";
import { lastBytes } from "../output-tail.ts";
import { readOnly, type Tool } from "../tool.ts";
import { collectStreams, surroundingsFor } from "../tool-call.ts";
import { maxBytes, toolInput } from "./fields.ts";

const operationsInput = toolInput({
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
const operationsOutput = z.object({ operations: z.array(one) });

export const operations: Tool<typeof operationsInput, typeof operationsOutput> = {
  name: "operations",
  title: "List operations, or show one",
  description:
    "List the operations that are under way on the service, newest first. With `operation`, show only that one, with its exit code and resulting image.",
  input: operationsInput,
  output: operationsOutput,
  annotations: readOnly,
  async perform({ operation, all, since, limit }, call) {
    const surroundings = surroundingsFor(call);
    if (operation === undefined) {
      const filter = { limit, since: since && parseTime(since, "--since", surroundings.runtime.clock) };
      const listed = await listOperations(filter, all === true ? undefined : activeStatuses, surroundings);
      return { operations: listed.json.map((each) => ({ ...each })) };
    }
    await using connection = await connectQuietly(surroundings);
    return { operations: [{ ...(await describeOperation(operation, surroundings, connection)) }] };
  },
};

const logsInput = toolInput({
  operation: z.string().min(1).describe("Its id, or the first digits of its id"),
  max_bytes: maxBytes(256 * 1024),
});

const logsOutput = z.object({
  operation: z.string(),
  stdout: z.string(),
  stderr: z.string(),
  truncated: z.boolean().describe("True if only the last parts of stdout and stderr are returned"),
  hasEnded: z.boolean(),
  exitCode: z.number().nullable(),
});

export const logs: Tool<typeof logsInput, typeof logsOutput> = {
  name: "logs",
  title: "Show an operation's output",
  description: "Show the output of an operation so far; an import has none.",
  input: logsInput,
  output: logsOutput,
  annotations: readOnly,
  async perform({ operation, max_bytes }, call) {
    const printed = collectStreams();
    const surroundings = surroundingsFor(call, {}, printed.streams);
    const { uuid, hasEnded, exitCode } = await printLogs(operation, { follows: false }, surroundings);
    const [out, err] = [
      lastBytes(printed.text("stdout"), max_bytes),
      lastBytes(printed.text("stderr"), max_bytes),
    ];
    const truncated = out.isCut || err.isCut;
    return { operation: uuid, stdout: out.text, stderr: err.text, truncated, hasEnded, exitCode };
  },
};
