import type { Platform } from "../../image/platform.ts";
import { prefixLog } from "../../terminal/log.ts";
import type { Surroundings } from "../command-line/command.ts";
import type { GlobalOptions } from "../command-line/globals.ts";
import { isEmbedded } from "./choice.ts";
import { type Connection, connect, type ServiceWatcher } from "./connection.ts";

/** A service that a build uses, and the platforms that it builds there. */
export interface ChosenService {
  /** Empty for the service's own platform. */
  platforms: readonly Platform[];
  /** The options that choose it. */
  globals: GlobalOptions;
  /** `--platform-service` as it is given; `undefined` for the service of all other platforms. */
  option: string | undefined;
  /** The platforms, for messages, if there are several services. */
  label?: string;
}

/** The connections of a command. */
export interface Connections extends AsyncDisposable {
  /** Connects to a service. All callers share one connection. */
  connectTo(service: ChosenService): Promise<Connection>;
  /** Aborts all requests and operations of the connections. */
  signal: AbortSignal;
  /** Aborts the signal. */
  stop(reason: unknown): void;
}

/** Returns connections to the services of builds, each opened on first use. Reports what was removed to free the engine's disk. */
export function openConnections(
  { runtime: given, log }: Pick<Surroundings, "runtime" | "log">,
  watcher?: ServiceWatcher,
): Connections {
  const stopping = new AbortController();
  const signal = AbortSignal.any([given.signal, stopping.signal]);
  const runtime = { ...given, signal };
  const holder = new AsyncDisposableStack();
  const opened = new Map<string | undefined, Promise<Connection>>();
  const open = async ({ globals, label }: ChosenService) => {
    const own = label === undefined ? log : prefixLog(log, label);
    const connection = holder.use(await connect({ runtime, globals, log: own }, watcher));
    if (isEmbedded(runtime, globals)) (await import("./make-room.ts")).reportRoom(runtime, own);
    return connection;
  };
  return {
    signal,
    connectTo: (service) => opened.getOrInsertComputed(profileOf(service), () => open(service)),
    stop: (reason) => stopping.abort(reason),
    [Symbol.asyncDispose]: () => holder.disposeAsync(),
  };
}

/** Returns the profile that names a service; `undefined` for the service of the command line. */
export function profileOf({ option, globals }: ChosenService): string | undefined {
  return option === undefined ? undefined : globals.profile;
}
