import { RequestError } from "../http/answers.ts";
import { readBody } from "../http/fields.ts";
import type { Route } from "../http/router.ts";
import { describeRequest } from "../instances/metadata.ts";
import { performInstance } from "../instances/perform.ts";
import { readInstanceSpec } from "../instances/spec.ts";
import { requireImage } from "../records/images.ts";
import { startOperation } from "../run-operation.ts";
import { findProgram } from "../system/programs.ts";
import { answerStarted } from "./operations.ts";

export const instanceRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/instances",
    async answer({ state, request }) {
      const spec = await readInstanceSpec(await readBody(request), state.database, state.layout);
      if (spec.network === "host" && !state.allowsHostNetwork)
        throw new RequestError(
          403,
          "networking.mode host: the network of a server's machine is not for its clients",
        );
      const image = requireImage(state, spec.image);
      findProgram("runc", state.environment);
      const metadata = describeRequest(spec, image);
      const uuid = startOperation(state, {
        kind: "instance",
        metadata,
        startImage: image.uuid,
        perform: (run) => performInstance(state, image, spec, run),
      });
      return answerStarted(uuid, metadata);
    },
  },
];
