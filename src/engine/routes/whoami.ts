import { answerJson } from "../http/answers.ts";
import type { Route } from "../http/router.ts";
import { longestTimeout } from "../sandbox/instance-spec.ts";
import { machineArchitecture } from "../system/machine.ts";

/** Names of what this engine can do beyond the public API. */
const extensions: readonly string[] = [
  // `GET /v1/images` shows every image, by its UUID too: one that is not in it is gone.
  "image-list",
];

/** Whoever can reach the engine may do everything; a server in front of it asks for a token itself. */
export const whoamiRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/whoami",
    answer: () =>
      answerJson({
        token_uuid: null,
        token_expiration: null,
        permissions: { images: true, files: true, instances: true, operations: true, inspect: true },
        limits: { instance_max_timeout: longestTimeout },
        // Not in the API: what `FROM --platform` and TARGETARCH are measured by.
        platform: `linux/${machineArchitecture()}`,
        // Not in the API either: what a request may ask for here beyond it.
        extensions,
      }),
  },
];
