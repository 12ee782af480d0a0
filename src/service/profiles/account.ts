/** Whom the token stands for: `GET /v1/whoami`. */
import { asRecord, asText } from "../http/json.ts";
import { anObject } from "../http/requirements.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageService } from "../service.ts";

export interface Account {
  /** When the token ends, as the service says it; `undefined` where it says nothing. */
  expires: string | undefined;
  /** Names of what it may do. */
  permissions: string[];
}

export interface Accounts extends Pick<ImageService, "platform" | "extensions"> {
  /** Rejects where the service does not accept the token, and with NotFoundError where it has no such route. */
  whoami(): Promise<Account>;
}

export function createAccounts(transport: Transport): Accounts {
  /** `undefined`: this service has no such route, or does not say it to everyone. */
  const ask = async () => {
    const handles = [400, 403, 404, 405, 501];
    const { status, body } = await transport.call({
      ...{ method: "GET", path: "/v1/whoami", repeatable: true, handles },
    });
    return handles.includes(status) ? undefined : asRecord(body);
  };
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

    platform: async () => asText((await ask())?.platform),

    async extensions() {
      const names = (await ask())?.extensions;
      return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : []);
    },
  };
}
