import type { FoundCommit } from "../../../builder/addresses/repository-address.ts";
import { createSharedBuildState } from "../../../builder/build.ts";
import type { SharedBuildState } from "../../../builder/job.ts";
import { createSingleFlight } from "../../../once.ts";
import { childOf } from "../../../service/http/deadline.ts";
import type { Log } from "../../../terminal/log.ts";
import { createCommandCaches } from "../../builds/build-cache.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import { defaultJobs } from "../../service/choice.ts";
import { openConnections, profileOf } from "../../service/connections.ts";
import type { BakeInvocation } from "../options/bake-options.ts";

/** The state that the builds of a bake share: connections, caches, and a signal that ends all of them. */
interface SharedBuilds extends AsyncDisposable {
  together: BuildsTogether;
}

export function openSharedBuilds(
  { log, jobs: given, signers }: { log: Log; jobs: number | undefined; signers: BuildsTogether["signers"] },
  { options, runtime }: BakeInvocation,
): SharedBuilds {
  const holder = new AsyncDisposableStack();
  const caches = holder.use(createCommandCaches(log));
  const connections = holder.use(openConnections({ runtime, log }));
  const states = new Map<string | undefined, SharedBuildState>();
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const together: BuildsTogether = {
    ...{ connections, caches, signers, sessions: new Set(), tables: new Map(), directories: new Map() },
    writesMetadata: options["metadata-file"] !== undefined,
    sharedStateOn: (service) =>
      states.getOrInsertComputed(profileOf(service), () =>
        createSharedBuildState(given ?? defaultJobs(runtime, service.globals), {
          keepsLayers: true,
          repositories,
        }),
      ),
  };
  return { together, [Symbol.asyncDispose]: () => holder.disposeAsync() };
}

/** Returns the shared state with a signal of its own, so that a failure of one build does not end the others. */
export function isolated(together: BuildsTogether): { together: BuildsTogether; release(): void } {
  const { connections } = together;
  const { signal, abort, release } = childOf(connections.signal);
  const own: BuildsTogether["connections"] = {
    signal,
    stop: abort,
    async connectTo(service) {
      const connection = await connections.connectTo(service);
      return { ...connection, service: connection.serviceFor(signal) };
    },
  };
  return { together: { ...together, connections: own }, release };
}
