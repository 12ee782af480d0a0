import { command } from "../command-line/command.ts";
import { manual } from "./agent-manual.ts";

export const agent = command({
  name: "agent",
  description: "Print the manual for coding agents.",
  run: ({ runtime }) => runtime.stdout.write(manual),
  examples: [
    ["agent", "read this first"],
    ["agent | less", "page by page"],
  ],
  agentNote: "Read it once: every command line in it is run by a test of this version.",
});
