import { command } from "../command-line/command.ts";

export const mcp = command({
  name: "mcp",
  description:
    "Serve bough's tools to a coding agent, over the Model Context Protocol on standard input and output.",
  args: {
    root: {
      type: "string",
      valueHint: "DIR",
      description:
        "The directory that contexts, Dockerfiles, secrets and other files of this machine must be in, links followed (default: the current one); / for all files",
    },
    "secret-env": {
      type: "string",
      refusesEmpty: true,
      multiple: true,
      valueHint: "NAME",
      description:
        "A variable of this environment that tools may give to a build, as a secret (default: none)",
    },
  },
  needs: "service",
  run: async (invocation) => (await import("./serve.ts")).serveAgent(invocation),
  examples: [
    ["mcp", "what an agent's client is configured to start"],
    ["mcp --local", "on the embedded engine, even if a service is configured"],
    ["mcp --root ..", "tools may read files of the parent directory, too"],
    ["mcp --secret-env NPM_TOKEN", "builds may have that variable as a secret: id=npm,env=NPM_TOKEN"],
    ["-S task mcp", "tools work in the session `task` unless a call names another one"],
  ],
  agentNote: [
    'A client starts it: {"command": "bough", "args": ["mcp"]}. Paths are relative to the directory in which it is started, and lead nowhere else unless --root DIR allows it.',
    "It ends when its standard input is closed, and cancels what is running.",
  ].join("\n"),
});
