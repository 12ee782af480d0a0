/** The account that a token belongs to: `GET /v1/whoami`. */
import { asRecord, asText } from "../http/json.ts";
import { anObject } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";

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
