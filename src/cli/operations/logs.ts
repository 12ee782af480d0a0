import { command, type Invocation } from "../command-line/command.ts";
import { createOutputRelay } from "../run/output-relay.ts";
import { connectQuietly } from "../service/connection.ts";
import { sessionKey } from "../sessions/session-key.ts";
import { operationArgument, requireOperation } from "./operation-argument.ts";

export const logs = command({
  name: "logs",
  description: "Print an operation's output, byte for byte: stdout to stdout, stderr to stderr.",
  args: {
    op: operationArgument,
    follow: { type: "boolean", alias: "f", description: "Go on until the operation has ended" },
  },
  run: printLogs,
  examples: [
    ["logs 5a2c3d38", "what there is so far"],
    ["logs --follow 5a2c3d38", "and what is still to come; Ctrl-C leaves the operation alone"],
  ],
  agentNote: "Its own exit code is 0, whatever the command's was: `bough show OP` has that.",
});

async function printLogs(invocation: Invocation): Promise<void> {
  const { values, runtime, log } = invocation;
  await using connection = await connectQuietly(invocation);
  const { service } = connection;
  const given = values.positionals[0] ?? "";
  const { uuid, hasEnded } = await requireOperation(connection, given, sessionKey(invocation));
  const relay = createOutputRelay(runtime, service, log);
  // An operation that has ended has all its events: this returns at once.
  if (values.flag("follow") || hasEnded) await relay.finish(await service.follow(uuid, undefined, relay));
  else await service.readEventsSoFar(uuid, relay);
}
