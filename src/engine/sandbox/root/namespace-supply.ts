import type { Clock } from "../../../clock.ts";
import { currentProcess, identify, isAlive } from "../../../process-identity.ts";
import type { Layout } from "../../layout.ts";
import type { PrivateNetwork } from "../../network/private-network.ts";
import { endHelper, type Helper } from "../../system/helper.ts";
import type { Environment } from "../../system/programs.ts";
import { noteContainer, removeContainer } from "../containers.ts";
import { ownHierarchies } from "../limits/hierarchies.ts";
import { makeGroups, type OwnGroups } from "../limits/own-groups.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { openDevices } from "../sandbox-config.ts";
import { startNamespace } from "./mount-namespace.ts";

/** What a namespace is made for. */
interface NextCommand {
  /** That it has been given. */
  network: PrivateNetwork | undefined;
  runtime: Runtime;
}

/** A process in its namespaces, which waits to be told what to mount. */
interface Supplied {
  helper: Helper;
  /** Those that it is in, where its runtime makes none: remove them when it has ended. */
  groups: OwnGroups | undefined;
}

interface SupplyHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
}

/**
 * The namespaces of commands. Those of the next one are made while the one before starts and runs: to start four programs one
 * after the other takes a tenth of what a short command takes in all.
 */
export class NamespaceSupply {
  readonly #host: SupplyHost;
  #waiting: (Supplied & { identity: string; next: NextCommand }) | undefined;
  /** What is being cleared away. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(host: SupplyHost) {
    this.#host = host;
  }

  /** `terminal`: see `startNamespace`; such a command can't be waited for. */
  take(next: NextCommand, terminal?: number): Supplied {
    if (terminal !== undefined) return this.#start(next, terminal);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined && isSame(waiting.next, next) && isAlive(waiting.identity)) return waiting;
    if (waiting !== undefined) this.#drop(waiting);
    return this.#start(next);
  }

  /** Call it once a command is on its way. After one with a terminal of its own none is made: it is somebody's shell. */
  prepare(next: NextCommand, terminal?: number): void {
    if (terminal !== undefined || this.#waiting !== undefined) return;
    try {
      const supplied = this.#start(next);
      // It keeps this process from ending as little as what it waits for.
      supplied.helper.unref();
      this.#waiting = { ...supplied, identity: identify(supplied.helper.pid), next };
    } catch {
      // The next command says why there can be none.
    }
  }

  /** Removes the groups of what was taken and has ended. Only `close` waits for that: the next command need not. */
  release(groups: OwnGroups): void {
    this.#leave(removeContainer(this.#host, groups.name));
  }

  async close(): Promise<void> {
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (waiting !== undefined) this.#drop(waiting);
    await Promise.all(this.#leaving);
  }

  #start({ network, runtime }: NextCommand, terminal?: number): Supplied {
    const { layout, environment } = this.#host;
    const options = { forCommand: true, descriptor: network?.namespaces, terminal };
    if (runtime.kind === "runc")
      return { helper: startNamespace(layout, environment, options), groups: undefined };
    // By its name whoever finds what a killed process has left knows whose it was.
    const name = `${currentProcess()}.${crypto.randomUUID()}`;
    try {
      const groups = this.#makeGroups(name);
      const crun = { state: runtime.state, copy: runtime.copy, entries: groups.entries };
      return { helper: startNamespace(layout, environment, { ...options, crun }), groups };
    } catch (error) {
      this.#leave(removeContainer(this.#host, name));
      throw error;
    }
  }

  #makeGroups(name: string): OwnGroups {
    const { layout, inUserNamespace } = this.#host;
    return makeGroups(name, ownHierarchies(), inUserNamespace ? undefined : openDevices, (directories) =>
      noteContainer(layout, name, directories),
    );
  }

  #drop({ helper, groups }: Supplied): void {
    helper.ref();
    endHelper(helper);
    helper.discard?.();
    this.#leave(helper.exited.then(() => groups && removeContainer(this.#host, groups.name)));
  }

  /** What can't be removed now stays noted, and is removed by the next engine that finds this process gone. */
  #leave(leaving: Promise<void>): void {
    const left = leaving.catch(() => undefined).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }
}

function isSame(one: NextCommand, other: NextCommand): boolean {
  return one.network === other.network && one.runtime.kind === other.runtime.kind;
}
