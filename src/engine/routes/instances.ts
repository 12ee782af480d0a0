import { readBody } from "../fields.ts";
import { requireImage } from "../images.ts";
import { readInstanceSpec } from "../instanceSpec.ts";
import { performInstance } from "../instances.ts";
import { locate } from "../programs.ts";
import type { Route } from "../router.ts";
import { startOperation } from "../runOperation.ts";
import { answerStarted } from "./operations.ts";

export const instanceRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/instances",
    async answer({ state, request }) {
      const spec = readInstanceSpec(await readBody(request), state.database, state.layout);
      const image = requireImage(state.database, spec.image);
      locate("runc", state.environment);
      const uuid = startOperation(state, {
        kind: "instance",
        metadata: spec.metadata,
        startImage: image.uuid,
        perform: (run) => performInstance(state, image, spec, run),
      });
      return answerStarted(uuid);
    },
  },
];
