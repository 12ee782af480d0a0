import { RequestError, unbuffered } from "../http/answers.ts";
import { readBody } from "../http/fields.ts";
import { requireOperation } from "../recovery.ts";
import type { Call, Route } from "../router.ts";
import { readSize } from "../terminal/terminal-spec.ts";
import { requireProcesses } from "./subprocesses.ts";

/** Routes of the extension `terminals`: the terminal of an instance's command. Input goes to the command's standard input. */
export const terminalRoutes: readonly Route[] = [
  {
    /** Streams the terminal's output to one client. The instance is cancelled when that client disconnects. */
    method: "GET",
    path: "/v1/operations/:uuid/terminal",
    async answer(call) {
      const { uuid, processes } = await requireTerminal(call);
      await processes.requireStarted();
      const body = processes.terminal?.output.attach(() => call.state.running.get(uuid)?.cancel());
      return new Response(body, {
        headers: { "Content-Type": "application/octet-stream", "Cache-Control": "no-store", ...unbuffered },
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
