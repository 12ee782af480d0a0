import type { Clock } from "../../clock.ts";
import type { NetworkMode } from "../../service/wire/instance.ts";
import type { LimitHit } from "../../service/wire/operation.ts";
import type { Layout } from "../layout.ts";
import type { Networks } from "../network/networks.ts";
import type { InputSpec } from "../processes/exec-spec.ts";
import type { ProcessInput } from "../processes/process-input.ts";
import type { Environment } from "../system/programs.ts";
import type { InstanceLimits } from "./limits/limits.ts";
import type { EventResources } from "./limits/usage.ts";
import type { NamespaceMount } from "./root/mount-namespace.ts";
import type { MountPoints } from "./root/mount-points.ts";
import type { NamespaceSupply } from "./root/namespace-supply.ts";
import type { Locate } from "./root/root-path.ts";
import type { Runtime } from "./runtime/runtime.ts";
import type { SandboxMount, SandboxProcess } from "./sandbox-config.ts";

export interface SandboxHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
  networks: Networks;
  namespaces: NamespaceSupply;
}

/** What else a sandbox has in place while its command runs. */
export interface RequestMounts {
  /** Made in the sandbox's mount namespace beside its root. */
  inNamespace: readonly NamespaceMount[];
  /** A directory in memory among them: for what must be on no disk. */
  memory: string | undefined;
  /**
   * Called once the root is mounted, with its mount points, to which it adds. `machine` is the mount namespace's own root directory,
   * as this process reaches it.
   */
  place: (root: string, points: MountPoints & { upper: string }, machine: string) => PlacedMounts;
}

export interface PlacedMounts {
  mounts: readonly SandboxMount[];
  locate: Locate;
  /** Throws for a path without links that is not a safe working directory. */
  requireStable: (directory: string) => void;
}

export interface SandboxRequest {
  runtime: Runtime;
  /** Names the container; no other one has the same. */
  id: string;
  /** The operation's own directory. */
  directory: string;
  /** The image's layers, the uppermost first. */
  layers: readonly [number, ...number[]];
  /** Puts into the upper directory, before it is mounted, what comes with the request. */
  fill?: ((upper: string) => Promise<unknown>) | undefined;
  /** The request's own mounts. */
  mounts: RequestMounts;
  /** Told of the mounted root, since who runs the command may depend on the image's files. */
  process: (root: string) => SandboxProcess;
  hostname: string;
  network: NetworkMode;
  /** `/etc/hosts` and `/etc/resolv.conf` are read-only. */
  hasReadonlyNetworkFiles: boolean;
  /** What the standard input begins with; more goes through `input`, unless that is all. */
  stdin: InputSpec;
  input: ProcessInput;
  timeoutSeconds: number;
  limits: InstanceLimits;
  onStart: (sandbox: LiveSandbox) => void;
  /** The terminal by which runc knows the size of the command's own, if that has one: an open descriptor. */
  terminal?: number | undefined;
  /** No more is read before the promise is resolved, if it returns one. */
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => Promise<void> | void;
  /** Whether another process has asked for its end, and killed it. */
  isCancelled: () => boolean;
  /** Called where the command is ended before its time. */
  onKill: () => void;
  /** Awaited as soon as the command has ended, and all that ran beside it. */
  onEnd: () => Promise<void>;
  /** Ends the command and all that it started. */
  signal: AbortSignal;
}

export interface LimitHold {
  /** What the runtime of a process beside the command runs behind. */
  readonly prefix: readonly string[];
  /** Starts a helper whose child is such a runtime, or becomes one. */
  hold<Started extends { pid: number }>(start: () => Started): Started;
  /** Call it when the helper of this process id has ended. */
  release(helper: number): void;
}

/** A sandbox whose command runs. */
export interface LiveSandbox {
  id: string;
  directory: string;
  /** Where its runtime is told what to start, in the mount namespace of the helper: in memory, if it has some. */
  configurations: string;
  /** The helper's process id; it has started runc as the first process of a namespace. */
  pid: number;
  process: SandboxProcess;
  /** runc's configuration of another process, on the same terms as the command's. */
  configure: (process: SandboxProcess) => object;
  /** Where paths below the root are on this machine, its mounts included. */
  locate: Locate;
  /** What has started it. */
  runtime: Runtime;
  /** Holds what is started beside the command to its limits, too. */
  guard: LimitHold;
}

export interface SandboxOutcome {
  pid: number;
  exitCode: number;
  timedOut: boolean;
  elapsedSeconds: number;
  limitsHit: readonly LimitHit[];
  resources: EventResources;
}
