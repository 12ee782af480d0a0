import { type ArgsDef, defineCommand } from "citty";
import type { Command, Invocation } from "../command-line/command.ts";
import { manual } from "./agent-manual.ts";

export const agent: Command = {
  definition: defineCommand<ArgsDef>({
    meta: { name: "agent", description: "Print the manual for coding agents." },
    args: {},
    run: ({ data }: { data?: Invocation }) => data?.runtime.stdout.write(manual),
  }),
  examples: [
    ["agent", "read this first"],
    ["agent | less", "page by page"],
  ],
  agentNote: "Read it once: every command line in it is run by a test of this version.",
};
