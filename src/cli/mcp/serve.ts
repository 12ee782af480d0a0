import { McpServer, ResourceTemplate } from "@modelcontextprotocol/sdk/server/mcp.js";
import { BoughError, usageError } from "../../errors.ts";
import { failureOf } from "../../terminal/failure.ts";
import { jsonText } from "../../terminal/json-text.ts";
import { version } from "../../version.ts";
import { manual } from "../about/agent-manual.ts";
import type { Invocation } from "../command-line/command.ts";
import { chooseServiceFor } from "../service/choice.ts";
import { openLocalStore } from "../service/connection.ts";
import { showSession } from "../sessions/show.ts";
import { failureForAgent } from "./agent-wording.ts";
import { openRoot } from "./root.ts";
import { createStdioTransport } from "./stdio-transport.ts";
import { addTool, type ServerState } from "./tool.ts";
import { surroundingsFor, type ToolCall } from "./tool-call.ts";
import { build } from "./tools/build.ts";
import { check, explain } from "./tools/explain.ts";
import { images, listFiles, readFile } from "./tools/images.ts";
import { logs, operations } from "./tools/operations.ts";
import { run } from "./tools/run.ts";
import { rollback, sessions } from "./tools/sessions.ts";
import { writeFiles } from "./tools/write-files.ts";

const instructions = `bough builds images from Dockerfiles and runs commands in them, in sandboxes.
- \`build\` with docker: true builds what \`docker build\` would; without it every stage is built, COPY --from, CMD, ENTRYPOINT and similar instructions are skipped with a warning, and COPY leaves out .git, node_modules, dist, build and similar files.
- \`run\` throws the changes of the command away unless keep is true; then its result is the session's image, and \`rollback\` takes it back. Give every task a session of its own.
- An exit code other than 0 is not an error of \`run\`: look at exitCode. A failed build is an error, with the step's output; \`run\` with failed_step: true runs in that step's place.
- The resource bough://manual is the manual of the command line, which does more than these tools.`;

/** Serves until standard input ends, then cancels running calls. */
export async function serveAgent(invocation: Invocation): Promise<void> {
  const { runtime, log } = invocation;
  if (runtime.stdin.isTerminal) {
    throw usageError(
      "`bough mcp` is for an agent's client, which writes to its standard input",
      'Configure the client to start it: {"command": "bough", "args": ["mcp"]}.',
    );
  }
  const root = openRoot(invocation.values.text("root") ?? ".", runtime.workingDirectory);
  const globals = { ...invocation.globals, format: "json", quiet: false } as const;
  const confined = { ...runtime, isSecretVariable: secretVariables(invocation) };
  const host: ServerState = {
    invocation: { ...invocation, globals, runtime: confined },
    root,
    running: new Set(),
  };
  const server = new McpServer({ name: "bough", version }, { instructions });
  // A statement each, since every tool has its own types.
  addTool(server, host, build);
  addTool(server, host, check);
  addTool(server, host, explain);
  addTool(server, host, run);
  addTool(server, host, readFile);
  addTool(server, host, listFiles);
  addTool(server, host, writeFiles);
  addTool(server, host, images);
  addTool(server, host, sessions);
  addTool(server, host, rollback);
  addTool(server, host, operations);
  addTool(server, host, logs);
  addResources(server, host);
  const transport = createStdioTransport(runtime, redactionFor(invocation));
  // The message of a ZodError is JSON of many lines.
  server.server.onerror = ({ name, message }) =>
    log.warn(
      `ignored an invalid message: ${name === "ZodError" ? "it is not JSON-RPC 2.0" : message.split("\n", 1)[0]}`,
    );
  await server.connect(transport);
  try {
    await transport.ended;
  } finally {
    // Cancels the calls under way.
    await server.close();
    await Promise.allSettled(host.running);
  }
}

const tokenVariables = ["CONTREE_TOKEN", "NEBIUS_API_KEY"];

/**
 * Returns a predicate for the variables that builds may use as secrets: those of `--secret-env`, since the environment belongs to the
 * server and not to the agent. The service's token is never one of them, under any name.
 */
function secretVariables({ values, runtime, globals }: Invocation): (name: string) => boolean {
  const allowed = new Set(values.list("secret-env"));
  const token = tokenVariables.find((name) => allowed.has(name));
  if (token !== undefined)
    throw usageError(
      `--secret-env ${token}: the service's token is not for builds`,
      "Put a token for builds into another variable.",
    );
  return (name) => allowed.has(name) && !tokens(runtime, globals).includes(runtime.environment[name] ?? "");
}

/** The minimum length of a token that is redacted. A shorter text could occur anywhere, and is not a token. */
const minTokenLength = 8;

/** Returns a function that removes the service's tokens from every message. */
function redactionFor({ runtime, globals }: Invocation): (text: string) => string {
  return (text) => {
    const known = tokens(runtime, globals).filter((token) => token.length >= minTokenLength);
    const written = known.map((token) => JSON.stringify(token).slice(1, -1));
    return written.reduce((redacted, token) => redacted.replaceAll(token, "***"), text);
  };
}

function tokens(runtime: Invocation["runtime"], globals: Invocation["globals"]): string[] {
  const given = [globals.token?.text(), ...tokenVariables.map((name) => runtime.environment[name])];
  try {
    const choice = chooseServiceFor(runtime, globals);
    if (choice.kind === "remote") given.push(choice.token?.text());
  } catch {
    // Profiles that can't be read have no token to leak.
  }
  return given.flatMap((token) => token || []);
}

/** Adds the resources that an agent can read: the manual, and the sessions' histories. */
function addResources(server: McpServer, host: ServerState): void {
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
    (uri, { key = "" }) => {
      const { invocation, root } = host;
      const call: ToolCall = {
        invocation,
        root,
        signal: invocation.runtime.signal,
        warnings: [],
        report() {},
      };
      const history = historyOf(decodeURIComponent(String(key)), call);
      return {
        contents: [{ uri: uri.href, mimeType: "application/json", text: jsonText(history, { indent: 2 }) }],
      };
    },
  );
}

function sessionKeys({ invocation: { runtime, globals } }: ServerState): string[] {
  using store = openLocalStore(runtime, globals);
  return store.sessions.list("").map(({ key }) => key);
}

function historyOf(session: string, call: ToolCall): unknown {
  try {
    return showSession(session, surroundingsFor(call)).json;
  } catch (error) {
    const failure = failureOf(error);
    // An error of a resource is only its message, so the hint is a part of it.
    throw new BoughError(failureForAgent(failure), { kind: failure.kind, cause: error });
  }
}
