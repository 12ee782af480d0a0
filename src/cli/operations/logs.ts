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
    follow: { type: "boolean", alias: "f", description: "Follow the output until the operation has ended" },
  },
  run: printLogs,
  examples: [
    ["logs 5a2c3d38", "the output so far"],
    ["logs --follow 5a2c3d38", "also the output that follows; Ctrl-C does not cancel the operation"],
  ],
  agentNote: "The exit code of `logs` is 0; `bough show OP` has that of the command.",
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
