import { z } from "zod";
import { describeReport } from "../../../check/report.ts";
import { type Finding, lineOf } from "../../../check/rules.ts";
import { BoughError, withHint } from "../../../errors.ts";
import { renderExplanation, renderShared } from "../../../terminal/explanation.ts";
import { checkBuild } from "../../builds/check.ts";
import { runBuildCommand } from "../../builds/run-build.ts";
import { messageForAgent } from "../agent-wording.ts";
import { additive, readOnly, serializeByContext, type Tool } from "../tool.ts";
import { surroundingsFor } from "../tool-call.ts";
import { createBuildReport } from "./build.ts";
import { buildInputs, buildRequest, toolInput } from "./fields.ts";

const explainInput = toolInput(buildInputs);

const explainOutput = z.object({
  allCached: z.boolean(),
  cached: z.array(z.string()).describe("Steps whose layers are cached"),
  first: z
    .object({ line: z.number(), instruction: z.string(), reason: z.string() })
    .nullable()
    .describe("The first step that a build would run, and why; all later steps of its stage run as well"),
});

export const explain: Tool<typeof explainInput, typeof explainOutput> = {
  name: "explain",
  title: "Explain what a build would run",
  description:
    "Say which steps of a build are cached, and what has changed for the first one that is not: a file, an ARG, the instruction's text, the base image. No RUN is executed and no layer is made; a missing base image is imported, and files of the context may be uploaded.",
  input: explainInput,
  output: explainOutput,
  annotations: additive,
  async perform(given, call) {
    const request = buildRequest(given);
    const stop = new AbortController();
    // One step at a time, so that no other step starts while one is explained.
    const options = { ...request.options, explain: true, jobs: 1 };
    const signal = AbortSignal.any([call.signal, stop.signal]);
    const invocation = { ...surroundingsFor({ ...call, signal }), ...request, options };
    call.root.requireBuildFiles(invocation);
    const report = createBuildReport(call);
    const cached: string[] = [];
    let first: z.infer<typeof explainOutput>["first"] = null;
    const progress: typeof report.progress = {
      ...report.progress,
      emit(event) {
        report.progress.emit(event);
        if (event.type === "cached") cached.push(event.title);
        if (event.type !== "explained" || first !== null) return;
        const { line, title: instruction, explanation, shared } = event;
        const elsewhere = shared === undefined ? "" : `; ${renderShared(shared)}`;
        first = { line, instruction, reason: `${renderExplanation(explanation)}${elsewhere}` };
        stop.abort(new BoughError("explained", { kind: "interrupted" }));
      },
    };
    return serializeByContext(given.context, call, async () => {
      try {
        await report.finish(runBuildCommand(invocation, async () => progress));
      } catch (error) {
        if (first === null) throw error;
      }
      return { allCached: first === null, cached, first };
    });
  },
};

const checkInput = toolInput({
  ...buildInputs,
  details: z
    .boolean()
    .optional()
    .describe("Include the parsed instructions, and the files that COPY and ADD would copy"),
});

const finding = z.object({ rule: z.string(), message: z.string(), line: z.number().nullable() });
const checkOutput = z.object({
  ok: z.boolean().describe("True if it can be built"),
  warnings: z.array(finding),
  errors: z.array(finding),
  instructions: z.array(z.looseObject({ line: z.number(), name: z.string() })).optional(),
  files: z.array(z.looseObject({ line: z.number(), source: z.string() })).optional(),
});

export const check: Tool<typeof checkInput, typeof checkOutput> = {
  name: "check",
  title: "Check a Dockerfile",
  description:
    "Look for mistakes in a Dockerfile; the rules have the names of Docker's build checks. It uses no service and changes nothing.",
  input: checkInput,
  output: checkOutput,
  annotations: { ...readOnly, idempotentHint: true },
  async perform({ details, ...given }, call) {
    const request = buildRequest(given);
    const options = { ...request.options, check: true };
    const invocation = { ...surroundingsFor(call), ...request, options };
    call.root.requireBuildFiles(invocation);
    const { report: found } = await checkBuild(invocation);
    const { instructions, files } = describeReport(found);
    const describe = (findings: readonly Finding[]) =>
      findings.map((each) => ({
        rule: each.rule,
        message: messageForAgent(withHint(each)),
        line: lineOf(each) ?? null,
      }));
    return {
      ok: found.errors.length === 0,
      ...{ warnings: describe(found.warnings), errors: describe(found.errors) },
      ...(details === true ? { instructions, files } : {}),
    };
  },
};
