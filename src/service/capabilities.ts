/** Capabilities of a service, learnt from `GET /v1/whoami` or from the first call that the service rejects. */

import { type BoughError, usageError } from "../errors.ts";
import { Wording, wording } from "../messages/wording.ts";
import { asNumber, asRecord, asText, type JsonRecord } from "./http/json.ts";
import { anObject, type Requirement } from "./http/response.ts";
import type { Transport } from "./http/transport.ts";
import type { Capabilities, ImageService, OptionalCall } from "./service.ts";

/** Statuses of a service without the call. */
export const unsupportedStatuses: readonly number[] = [404, 405, 501];

/** `unsupportedStatuses`, and the statuses for a token that is valid only for builds. For calls that bough can do without. */
export const unavailableStatuses: readonly number[] = [401, 403, ...unsupportedStatuses];

/** Statuses with which some services respond past the end of a list, instead of an empty page. */
export const pastEndStatuses: readonly number[] = [400, 422, ...unsupportedStatuses];

/** Capabilities that the calls themselves update. */
export interface LearntCapabilities extends Capabilities {
  learn(call: OptionalCall, isServed: boolean): void;
}

export function createCapabilities(transport: Transport): LearntCapabilities {
  const served: Partial<Record<OptionalCall, boolean>> = {};
  let accountRequest: Promise<JsonRecord | undefined> | undefined;

  function account(): Promise<JsonRecord | undefined> {
    accountRequest ??= fetchAccount(transport).catch((error: unknown) => {
      accountRequest = undefined;
      throw error;
    });
    return accountRequest;
  }

  return {
    learn(call, isServed) {
      served[call] = isServed;
    },
    lacks: (call) => served[call] === false,
    has: (call) => served[call] === true,
    maxTimeoutSeconds: async () => asNumber(asRecord((await account())?.limits)?.instance_max_timeout),
    takesUserNumbers: async () => (await account()) !== undefined,
    platform: async () => asText((await account())?.platform),
    async extensions() {
      const names = (await account())?.extensions;
      return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : []);
    },
  };
}

/** Returns `undefined` if the service responds with anything but an account. */
async function fetchAccount(transport: Transport): Promise<JsonRecord | undefined> {
  const { body } = await transport.call({
    method: "GET",
    path: "/v1/whoami",
    repeatable: true,
    isOptional: true,
    requires: anAccount,
  });
  return asRecord(body);
}

/** The fields of an account distinguish it from the response of a service that responds to every path. */
const anAccount: Requirement = {
  what: "an account",
  isMet({ body }) {
    const record = asRecord(body) ?? {};
    const isTold = Array.isArray(record.extensions) || asText(record.platform) !== undefined;
    return isTold || accountKeys.some((key) => asRecord(record[key]) !== undefined);
  },
};

const accountKeys = ["permissions", "limits", "operations_stat"];

/** Returns the error for options that the service does not support, but the engine does. */
export function unsupportedOptions(
  options: readonly string[],
  { address }: Pick<ImageService, "address">,
  reason?: string,
): BoughError {
  const named = options.map((option, at) => {
    const before = at === 0 ? "" : at === options.length - 1 ? " and " : ", ";
    return wording`${before}${{ option }}`;
  });
  const them = options.length === 1 ? "it" : "them";
  return usageError(
    wording`${address} does not support ${new Wording(named)}${reason === undefined ? "" : `: ${reason}`}`,
    wording`Leave ${them} out${wording`, or use bough's own engine (${{ option: "local" }})`}.`,
  );
}

/** The account that a token belongs to: `GET /v1/whoami`. */
export interface Account {
  /** Expiry time of the token as the service reports it; `undefined` if it does not. */
  expires: string | undefined;
  /** Names of its permissions. */
  permissions: string[];
}

export interface Accounts {
  /** Rejects if the service does not accept the token, and with NotFoundError if it has no such route. */
  whoami(): Promise<Account>;
}

export function createAccounts(transport: Transport): Accounts {
  return {
    async whoami() {
      const { body } = await transport.call({
        method: "GET",
        path: "/v1/whoami",
        repeatable: true,
        requires: anObject,
      });
      const record = asRecord(body) ?? {};
      const permissions = Object.entries(asRecord(record.permissions) ?? {});
      return {
        expires: asText(record.token_expiration),
        permissions: permissions.flatMap(([name, isGranted]) => (isGranted === true ? [name] : [])),
      };
    },
  };
}
