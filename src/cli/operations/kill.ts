import { BoughError } from "../../errors.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { printResult } from "../command-line/result.ts";
import { connect } from "../service/connection.ts";
import { operationsArgument, readOperations } from "./operation-argument.ts";
import { statusOf } from "./operation-words.ts";

export const kill = command({
  name: "kill",
  description: "Cancel operations, and wait until the service says that they have ended.",
  args: {
    op: operationsArgument,
    all: { type: "boolean", alias: "a", description: "Cancel all operations that are under way" },
  },
  run: killOperations,
  examples: [
    ["kill 5a2c3d38", "one"],
    ["kill --all", "all that are under way, also those of other users of the service"],
  ],
  agentNote:
    "This command is mutating: a cancelled command leaves no image. An operation that has already ended is an error.",
});

async function killOperations(invocation: Invocation): Promise<void> {
  const { values } = invocation;
  await using connection = await connect(invocation);
  const { service } = connection;
  const operations = await readOperations(invocation, connection);
  const killed: string[] = [];
  const problems: string[] = [];
  for (const operation of operations) {
    const { uuid, hasEnded } = operation;
    // With `--all`, an operation may have ended since it was listed.
    if (hasEnded && values.flag("all")) continue;
    if (hasEnded) problems.push(`operation ${uuid} has already ended (${statusOf(operation)})`);
    else if (await service.cancel(uuid)) killed.push(uuid);
    else problems.push(`the end of operation ${uuid} is not confirmed: it may still run`);
  }
  printResult(invocation, {
    id: killed,
    json: killed.map((uuid) => ({ operation: uuid, status: "CANCELLED" })),
    table: () => killed.map((uuid) => `${visible(uuid)}\n`).join(""),
  });
  if (problems.length > 0) throw new BoughError(problems.join("\n"));
}
