import { mainProcessSpid } from "../../service/wire/operation.ts";
import { queryText, readBody, refuseUnknownFields } from "../http/fields.ts";
import { jsonResponse, RequestError, unbuffered } from "../http/responses.ts";
import { execFields, readExecSpec, readInput, readSignal } from "../processes/exec-spec.ts";
import { foldResult } from "../processes/folded-result.ts";
import type { InstanceProcesses } from "../processes/instance-processes.ts";
import { attachTerminal, requireProcesses, requireTerminal } from "../processes/require-processes.ts";
import type { Operation } from "../records/operations.ts";
import { requireOperation } from "../recovery.ts";
import type { Route, RoutedRequest } from "../router.ts";
import { readSize } from "../terminal/terminal-spec.ts";

/** Routes for further processes in a running instance. */
export const subprocessRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/operations/:uuid/subprocesses",
    async respond(call) {
      const processes = requireProcesses(call.state, await requireInstance(call));
      const body = await readBody(call.request);
      refuseUnknownFields(body, execFields);
      const spid = await processes.create(readExecSpec(body));
      const { pathname } = call.url;
      return jsonResponse({ spid }, 201, { Location: `${pathname}/${spid}` });
    },
  },
  {
    method: "GET",
    path: "/v1/operations/:uuid/subprocesses/:spid",
    async respond(call) {
      const { state } = call;
      const operation = await requireInstance(call);
      const spid = readSpid(call);
      if (!state.events.exists(operation.uuid) && operation.finishedAt !== null)
        throw new RequestError(410, `the events of operation ${operation.uuid} are not kept any more`);
      const events = state.events.readAll(operation.uuid, state.closing);
      const result = await foldResult(events, spid);
      if (result !== undefined) return jsonResponse(result);
      if (spid !== mainProcessSpid) throw unknownProcess(call);
      return jsonResponse({ state: { exit_code: -1, signal: -1, timed_out: false } });
    },
  },
  {
    method: "DELETE",
    path: "/v1/operations/:uuid/subprocesses/:spid",
    async respond(call) {
      const { processes, spid } = await requireProcess(call);
      await processes.signal(spid, readSignal(queryText(call.url, "signal")));
      return jsonResponse({ spid }, 202);
    },
  },
  {
    method: "POST",
    path: "/v1/operations/:uuid/subprocesses/:spid/stdin",
    async respond(call) {
      const { processes, spid } = await requireProcess(call);
      await processes.write(spid, readInput(await readBody(call.request), "", false));
      return jsonResponse({ spid }, 202);
    },
  },
];

async function requireProcess(call: RoutedRequest): Promise<{ processes: InstanceProcesses; spid: number }> {
  const processes = requireProcesses(call.state, await requireInstance(call));
  const spid = readSpid(call);
  if (!processes.has(spid)) throw unknownProcess(call);
  return { processes, spid };
}

async function requireInstance(call: RoutedRequest): Promise<Operation> {
  const operation = await requestedOperation(call);
  if (operation.kind === "instance") return operation;
  throw new RequestError(409, `operation ${operation.uuid} is an import, and runs no command`);
}

function readSpid({ parameters }: RoutedRequest): number {
  const spid = parameters.spid ?? "";
  return /^\d{1,9}$/.test(spid) ? Number(spid) : 0;
}

function unknownProcess({ parameters }: RoutedRequest): RequestError {
  return new RequestError(404, `operation ${parameters.uuid} has no process ${parameters.spid}`);
}

/** Routes of the extension `terminals`: the terminal of an instance's command. Input goes to the command's standard input. */
export const terminalRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/operations/:uuid/terminal",
    async respond(call) {
      const body = await attachTerminal(call.state, await requestedOperation(call));
      return new Response(body, {
        headers: { "Content-Type": "application/octet-stream", "Cache-Control": "no-store", ...unbuffered },
      });
    },
  },
  {
    method: "POST",
    path: "/v1/operations/:uuid/terminal",
    async respond(call) {
      const { processes } = requireTerminal(call.state, await requestedOperation(call));
      await processes.resize(readSize(await readBody(call.request)));
      return new Response(null, { status: 204 });
    },
  },
];

function requestedOperation({ state, parameters }: RoutedRequest): Promise<Operation> {
  return requireOperation(state, parameters.uuid ?? "");
}
