import type { OperationKind } from "../../service/wire/operation.ts";
import { accountOf } from "../account.ts";
import { jsonResponse } from "../http/responses.ts";
import { isOpen } from "../layout.ts";
import { unfinishedOperations } from "../records/operations.ts";
import type { Route } from "../router.ts";

/** A placeholder, since the engine has no tokens. A server in front of it may require one. */
const token = "00000000-0000-4000-8000-000000000000";

export const whoamiRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/whoami",
    respond({ state }) {
      const running = unfinishedOperations(state.database).filter(({ owner }) => isOpen(state.layout, owner));
      const count = (kind: OperationKind) => running.filter((operation) => operation.kind === kind).length;
      const { permissions, maxTimeoutSeconds, platform, extensions } = accountOf(state);
      return jsonResponse({
        token_uuid: token,
        token_expiration: null,
        permissions,
        limits: { instance_max_timeout: maxTimeoutSeconds },
        operations_stat: { running_instances: count("instance"), running_imports: count("image_import") },
        platform,
        extensions,
      });
    },
  },
];
