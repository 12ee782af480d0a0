import { maskSecrets } from "../../dockerfile/secrets.ts";
import { BoughError, usageError } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { Service } from "../../service/client.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import { isUuid, startsAlike } from "../../service/images/reference.ts";
import type {
  OperationDetails,
  OperationFilter,
  OperationSummary,
} from "../../service/operations/operation-records.ts";
import { activeStatuses, type OperationStatus } from "../../service/wire/operation.ts";
import type { Store } from "../../store/store.ts";
import type { Invocation } from "../command-line/command.ts";
import type { ArgumentDefinition } from "../command-line/definitions.ts";
import type { Connection } from "../service/connection.ts";
import { parseHistoryReference, requireHistoryEntry, sessionKey } from "./session-argument.ts";

/** The argument of a command that takes one operation. */
export const operationArgument: ArgumentDefinition = {
  type: "positional",
  completes: "operation",
  required: true,
  description: "An operation's id or its first digits; @N or HEAD~N is one of the session's history",
};

/** The argument of a command that takes several operations, or `--all`. */
export const operationsArgument: ArgumentDefinition = {
  ...operationArgument,
  completes: "running-operation",
  required: false,
  multiple: true,
};

/** Returns the operations named as arguments, or with `--all` those that are under way. */
export async function readOperations(
  invocation: Invocation,
  connection: Connection,
): Promise<OperationDetails[]> {
  const { positionals, flag } = invocation.values;
  const hint = wording`${{ command: "ps" }} lists what is under way.`;
  if (flag("all") && positionals.length > 0)
    throw usageError("--all cannot be used with the ids of operations", hint);
  if (!flag("all") && positionals.length === 0)
    throw usageError("no operation given: give ids, or --all", hint);
  const given = flag("all") ? (await findActive(connection.service)).map(({ uuid }) => uuid) : positionals;
  const operations: OperationDetails[] = [];
  for (const each of given) operations.push(await requireOperation(connection, each, sessionKey(invocation)));
  return operations;
}

/** The maximum number of operations among which an id is looked up by its first digits. */
const maxOperations = 1000;

/** Finds the operation that a user names by its id, its first digits, or its position in the history of the session `key`. */
export async function requireOperation(
  { service, store }: Connection,
  given: string,
  key: string,
): Promise<OperationDetails> {
  const uuid =
    findInHistory(store, given, key) ?? (isUuid(given) ? given : await findByPrefix(service, given));
  try {
    return await readOperation(service, uuid);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new BoughError(`there is no operation ${given}`, {
      hint: wording`${{ command: "ps", options: [{ option: "all" }] }} lists them.`,
      cause: error,
    });
  }
}

/** Reads an operation. A UUID in upper case is tried as given, since some services write UUIDs so, and then in lower case. */
async function readOperation(service: Service, uuid: string): Promise<OperationDetails> {
  try {
    return await service.getOperation(uuid);
  } catch (error) {
    const lower = uuid.toLowerCase();
    if (!(error instanceof NotFoundError) || lower === uuid) throw error;
    return await service.getOperation(lower);
  }
}

function findInHistory(store: Store, given: string, key: string): string | undefined {
  const reference = parseHistoryReference(given);
  if (reference === undefined) return undefined;
  const { operation, title } = requireHistoryEntry(store, key, given, reference);
  if (operation !== null) return operation;
  throw new BoughError(`${given} of session ${key} (${title}) has no operation`, {
    hint: wording`${{ command: "session show", words: [key] }} lists its history; entries of kind run have one.`,
  });
}

async function findByPrefix(service: Service, given: string): Promise<string> {
  const operations = await service.listOperations({ limit: maxOperations });
  const matches = operations.filter(({ uuid }) => startsAlike(uuid, given));
  const [match, ...others] = matches;
  if (others.length === 0 || match?.uuid === given) return match?.uuid ?? given;
  throw new BoughError(`${given} is ambiguous: the ids of ${matches.length} operations begin with it`, {
    hint: wording`Give more digits${wording`; ${{ command: "ps", options: [{ option: "all" }] }} lists them`}.`,
  });
}

/** Masks secrets in an operation's command and error: services keep the command line as it was sent. */
export function withoutSecrets<Operation extends OperationSummary>(operation: Operation): Operation {
  const { command, error } = operation;
  return {
    ...operation,
    command: command === null ? null : maskSecrets(command),
    error: error === null ? null : maskSecrets(error),
  };
}

/** bough's names for the kinds of operations. */
export const kindNames = ["run", "import"] as const;

export function kindOf({ kind }: OperationSummary): string {
  const names: Readonly<Record<string, string>> = { instance: "run", image_import: "import" };
  return names[kind] ?? kind;
}

/**
 * Returns the status to show. A command that ended with an exit code other than 0 has the status SUCCESS on the service, and is shown as
 * `EXIT <code>`. On some services a cancelled command has an exit code, too.
 */
export function statusOf({ status, timedOut, exitCode }: OperationSummary): string {
  if (timedOut) return "TIMED OUT";
  return exitCode === null || exitCode === 0 || status === "CANCELLED" ? status : `EXIT ${exitCode}`;
}

/**
 * Returns operations, the newest first. Sends a request for each status, since many ended operations may precede one that still runs.
 * `statuses`: `undefined` for all.
 */
export async function findOperations(
  service: Service,
  filter: OperationFilter,
  statuses: readonly OperationStatus[] | undefined,
): Promise<OperationSummary[]> {
  const filters = statuses === undefined ? [filter] : statuses.map((status) => ({ ...filter, status }));
  const lists = await Promise.all(filters.map((each) => service.listOperations(each)));
  if (service.capabilities.lacks("operationList"))
    throw new BoughError(`${service.address} does not support listing operations`);
  return lists
    .flat()
    .sort((a, b) => ((a.createdAt ?? "") < (b.createdAt ?? "") ? 1 : -1))
    .slice(0, filter.limit);
}

/** The maximum number of active operations that are listed. */
const maxActive = 1000;

/** Returns all operations that are under way. */
function findActive(service: Service): Promise<OperationSummary[]> {
  return findOperations(service, { limit: maxActive }, activeStatuses);
}
