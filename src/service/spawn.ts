/** Starting an instance: sent once, and looked for where it is unknown what became of it. */
import { messageOf } from "../errors.ts";
import { withDeadline } from "./abort.ts";
import type { Answer } from "./answer.ts";
import type { ServiceNotice } from "./attempt.ts";
import { UnknownOutcomeError } from "./errors.ts";
import { asRecord, asText } from "./json.ts";
import { markRequest } from "./mark.ts";
import { type Search, type SearchOptions, type Sent, searchPatiently, searchSpawned } from "./spawned.ts";
import type { InstanceRequest } from "./types.ts";

export interface SpawnOptions extends SearchOptions {
  onNotice: (notice: ServiceNotice) => void;
  /** True: it is, or was, ended. */
  cancel(operation: string): Promise<boolean>;
}

const spawnTimeoutMilliseconds = 120_000;
const spawnGraceMilliseconds = 5000;
/** After an interruption somebody waits for the end. */
const lastSearchMilliseconds = 5000;

/**
 * Answers the operation's id. Never sent twice once it may have been received: then the operation is looked for by the
 * request's mark. Rejects with an UnknownOutcomeError where it is not found.
 */
export async function spawnInstance(
  options: SpawnOptions,
  request: InstanceRequest,
  mark: number,
): Promise<string> {
  const { clock, signal, onNotice } = options;
  const marked = markRequest(request, mark);
  const sent: Sent = { limit: marked.truncate_output_at ?? 0, at: clock.now(), command: request.command };
  try {
    const operation = await post(options, marked);
    if (!signal.aborted) return operation;
    await stop(options, operation);
  } catch (error) {
    if (error instanceof UnknownOutcomeError) {
      const operation = await settle(options, sent, error);
      onNotice({
        level: "warn",
        text: `${error.message}; the service runs it all the same, as ${operation}`,
      });
      return operation;
    }
    if (!signal.aborted) throw error;
    await stopUnanswered(options, sent);
  }
  throw signal.reason;
}

/** From the body, else from `Location: /v1/operations/<uuid>`. */
export function operationIdOf(answer: Answer): string | undefined {
  const location = /\/operations\/([^/?#]+)/.exec(answer.headers.get("location") ?? "")?.[1];
  const body = asRecord(answer.body);
  return (
    asText(body?.uuid) ??
    asText(body?.operation_uuid) ??
    (location === undefined ? undefined : decodeURIComponent(location))
  );
}

/**
 * An interruption does not break it off at once: only with the operation's id in the answer can what it started be
 * stopped.
 */
async function post({ transport }: SpawnOptions, json: InstanceRequest): Promise<string> {
  const answer = await transport.call({
    method: "POST",
    path: "/v1/instances",
    json,
    repeatable: false,
    requires: {
      what: "the operation's id",
      isMet: (answer) => operationIdOf(answer) !== undefined,
    },
    overNewConnection: true,
    // Being impatient here means not to know what has happened.
    timeoutMilliseconds: spawnTimeoutMilliseconds,
    graceMilliseconds: spawnGraceMilliseconds,
  });
  return operationIdOf(answer) ?? "";
}

async function settle(options: SpawnOptions, sent: Sent, error: UnknownOutcomeError): Promise<string> {
  options.onNotice({ level: "warn", text: `${error.message}; looking whether the service runs the command` });
  let search: Search;
  try {
    search = await searchPatiently(options, sent);
  } catch (cause) {
    options.signal.throwIfAborted();
    throw unknown(error, `the service can't be asked for its operations: ${messageOf(cause)}`);
  }
  switch (search.kind) {
    case "found":
      return search.operation;
    case "unknowable":
      throw unknown(error, "the service has no list of its operations");
    case "not there": {
      const { similar } = search;
      throw similar.length === 0
        ? unknown(error, "its list of operations does not have it")
        : unknown(error, `it may be ${similar.join(" or ")}, which runs the same command`, similar[0]);
    }
  }
}

function unknown(error: UnknownOutcomeError, why: string, similar?: string): UnknownOutcomeError {
  const look =
    similar === undefined
      ? "Build again"
      : `\`bough show ${similar}\` and \`bough kill ${similar}\` show and end it. Then build again`;
  return new UnknownOutcomeError(
    `${error.message}; it is unknown whether the service runs the command: ${why}`,
    {
      hint: `It is not sent again by itself, for it could run twice. ${look}: what is finished is cached.`,
      cause: error,
    },
  );
}

async function stop({ cancel, onNotice }: SpawnOptions, operation: string): Promise<void> {
  const isEnded = await cancel(operation);
  const text = isEnded ? "is cancelled" : "is not confirmed to have ended: it may still run";
  onNotice({ level: "warn", text: `operation ${operation} ${text}` });
}

/** Interrupted before there was an answer: what was started all the same must not go on unseen. */
async function stopUnanswered(options: SpawnOptions, sent: Sent): Promise<void> {
  const { clock, onNotice } = options;
  const limits = { clock, milliseconds: lastSearchMilliseconds, parent: new AbortController().signal };
  try {
    const search = await withDeadline(limits, (signal) => searchSpawned({ ...options, signal }, sent));
    if (search.kind === "found") return await stop(options, search.operation);
    if (search.kind === "not there" && search.similar.length === 0) return;
  } catch {
    // Said below.
  }
  onNotice({
    level: "warn",
    text: "interrupted before POST /v1/instances was answered: the service may run the command all the same",
  });
}
