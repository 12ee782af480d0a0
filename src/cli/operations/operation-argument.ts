import { BoughError } from "../../errors.ts";
import type { Service } from "../../service/client.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import { isUuid } from "../../service/images/reference.ts";
import type { OperationDetails } from "../../service/operations/operation-records.ts";
import type { ArgumentDefinition } from "../command-line/arguments.ts";

/** The argument of a command that takes one operation. */
export const operationArgument: ArgumentDefinition = {
  type: "positional",
  completes: "operation",
  required: true,
  description: "An operation's id, or the first digits of it",
};

/** How far back an id is looked for by its first digits. */
const maxOperations = 1000;

/** The operation that a user names by its id, or by the first digits of it. */
export async function requireOperation(service: Service, given: string): Promise<OperationDetails> {
  const uuid = isUuid(given) ? given.toLowerCase() : await findByPrefix(service, given);
  try {
    return await service.getOperation(uuid);
  } catch (error) {
    if (!(error instanceof NotFoundError)) throw error;
    throw new BoughError(`there is no operation ${given}`, {
      hint: "`bough ps --all` lists them.",
      cause: error,
    });
  }
}

async function findByPrefix(service: Service, given: string): Promise<string> {
  const operations = await service.listOperations({ limit: maxOperations });
  const matches = operations.filter(({ uuid }) => uuid.startsWith(given.toLowerCase()));
  const [match, ...others] = matches;
  if (others.length === 0 || match?.uuid === given) return match?.uuid ?? given;
  throw new BoughError(`${given} is the beginning of the ids of ${matches.length} operations`, {
    hint: "Give more of it; `bough ps --all` lists them.",
  });
}
