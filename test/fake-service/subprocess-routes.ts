/** Other processes of a running instance. The script sets the outcome of each as for an instance's command. */
import { constants } from "node:os";
import { asRecord, asText } from "../../src/service/http/json.ts";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { isTerminal, type OperationEvent } from "../../src/service/wire/operation.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import { readJson } from "./recording.ts";
import { findUnknownField } from "./request-fields.ts";
import { emitExit, emitOutput, emitSpawn, encode } from "./run.ts";
import type { FakeOperation, FakeProcess } from "./state.ts";

export async function createProcess(call: RouteCall): Promise<Response> {
  const operation = call.state.operations.get(call.parameter);
  const fault = faultOf(operation, call.parameter);
  if (operation === undefined || fault !== undefined) return fault ?? noProcess(call);
  const body = asRecord(await readJson(call.request, call.recorded));
  if (asText(body?.command) === undefined) return answerWith.error(400, "command is required");
  const unknown = findUnknownField(body, "ExecSpec");
  if (unknown !== undefined) return answerWith.error(400, `${unknown} is not a known field`);
  const request = body as Partial<InstanceBody>;
  const stdin = asRecord(body?.stdin);
  const process: FakeProcess = {
    outcome: call.state.run(request as InstanceBody, call.state.instances.length) ?? {},
    input: asText(stdin?.value) ?? "",
    isInputOpen: stdin?.close === false,
    hasEnded: false,
  };
  const spid = operation.processes.size + 2;
  operation.processes.set(spid, process);
  emitSpawn(operation, spid, request);
  const { outcome } = process;
  if (outcome.catsInput !== true)
    for (const stream of ["stdout", "stderr"] as const)
      if (outcome[stream] !== undefined) emitOutput(operation, { stream, data: outcome[stream] }, spid);
  if (outcome.until === undefined) endIfRead(operation, spid, process);
  return Response.json({ spid }, { status: 201 });
}

export function getProcess(call: RouteCall): Response {
  const operation = call.state.operations.get(call.parameter);
  const events = (operation?.events ?? []).filter(({ spid }) => spid === Number(call.further));
  if (operation === undefined || events.length === 0) return noProcess(call);
  const exit = events.find(({ type }) => type === "exit")?.data;
  const { code = -1, signal = -1, timed_out = false, pid = 41 + Number(call.further) } = exit ?? {};
  return Response.json({
    state: { exit_code: code, signal, timed_out, pid },
    stdout: outputOf(events, "stdout"),
    stderr: outputOf(events, "stderr"),
  });
}

export function killProcess(call: RouteCall): Response {
  const found = findRunning(call);
  if (found instanceof Response) return found;
  const name = call.recorded.query.signal ?? "KILL";
  const signals: Readonly<Record<string, number>> = constants.signals;
  const signal = /^\d+$/.test(name) ? Number(name) : signals[`SIG${name.replace(/^SIG/, "")}`];
  if (signal === undefined) return answerWith.error(400, `unknown signal ${name}`);
  found.process.hasEnded = true;
  emitExit(found.operation, Number(call.further), { code: -1, signal });
  return new Response(null, { status: 202 });
}

export async function writeToProcess(call: RouteCall): Promise<Response> {
  const found = findRunning(call);
  if (found instanceof Response) return found;
  const body = asRecord(await readJson(call.request, call.recorded));
  if (asText(body?.value) === undefined) return answerWith.error(400, "value is required");
  const { operation, process } = found;
  if (!process.isInputOpen) return answerWith.error(409, "the standard input is closed");
  process.input += asText(body?.value) ?? "";
  process.isInputOpen = body?.close !== true;
  endIfRead(operation, Number(call.further), process);
  return new Response(null, { status: 202 });
}

function endIfRead(operation: FakeOperation, spid: number, process: FakeProcess): void {
  const { outcome, input } = process;
  if (outcome.catsInput === true && process.isInputOpen) return;
  if (outcome.catsInput === true) emitOutput(operation, { stream: "stdout", data: input }, spid);
  process.hasEnded = true;
  emitExit(operation, spid, { code: outcome.exitCode ?? 0, signal: -1 });
}

function findRunning(call: RouteCall): { operation: FakeOperation; process: FakeProcess } | Response {
  const operation = call.state.operations.get(call.parameter);
  const fault = faultOf(operation, call.parameter);
  if (operation === undefined || fault !== undefined) return fault ?? noProcess(call);
  const process = operation.processes.get(Number(call.further));
  if (process === undefined) return noProcess(call);
  return process.hasEnded
    ? answerWith.error(409, `process ${call.further} has ended`)
    : { operation, process };
}

function faultOf(operation: FakeOperation | undefined, id: string): Response | undefined {
  if (operation === undefined) return answerWith.error(404, `no operation ${id}`);
  return isTerminal(operation.record.status) ? answerWith.error(409, "the operation has ended") : undefined;
}

function noProcess({ parameter, further }: RouteCall): Response {
  return answerWith.error(404, `operation ${parameter} has no process ${further}`);
}

function outputOf(events: readonly OperationEvent[], stream: "stdout" | "stderr") {
  const chunks = events
    .filter(({ type }) => type === stream)
    .map(({ data }) => {
      return Buffer.from(String(data.value), data.encoding === "base64" ? "base64" : "utf8");
    });
  return { ...encode(Buffer.concat(chunks)), truncated: false };
}
