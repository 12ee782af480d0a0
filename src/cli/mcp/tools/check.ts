import { z } from "zod";
import { callForJson, invocationFor } from "../call.ts";
import { warningForAgent } from "../hints.ts";
import { readOnly, type Tool } from "../tool.ts";
import { buildInputs, buildWords } from "./fields.ts";

const input = z.strictObject({
  ...buildInputs,
  details: z
    .boolean()
    .optional()
    .describe("Include the parsed instructions, and the files that COPY and ADD would copy"),
});

const finding = z.object({ rule: z.string(), message: z.string(), line: z.number().nullable() });
const report = z.object({
  warnings: z.array(finding),
  errors: z.array(finding),
  instructions: z.array(z.looseObject({ line: z.number(), name: z.string() })),
  files: z.array(z.looseObject({ line: z.number(), source: z.string() })),
});
const output = z.object({
  ok: z.boolean().describe("True if it can be built"),
  ...report.partial({ instructions: true, files: true }).shape,
});

export const check: Tool<typeof input, typeof output> = {
  name: "check",
  title: "Check a Dockerfile",
  description:
    "Look for mistakes in a Dockerfile; the rules have the names of Docker's build checks. It uses no service and changes nothing.",
  input,
  output,
  annotations: { ...readOnly, idempotentHint: true },
  async perform({ details, ...given }, call) {
    const words = buildWords(given);
    call.root.requireBuildFiles(invocationFor(words, call));
    const found = await callForJson(["build"], { ...words, flags: [...words.flags, "check"] }, call);
    const { instructions, files, warnings, errors } = report.parse(found);
    const more = details === true ? { instructions, files } : {};
    const told = (findings: typeof warnings) =>
      findings.map((each) => ({ ...each, message: warningForAgent(each.message) }));
    return { ok: errors.length === 0, warnings: told(warnings), errors: told(errors), ...more };
  },
};
