import { type ArgsDef, defineCommand } from "citty";
import { BoughError } from "../../errors.ts";
import { visible } from "../../visible.ts";
import type { ArgumentDefinitions } from "../command-line/arguments.ts";
import type { Command, Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { requireOperation } from "./operation-argument.ts";

const definitions: ArgumentDefinitions = {
  op: {
    type: "positional",
    completes: "operation",
    required: true,
    multiple: true,
    description: "Operations' ids, or the first digits of them",
  },
};

export const kill: Command = {
  definition: defineCommand<ArgsDef>({
    meta: {
      name: "kill",
      description: "Cancel operations, and wait until the service says that they have ended.",
    },
    args: definitions,
    run: ({ data }) => killOperations(data),
  }),
  examples: [
    ["kill 5a2c3d38", "one"],
    ["kill $(bough ps -q)", "all that are under way"],
  ],
  agentNote:
    "This command is mutating: a cancelled command leaves no image. One that has ended already is an error.",
};

async function killOperations(invocation: Invocation): Promise<void> {
  const { values, runtime, globals, log } = invocation;
  const { service, close } = await connect(runtime, globals, log);
  try {
    const operations = [];
    for (const given of values.positionals) operations.push(await requireOperation(service, given));
    const killed: string[] = [];
    const problems: string[] = [];
    for (const { uuid, hasEnded, status } of operations) {
      if (hasEnded) problems.push(`operation ${uuid} has already ended (${status})`);
      else if (await service.cancel(uuid)) killed.push(uuid);
      else problems.push(`the service has not confirmed the end of operation ${uuid}: it may still run`);
    }
    printResult(invocation, {
      id: killed,
      json: killed.map((uuid) => ({ operation: uuid, status: "CANCELLED" })),
      table: () => killed.map((uuid) => `${visible(uuid)}\n`).join(""),
    });
    if (problems.length > 0) throw new BoughError(problems.join("\n"));
  } finally {
    await close();
  }
}
