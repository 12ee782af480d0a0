/** Applies the limits of one sandbox: by control groups if this process may make them, else by polling. */
import { join } from "node:path";
import { type Clock, steadyTime } from "../../../clock.ts";
import { BoughError } from "../../../errors.ts";
import { wording } from "../../../messages/wording.ts";
import type { LimitHit } from "../../../service/wire/operation.ts";
import { findProgram } from "../../system/programs.ts";
import { containerGroups } from "../containers.ts";
import type { KillSwitch } from "../kill-switch.ts";
import type { LimitHold, SandboxHost, SandboxRequest } from "../sandbox-request.ts";
import {
  type Controllers,
  canMakeGroup,
  containerParent,
  ownHierarchies,
  readLimitEvents,
  usableControllers,
} from "./controllers.ts";
import { type LimitSettings, limitHit, limitSettings, readOwnLimits } from "./limits.ts";
import { enterGroups, groupVersion, type OwnGroups } from "./own-groups.ts";
import { type Watcher, watchEvents, watchLayer, watchProcesses } from "./watchers.ts";

/** Added to the nice value where no control group sets the processor weight. */
const niceness = 5;

export class LimitGuard implements LimitHold {
  readonly #host: SandboxHost;
  readonly #request: Pick<SandboxRequest, "id" | "directory" | "limits">;
  readonly #controllers: Controllers;
  #hit: LimitHit | undefined;
  #recorded: Readonly<Record<string, string>> = {};
  #own: OwnGroups | undefined;
  #settings: LimitSettings | undefined;
  /** Helpers whose child is, or becomes, a runtime with limited processes: the command's, and those of other processes. */
  readonly #helpers = new Set<number>();

  /** Throws for a limit that can't be applied here. */
  constructor(host: SandboxHost, request: Pick<SandboxRequest, "id" | "directory" | "limits">) {
    this.#host = host;
    this.#request = request;
    this.#controllers = usableControllers(ownHierarchies());
    if (request.limits.cpus !== undefined && this.#controllers.cpu === undefined) {
      throw new BoughError("cannot limit the command's CPUs: there is no control group for it", {
        hint: wording`${wording`${{ command: "doctor" }} says how to get one.`}${wording` Without ${{ option: "cpus" }} the command can use all CPUs, with low priority.`}`,
      });
    }
  }

  /** Adopts control groups that bough has made, for a runtime that makes none. */
  adopt(groups: OwnGroups): void {
    groups.limit(this.settings);
    this.#own = groups;
  }

  /** The control groups as the command sees them. */
  get groupViews(): Readonly<Record<string, string>> {
    if (this.#own !== undefined) return this.#own.views;
    const hierarchies = ownHierarchies();
    const [unified] = hierarchies;
    // The groups are runc's own, which needs no names for them in version 1.
    return unified !== undefined && groupVersion(hierarchies) === 2 && canMakeGroup(unified)
      ? { "": join(containerParent(unified), this.#request.id) }
      : {};
  }

  /** The command line prefix for the command's runtime. */
  get niceness(): string[] {
    if (this.#controllers.cpu !== undefined) return [];
    return [findProgram("nice", this.#host.environment), "-n", String(niceness)];
  }

  get prefix(): string[] {
    if (this.#own === undefined) return this.niceness;
    // crun sets `oom_score_adj` for the command only.
    const script = `echo "$1" > /proc/self/oom_score_adj || exit 125; shift\n${enterGroups}\nexec "$@"`;
    const enter = [findProgram("sh", this.#host.environment), "-c", script, "sh"];
    return [...enter, String(this.settings.oomScoreAdj), ...this.#own.entries, "--", ...this.niceness];
  }

  /** The runtime is in the groups that bough has made, and must not count for the limit. */
  hold<Started extends { pid: number }>(start: () => Started): Started {
    this.#own?.allowProcesses(this.#request.limits.processes, this.#helpers.size + 1);
    const helper = start();
    this.#helpers.add(helper.pid);
    return helper;
  }

  release(helper: number): void {
    this.#helpers.delete(helper);
    this.#own?.allowProcesses(this.#request.limits.processes, this.#helpers.size);
  }

  get settings(): LimitSettings {
    this.#settings ??= limitSettings(this.#controllers, this.#request.limits, {
      inUserNamespace: this.#host.inUserNamespace,
      own: readOwnLimits(),
    });
    return this.#settings;
  }

  /** Checks the command's usage until the signal is aborted. `helper` is the command's helper. */
  async watch(helper: number, kill: KillSwitch, signal: AbortSignal): Promise<void> {
    const { clock } = this.#host;
    this.#helpers.add(helper);
    const run = (watcher: Watcher) =>
      follow(watcher, clock, signal, (limit) => {
        this.#hit ??= limitHit(limit, this.#request.limits, true);
        kill.end();
      });
    await Promise.all(this.#watchers(signal).map(run));
  }

  /** Returns the limits that the command ran into. Call it after its end, before its control groups are removed. */
  hits(): LimitHit[] {
    const { outOfMemory, outOfProcesses } = readLimitEvents(this.#groups());
    const hits = this.#hit === undefined ? [] : [this.#hit];
    const { limits } = this.#request;
    if (outOfMemory > 0) hits.push(limitHit("max_memory_bytes", limits, false));
    if (outOfProcesses > 0) hits.push(limitHit("max_processes", limits, false));
    return hits.filter((hit, index) => hits.findIndex(({ limit }) => limit === hit.limit) === index);
  }

  /** Returns the command's groups: none until runc has recorded them, which it does once, when the container exists. */
  #groups(): Readonly<Record<string, string>> {
    if (this.#own !== undefined) return this.#own.directories;
    if (Object.keys(this.#recorded).length === 0)
      this.#recorded = containerGroups(this.#host.layout, this.#request.id);
    return this.#recorded;
  }

  #watchers(signal: AbortSignal): Watcher[] {
    const { limits, directory } = this.#request;
    const { memory, pids } = this.#controllers;
    const polled = {
      memory: memory === undefined ? limits.memory : undefined,
      processes: pids === undefined ? limits.processes : undefined,
    };
    const watchers: Watcher[] = [];
    if (memory !== undefined || pids !== undefined)
      watchers.push(watchEvents(() => readLimitEvents(this.#groups())));
    if (memory === undefined || pids === undefined) watchers.push(watchProcesses(this.#helpers, polled));
    if (limits.layerBytes !== undefined)
      watchers.push(watchLayer(join(directory, "upper"), limits.layerBytes, signal));
    return watchers;
  }
}

async function follow(
  watcher: Watcher,
  clock: Clock,
  signal: AbortSignal,
  onExceeded: (limit: LimitHit["limit"]) => void,
): Promise<void> {
  try {
    for (let milliseconds = watcher.firstMilliseconds; ; ) {
      await clock.sleep(milliseconds, signal);
      const result = await watcher.check(steadyTime(clock));
      if (typeof result === "string") return onExceeded(result);
      milliseconds = result;
    }
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
