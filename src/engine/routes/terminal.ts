import { RequestError } from "../http/answers.ts";
import { readBody } from "../http/fields.ts";
import type { Call, Route } from "../http/router.ts";
import { requireOperation } from "../recovery.ts";
import { readSize } from "../terminal/terminal-spec.ts";
import { requireProcesses } from "./subprocesses.ts";

/** Extension `terminals`: that of an instance's command. What is typed goes to the command's standard input. */
export const terminalRoutes: readonly Route[] = [
  {
    /** All that is written to it, as it comes, to one client; the instance ends where that one goes. */
    method: "GET",
    path: "/v1/operations/:uuid/terminal",
    async answer(call) {
      const { uuid, processes } = await requireTerminal(call);
      await processes.requireStarted();
      const body = processes.terminal?.output.attach(() => call.state.running.get(uuid)?.cancel());
      return new Response(body, {
        headers: { "Content-Type": "application/octet-stream", "Cache-Control": "no-store" },
      });
    },
  },
  {
    method: "POST",
    path: "/v1/operations/:uuid/terminal",
    async answer(call) {
      const { processes } = await requireTerminal(call);
      await processes.resize(readSize(await readBody(call.request)));
      return new Response(null, { status: 204 });
    },
  },
];

async function requireTerminal(call: Call) {
  const operation = await requireOperation(call.state, call.parameters.uuid ?? "");
  const processes = requireProcesses(call, operation);
  if (processes.terminal !== undefined) return { uuid: operation.uuid, processes };
  throw new RequestError(409, `operation ${operation.uuid} has no terminal`);
}
