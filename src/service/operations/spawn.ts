/**
 * Starts an instance. If the request's outcome is unknown, its operation is looked for, and the request is sent again if that
 * does no harm.
 */
import { messageOf } from "../../errors.ts";
import { wording } from "../../messages/wording.ts";
import type { ServiceNotice } from "../http/attempt.ts";
import { withDeadline } from "../http/deadline.ts";
import { UnknownOutcomeError } from "../http/errors.ts";
import type { ServiceResponse } from "../http/response.ts";
import type { RepeatedId } from "../service.ts";
import type { InstanceBody, InstanceRequest } from "../wire/instance.ts";
import { instanceBody } from "./instance-body.ts";
import { withRequestId } from "./request-id.ts";
import { type SearchOptions, type Sent, type SpawnSearch, searchSpawned, searchTwice } from "./spawned.ts";

interface SpawnOptions extends SearchOptions {
  onNotice: (notice: ServiceNotice) => void;
  /** Returns true if the operation is, or was, ended. */
  cancel(operation: string): Promise<boolean>;
}

const spawnTimeoutMilliseconds = 120_000;
const spawnGraceMilliseconds = 5000;
/** Maximum repeats of a request that the service's list of operations does not have. */
const maxResends = 2;
/** The same for a service without such a list: each repeat may run the command once more. */
const maxBlindResends = 1;
/** Time for a search after an interruption, because the user waits for the end. */
const lastSearchMilliseconds = 5000;

/**
 * Returns the operation's id. If the request may have been received, the operation is looked for by its request id. If its answer
 * is lost, and the operation is not found, the request is sent again if it `mayRunTwice`. A request that has been answered is
 * never sent again, whatever the answer. Rejects with an UnknownOutcomeError if that does not help.
 */
export async function spawnInstance(
  options: SpawnOptions,
  request: InstanceRequest,
  { requestId, repeats, mayRunTwice }: { requestId: number; repeats?: RepeatedId; mayRunTwice: boolean },
): Promise<string> {
  const { clock, signal } = options;
  const identified = instanceBody(withRequestId(request, requestId));
  const limit = identified.truncate_output_at ?? 0;
  const sent: Sent = { limit, repeats, at: clock.now(), command: request.command };
  let resends = 0;
  try {
    for (;;) {
      const operation = await post(options, identified).catch((error: unknown) => {
        if (!(error instanceof UnknownOutcomeError)) throw error;
        return settle(options, sent, error, mayRunTwice && !error.isAnswered ? resends++ : undefined);
      });
      if (operation === undefined) continue;
      if (!signal.aborted) return operation;
      await stop(options, operation);
      break;
    }
  } catch (error) {
    if (!signal.aborted || error instanceof UnknownOutcomeError) throw error;
    await stopUnanswered(options, sent);
  }
  throw signal.reason;
}

/**
 * Sends the request. An interruption does not abort it immediately: what it started can only be stopped with the operation's id
 * in the response.
 */
async function post({ transport, capabilities }: SpawnOptions, request: InstanceBody): Promise<string> {
  const optional = { names: optionalFields, isApi: capabilities.takesUserNumbers };
  const answer = await transport.fields.send(path, request, optional, (json) => call(transport, json));
  return transport.operations.read(answer, path) ?? "";
}

const path = "/v1/instances";
/** Fields without which a service runs the same command. */
const optionalFields = ["truncate_output_at", "disposable", "hostname", "preserve_env"] as const;

function call(transport: SearchOptions["transport"], json: InstanceBody): Promise<ServiceResponse> {
  return transport.call({
    method: "POST",
    path,
    json,
    repeatable: false,
    needs: () => [json.image, ...Object.values(json.files ?? {}).map(({ uuid }) => uuid)],
    requires: {
      what: "the operation's id",
      isMet: (answer) => transport.operations.read(answer, path) !== undefined,
    },
    overNewConnection: true,
    // A long timeout, because giving up leaves the outcome unknown.
    timeoutMilliseconds: spawnTimeoutMilliseconds,
    graceMilliseconds: spawnGraceMilliseconds,
  });
}

/**
 * Returns the operation of a request without a response, or `undefined` if the request should be sent again. `resends` is the
 * number of repeats so far; `undefined` if it must not be repeated.
 */
async function settle(
  options: SpawnOptions,
  sent: Sent,
  error: UnknownOutcomeError,
  resends: number | undefined,
): Promise<string | undefined> {
  const { signal, onNotice } = options;
  const mayResend = resends !== undefined && resends < maxResends;
  const mayResendBlindly = resends !== undefined && resends < maxBlindResends;
  onNotice({ level: "warn", text: `${error.message}; checking whether the service is running the command` });
  const resendBlindly = (why: string) => {
    if (!mayResendBlindly) throw unknown(error, why);
    onNotice({ level: "warn", text: `${why}; ${resending}` });
    return undefined;
  };
  let search: SpawnSearch;
  try {
    search = await searchTwice(options, sent);
  } catch (cause) {
    signal.throwIfAborted();
    return resendBlindly(`cannot list the service's operations: ${messageOf(cause)}`);
  }
  switch (search.kind) {
    case "found": {
      const { operation } = search;
      onNotice({
        level: "warn",
        text: `${error.message}; the service is running it anyway, as ${operation}`,
      });
      return operation;
    }
    case "unsupported":
      return resendBlindly("the service can't list its operations");
    case "not there": {
      const { similar } = search;
      const isCertain = similar.length === 0;
      if (isCertain ? mayResend : mayResendBlindly) {
        const text = "the command is not in the service's list of operations; sending it again";
        onNotice({ level: "warn", text: isCertain ? text : `${similarText(similar)}; ${resending}` });
        return undefined;
      }
      throw isCertain
        ? unknown(error, "the command is not in its list of operations")
        : unknown(error, similarText(similar), similar[0]);
    }
  }
}

const resending = "sending the command again: it may run twice there, each time from the same image";

function similarText(similar: readonly string[]): string {
  return `it may be ${similar.join(" or ")}, which runs the same command`;
}

function unknown(error: UnknownOutcomeError, why: string, similar?: string): UnknownOutcomeError {
  const look =
    similar === undefined
      ? "Build again"
      : wording`${{ command: "show", words: [similar] }} and ${{ command: "kill", words: [similar] }} show and end it. Then build again`;
  return new UnknownOutcomeError(
    `${error.message}; it is unknown whether the service is running the command: ${why}`,
    {
      hint: wording`bough does not send it again, because it could run twice.${wording` ${look}: finished steps are cached.`}`,
      cause: error,
    },
  );
}

async function stop({ cancel, onNotice }: SpawnOptions, operation: string): Promise<void> {
  const isEnded = await cancel(operation);
  const text = isEnded ? "is cancelled" : "is not confirmed to have ended: it may still run";
  onNotice({ level: "warn", text: `operation ${operation} ${text}` });
}

/** Stops what an interrupted request without a response may have started. */
async function stopUnanswered(options: SpawnOptions, sent: Sent): Promise<void> {
  const { clock, onNotice } = options;
  const limits = { clock, milliseconds: lastSearchMilliseconds, parent: new AbortController().signal };
  try {
    const search = await withDeadline(limits, (signal) => searchSpawned({ ...options, signal }, sent));
    if (search.kind === "found") return await stop(options, search.operation);
    if (search.kind === "not there" && search.similar.length === 0) return;
  } catch {
    // Reported below.
  }
  onNotice({
    level: "warn",
    text: "interrupted before the response to POST /v1/instances: the service may be running the command anyway",
  });
}
