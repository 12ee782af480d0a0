import type { FoundCommit } from "../../../builder/addresses/repository-address.ts";
import { createCompanions } from "../../../builder/build.ts";
import { createSingleFlight } from "../../../once.ts";
import { childOf } from "../../../service/http/deadline.ts";
import type { Log } from "../../../terminal/log.ts";
import { createCommandCaches } from "../../builds/build-cache.ts";
import { type ChosenService, connectTo } from "../../builds/build-services.ts";
import type { BuildsTogether } from "../../builds/prepare-build.ts";
import type { Invocation } from "../../command-line/command.ts";
import { defaultJobs } from "../../service/choice.ts";

/** What the builds of a bake share: connections, caches, and a signal that ends all of them. */
export interface SharedBuilds extends AsyncDisposable {
  together: BuildsTogether;
}

export function openSharedBuilds(
  { log, jobs: given, signers }: { log: Log; jobs: number | undefined; signers: BuildsTogether["signers"] },
  { values, runtime }: Invocation,
): SharedBuilds {
  const stopping = new AbortController();
  const signal = AbortSignal.any([runtime.signal, stopping.signal]);
  const connections = new AsyncDisposableStack();
  const caches = connections.use(createCommandCaches(log));
  const services = new Map<string | undefined, ReturnType<BuildsTogether["connectTo"]>>();
  const repositories = createSingleFlight<FoundCommit>({ keeps: true });
  const connect = async (service: ChosenService) => {
    const jobs = given ?? defaultJobs(runtime, service.globals);
    const connection = connections.use(await connectTo(service, { runtime: { ...runtime, signal }, log }));
    return { connection, companions: createCompanions(jobs, { keepsLayers: true, repositories }) };
  };
  const together: BuildsTogether = {
    ...{ signal, caches, signers, sessions: new Set(), tables: new Map(), directories: new Map() },
    writesMetadata: values.text("metadata-file") !== undefined,
    connectTo(service) {
      // What names it.
      const profile = service.option === undefined ? undefined : service.globals.profile;
      return services.getOrInsertComputed(profile, () => connect(service));
    },
    stop: (reason) => stopping.abort(reason),
  };
  return { together, [Symbol.asyncDispose]: () => connections.disposeAsync() };
}

/** Returns the same for a build whose failed stage ends no other build. */
export function alone(together: BuildsTogether): { together: BuildsTogether; release(): void } {
  const { signal, abort, release } = childOf(together.signal);
  return {
    together: {
      ...together,
      signal,
      stop: abort,
      async connectTo(service) {
        const { connection, companions } = await together.connectTo(service);
        return { connection: { ...connection, service: connection.serviceFor(signal) }, companions };
      },
    },
    release,
  };
}
