import type { EngineCore } from "../core.ts";
import { makeRouter } from "../router.ts";
import { cacheRoutes } from "./caches.ts";
import { fileRoutes } from "./files.ts";
import { imageRoutes } from "./images.ts";
import { inspectRoutes } from "./inspect.ts";
import { layerRoutes } from "./layers.ts";
import { eventRoutes, operationRoutes } from "./operations.ts";
import { remoteImageRoutes } from "./remote-images.ts";
import { subprocessRoutes, terminalRoutes } from "./subprocesses.ts";
import { whoamiRoutes } from "./whoami.ts";

const routes = [
  ...whoamiRoutes,
  ...imageRoutes,
  ...remoteImageRoutes,
  ...fileRoutes,
  ...operationRoutes,
  ...eventRoutes,
  ...subprocessRoutes,
  ...terminalRoutes,
  ...inspectRoutes,
  ...layerRoutes,
  ...cacheRoutes,
];

/**
 * Returns a function that responds to requests of the service's API by an engine. Only the path below the base address counts. It
 * never rejects.
 */
export function createHandler({ state, prepare }: EngineCore): (request: Request) => Promise<Response> {
  return makeRouter(state, routes, prepare);
}
