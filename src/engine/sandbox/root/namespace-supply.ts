import type { Clock } from "../../../clock.ts";
import type { Layout } from "../../layout.ts";
import type { PrivateNetwork } from "../../network/private-network.ts";
import { endHelper, type Helper, isRunning } from "../../system/helper.ts";
import { hasProcess } from "../../system/helper-process.ts";
import type { Environment } from "../../system/programs.ts";
import { noteContainer, removeContainer } from "../containers.ts";
import { ownHierarchies } from "../limits/hierarchies.ts";
import { makeGroups, type OwnGroups } from "../limits/own-groups.ts";
import type { ContainerRuntime } from "../runtime/runtime.ts";
import { openDevices } from "../sandbox-config.ts";
import { startNamespace } from "./mount-namespace.ts";

/** The command that a namespace is made for. */
interface NextCommand {
  /** The network that the namespace process was given. */
  network: PrivateNetwork | undefined;
  runtime: ContainerRuntime;
}

/** A process in its namespaces that waits for instructions what to mount. */
interface Supplied {
  helper: Helper;
  /** The process's control groups if its runtime makes none: remove them when it has ended. */
  groups: OwnGroups | undefined;
}

interface SupplyHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
}

/**
 * The namespaces of commands. Those of the next command are made while the previous one starts and runs: starting four programs
 * in sequence takes a tenth of a short command's time.
 */
export class NamespaceSupply {
  readonly #host: SupplyHost;
  #waiting: (Supplied & { next: NextCommand }) | undefined;
  /** Removals under way. */
  readonly #leaving = new Set<Promise<void>>();

  constructor(host: SupplyHost) {
    this.#host = host;
  }

  /** `terminal`: see `startNamespace`. A command with a terminal can't use prepared namespaces. */
  take(next: NextCommand, terminal?: number): Supplied {
    if (terminal !== undefined) return this.#start(next, terminal);
    const waiting = this.#waiting;
    this.#waiting = undefined;
    if (
      waiting !== undefined &&
      isSame(waiting.next, next) &&
      isRunning(waiting.helper) &&
      hasProcess(waiting.helper.pid)
    )
      return waiting;
    if (waiting !== undefined) this.#drop(waiting);
    return this.#start(next);
  }

  /** Call it once a command is starting. Prepares nothing after a command with its own terminal: that is a user's shell. */
  prepare(next: NextCommand, terminal?: number): void {
    if (terminal !== undefined || this.#waiting !== undefined) return;
    try {
      const supplied = this.#start(next);
      // Neither the helper nor its streams keep this process alive.
      supplied.helper.unref();
      this.#waiting = { ...supplied, next };
    } catch {
      // The next command reports the error.
    }
  }

  /** Removes the groups of a taken process that has ended. Only `close` waits for that: the next command need not. */
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
    // The name tells which engine made it, should its process be killed.
    const name = `${this.#host.layout.owner}.${crypto.randomUUID()}`;
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

  /** Groups that can't be removed now stay recorded. The next engine that finds this process gone removes them. */
  #leave(leaving: Promise<void>): void {
    const left = leaving.catch(() => undefined).finally(() => this.#leaving.delete(left));
    this.#leaving.add(left);
  }
}

function isSame(one: NextCommand, other: NextCommand): boolean {
  return one.network === other.network && one.runtime.kind === other.runtime.kind;
}
