/** Whom the token stands for: `GET /v1/whoami`. */
import { asRecord, asText } from "../http/json.ts";
import { anObject } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";

export interface Account {
  /** When the token ends, as the service says it; `undefined` where it says nothing. */
  expires: string | undefined;
  /** Names of what it may do. */
  permissions: string[];
}

export interface Accounts {
  /** Rejects where the service does not accept the token, and with NotFoundError where it has no such route. */
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
