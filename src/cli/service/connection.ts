import { BoughError } from "../../errors.ts";
import type { Account } from "../../service/capabilities.ts";
import type { Service } from "../../service/client.ts";
import { DeadlineError, withDeadline } from "../../service/http/deadline.ts";
import type { ServiceChoice } from "../../service/profiles/profile.ts";
import type { Profile } from "../../service/profiles/profile-text.ts";
import type { Fetch, ServedTime } from "../../service/service.ts";
import { openStore, type Store } from "../../store/store.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import type { Runtime } from "../process/runtime.ts";
import { chooseServiceFor, clientOptions, requireOwnStateDirectory, storePath } from "./choice.ts";

/** The service that a command uses, with bough's own database about it. */
export interface Connection extends AsyncDisposable {
  service: Service;
  store: Store;
  /** Returns a client of the same service whose requests are aborted by `signal`. */
  serviceFor(signal: AbortSignal): Service;
  /**
   * Waits until the embedded engine has written a new image to its disk, which it would otherwise do when it closes. Rejects if the
   * image could not be written and is lost.
   */
  requireKept(image: string): Promise<void>;
}

/** Observes the requests and operations of a service. */
export interface ServiceWatcher {
  /** Returns a fetch function that observes requests. */
  watch(fetch: Fetch): Fetch;
  onServed(time: ServedTime): void;
}

/** Chooses the service, connects to it, and logs its address. */
export async function connect(
  { runtime, globals, log }: Pick<Surroundings, "runtime" | "globals" | "log">,
  watcher?: ServiceWatcher,
): Promise<Connection> {
  const choice = chooseServiceFor(runtime, globals);
  requireOwnStateDirectory(runtime);
  const store = openStore(storePath(runtime, choice), runtime.clock, {
    onDamaged: (name) =>
      log.warn(`the state file was damaged: it was renamed to ${name}, and layers are built again`),
  });
  try {
    return await connectWith(store, choice, { runtime, globals, log }, watcher);
  } catch (error) {
    store.close();
    throw error;
  }
}

async function connectWith(
  store: Store,
  choice: ServiceChoice,
  { runtime, globals, log }: Pick<Surroundings, "runtime" | "globals" | "log">,
  watcher: ServiceWatcher | undefined,
): Promise<Connection> {
  const shared = {
    clock: runtime.clock,
    onNotice: ({ level, text }: { level: "debug" | "info" | "warn"; text: string }) => log[level](text),
    knownFiles: store.uploads,
    running: runtime.running,
    ...(watcher === undefined ? {} : { onServed: watcher.onServed }),
  };
  if (choice.kind === "remote") {
    const { createService } = await import("../../service/client.ts");
    const remote = {
      ...clientOptions(choice, runtime),
      fetch: watcher?.watch(runtime.fetch) ?? runtime.fetch,
      seenImages: store.imageMetadata.listedImages,
      knownProtocol: store.imageMetadata.protocol,
    };
    const serviceFor = (signal: AbortSignal) => createService({ ...shared, ...remote, signal });
    const service = serviceFor(runtime.signal);
    log.info(`service: ${service.address} (${choice.source})`);
    // A remote service reports nothing about its disk.
    const requireKept = async () => {};
    return { service, serviceFor, store, requireKept, [Symbol.asyncDispose]: async () => store.close() };
  }
  const { startEngine } = await import("./engine-host.ts");
  const engine = await startEngine(runtime, { warn: log.warn });
  const { createEngineService } = await import("../../engine/service/engine-service.ts");
  const serviceFor = (signal: AbortSignal) => createEngineService(engine.core, { ...shared, signal });
  const service = serviceFor(runtime.signal);
  // The engine is the default, so it is reported only to a user who has chosen it.
  log[globals.local === true ? "info" : "debug"](service.address);
  return {
    service,
    serviceFor,
    store,
    async requireKept(image) {
      if (await engine.settle(image)) return;
      throw new BoughError(`image ${image} is lost: it could not be written to the disk`, {
        hint: "Run the same command again.",
      });
    },
    async [Symbol.asyncDispose]() {
      // The engine waits for its processes to end.
      const closing = engine.close();
      try {
        store.close();
      } finally {
        await closing;
      }
      if (!engine.hasChanged) return;
      const { makeRoomInBackground } = await import("./make-room.ts");
      makeRoomInBackground(runtime, engine.directory);
    },
  };
}

/** Connects without logging the service, for commands whose output is the result itself. */
export function connectQuietly(invocation: Surroundings): Promise<Connection> {
  const { log } = invocation;
  return connect({ ...invocation, log: { ...log, info: log.debug } });
}

/** Opens bough's own state, for commands that don't need the service. */
export function openLocalStore(runtime: Runtime, globals: GlobalOptions): Store {
  requireOwnStateDirectory(runtime);
  return openStore(storePath(runtime, chooseServiceFor(runtime, globals)), runtime.clock);
}

const probeMilliseconds = 10_000;

/** Asks the service of a profile which account its token belongs to, within ten seconds. */
export async function probe(
  { url, ...profile }: Pick<Profile, "url" | "token" | "project">,
  runtime: Runtime,
): Promise<Account> {
  if (url === undefined) throw new BoughError("it has no address");
  const { clock, signal, fetch } = runtime;
  const { createService } = await import("../../service/client.ts");
  let asked: Promise<Account> | undefined;
  try {
    return await withDeadline({ clock, milliseconds: probeMilliseconds, parent: signal }, (limited) => {
      const service = createService({
        ...clientOptions({ ...profile, url }, runtime),
        fetch,
        clock,
        signal: limited,
      });
      asked = service.whoami();
      return asked;
    });
  } catch (error) {
    // The request is aborted by the same signal. Its own error names the request, and the response of the service.
    if (error instanceof DeadlineError && asked !== undefined) return await asked;
    throw error;
  }
}
