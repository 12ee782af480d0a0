import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import type { OperationDetails } from "../../service/operations/operation-records.ts";
import { durationCell } from "../../terminal/table.ts";
import { visible } from "../../visible.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { timeoutOption } from "../command-line/definitions.ts";
import { positiveInteger } from "../command-line/option-values.ts";
import { printResult } from "../command-line/result.ts";
import {
  operationsArgument,
  readOperations,
  statusOf,
  withoutSecrets,
} from "../references/operation-argument.ts";
import { processExitCode } from "../run/instance.ts";
import { connect, connectQuietly } from "../service/connection.ts";

export const wait = command({
  name: "wait",
  description:
    "Wait until operations have ended, and say how. The exit code is that of the first command that failed, 1 for another failure, else 0.",
  args: {
    op: operationsArgument,
    all: { type: "boolean", alias: "a", description: "Wait for all that are under way" },
    timeout: timeoutOption(
      "Maximum seconds to wait (default: until they end); exit code 1 if one has not ended",
    ),
  },
  needs: "service",
  run: waitForOperations,
  examples: [
    ["wait 5a2c3d38 8f0e1b77", "two that `run -d` has started"],
    ["wait --all --timeout 300", "all that are under way, five minutes at most"],
  ],
  agentNote:
    "It changes nothing: Ctrl-C and the timeout do not cancel operations, and no session's image moves.",
});

async function waitForOperations(invocation: Invocation): Promise<number> {
  const { values, runtime } = invocation;
  const seconds = positiveInteger(values.text("timeout"), "--timeout", "It takes seconds.");
  const stopped = new AbortController();
  const signal = AbortSignal.any([runtime.signal, stopped.signal]);
  await using connection = await connectQuietly({ ...invocation, runtime: { ...runtime, signal } });
  const { service } = connection;
  try {
    const operations = await readOperations(invocation, connection);
    const timeout =
      seconds === undefined ? undefined : runtime.clock.sleep(seconds * 1000, signal).catch(() => {});
    await Promise.all(operations.map((operation) => waitFor(operation, service, timeout)));
    const ended = [];
    for (const { uuid } of operations) ended.push(withoutSecrets(await service.getOperation(uuid)));
    printEnds(invocation, ended);
    return ended.map(exitCodeOf).find((code) => code !== 0) ?? 0;
  } finally {
    stopped.abort(new BoughError("the wait is over", { kind: "interrupted" }));
  }
}

async function waitFor(
  { uuid, hasEnded }: OperationDetails,
  service: Service,
  timeout: Promise<void> | undefined,
): Promise<void> {
  if (hasEnded) return;
  const end = service.follow(uuid).then(() => {});
  if (timeout === undefined) return await end;
  // After the timeout, nothing awaits the promise: this prevents an unhandled rejection.
  end.catch(() => {});
  await Promise.race([end, timeout]);
}

function printEnds(invocation: Invocation, operations: readonly OperationDetails[]): void {
  printResult(invocation, {
    id: operations.map(({ uuid }) => uuid),
    json: operations,
    table: () => ({
      header: ["OPERATION", "STATUS", "DURATION", "RESULT IMAGE", "COMMAND"],
      rows: operations.map((operation) => [
        { id: operation.uuid },
        statusOf(operation),
        durationCell(operation.durationSeconds),
        operation.resultImage === null ? null : { id: operation.resultImage },
        operation.command,
      ]),
    }),
  });
}

function exitCodeOf({ status, exitCode, timedOut }: OperationDetails): number {
  return status !== "SUCCESS" || timedOut ? 1 : processExitCode(exitCode ?? 0);
}

export const kill = command({
  name: "kill",
  description: "Cancel operations, and wait until the service says that they have ended.",
  args: {
    op: operationsArgument,
    all: { type: "boolean", alias: "a", description: "Cancel all operations that are under way" },
  },
  needs: "service",
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
