import { type McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { BoughError } from "../../errors.ts";
import { failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { manual } from "../about/agent-manual.ts";
import { openLocalStore } from "../service/connection.ts";
import { type Call, callForJson } from "./call.ts";
import { failureForAgent } from "./hints.ts";
import type { Host } from "./tool.ts";

/** Adds what an agent can read: the manual, and the sessions' histories. */
export function addResources(server: McpServer, host: Host): void {
  const address = "bough://manual";
  server.registerResource(
    "manual",
    address,
    {
      title: "Manual of the command line",
      description: "What `bough agent` prints",
      mimeType: "text/markdown",
    },
    () => ({ contents: [{ uri: address, mimeType: "text/markdown", text: manual }] }),
  );
  const template = new ResourceTemplate("bough://sessions/{key}", {
    list: () => ({
      resources: sessionKeys(host).map((key) => ({
        uri: `bough://sessions/${encodeURIComponent(key)}`,
        name: `session ${key}`,
        mimeType: "application/json",
      })),
    }),
    complete: { key: (begun) => sessionKeys(host).filter((key) => key.startsWith(begun)) },
  });
  server.registerResource(
    "session",
    template,
    {
      title: "A session's history",
      description: "Every image of a session, what made it, and the branches that are at it",
      mimeType: "application/json",
    },
    async (uri, { key = "" }) => {
      const { invocation, root } = host;
      const call: Call = { invocation, root, signal: invocation.runtime.signal, warnings: [], report() {} };
      const words = { positionals: [decodeURIComponent(String(key))] };
      const history = await callForJson(["session", "show"], words, call).catch(tellWhatToDo);
      return {
        contents: [{ uri: uri.href, mimeType: "application/json", text: jsonText(history, { indent: 2 }) }],
      };
    },
  );
}

function sessionKeys({ invocation: { runtime, globals } }: Host): string[] {
  using store = openLocalStore(runtime, globals);
  return store.sessions.list("").map(({ key }) => key);
}

/** Rethrows with the hint in the message: an error of a resource is only its message. */
function tellWhatToDo(error: unknown): never {
  const failure = failureOf(error);
  throw new BoughError(failureForAgent(failure), { kind: failure.kind, cause: error });
}
