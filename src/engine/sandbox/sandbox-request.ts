import type { Clock } from "../../clock.ts";
import type { Environment } from "../../home-directory.ts";
import type { ExtraHost, NetworkMode } from "../../service/wire/instance.ts";
import type { LimitHit } from "../../service/wire/operation.ts";
import type { Layout } from "../layout.ts";
import type { Networks } from "../network/networks.ts";
import type { InstanceLimits } from "./limits/limits.ts";
import type { EventResources } from "./limits/usage.ts";
import type { InputSpec, ProcessInput } from "./process-input.ts";
import type { MountPoints } from "./root/mount-points.ts";
import type { NamespaceMount } from "./root/namespace-mount.ts";
import type { Locate } from "./root/root-path.ts";
import type { ContainerRuntime } from "./runtime/runtime.ts";
import type { SandboxMount } from "./sandbox-mounts.ts";
import type { SandboxProcess } from "./sandbox-process.ts";

export interface SandboxHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
  networks: Networks;
}

/** Further mounts of a sandbox while its command runs. */
export interface RequestMounts {
  /** Mounts in the sandbox's mount namespace, beside its root. */
  inNamespace: readonly NamespaceMount[];
  /** The path of one of these mounts that is in memory, for data that must not be on a disk. */
  memory: string | undefined;
  /** Called once they are mounted, to make the contents of those in memory. For `machine` see `place`. */
  fillMemory: (machine: string) => Promise<void>;
  /**
   * Called once the root is mounted, with its mount points; adds its own to them. `machine` is the root directory of the mount
   * namespace, as this process reaches it.
   */
  place: (root: string, points: MountPoints & { upper: string }, machine: string) => PlacedMounts;
}

export interface PlacedMounts {
  mounts: readonly SandboxMount[];
  locate: Locate;
  /** Throws for a path (without links) that is not a safe working directory. */
  requireStable: (directory: string) => void;
}

export interface SandboxRequest {
  runtime: ContainerRuntime;
  /** The container's unique name. */
  id: string;
  /** The operation's own directory. */
  directory: string;
  /** The image's layers, the uppermost first. */
  layers: readonly [number, ...number[]];
  /** Fills the upper directory with the request's files before it is mounted. */
  fill: (upper: string) => Promise<void>;
  /** The request's own mounts. */
  mounts: RequestMounts;
  /** Called with the mounted root, since the command's user may depend on the image's files. */
  process: (root: string) => SandboxProcess;
  hostname: string;
  network: NetworkMode;
  /** Further lines of `/etc/hosts`. */
  extraHosts: readonly ExtraHost[];
  /** True if `/etc/hosts` and `/etc/resolv.conf` are read-only. */
  hasReadonlyNetworkFiles: boolean;
  /** The beginning of standard input. More follows through `input`, unless this is all. */
  stdin: InputSpec;
  input: ProcessInput;
  timeoutSeconds: number;
  limits: InstanceLimits;
  onStart: (sandbox: LiveSandbox) => void;
  /** An open descriptor of the command's terminal, if it has one: runc sets the terminal's size through it. */
  terminal?: number | undefined;
  /** Called with output. More is read only after the returned promise, if any, has resolved. */
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => Promise<void> | void;
  /** True if another process has cancelled the command, and killed it. */
  isCancelled: () => boolean;
  /** Called when the command is killed before its end. */
  onKill: () => void;
  /** Awaited as soon as the command has ended, with everything that ran beside it. */
  onEnd: () => Promise<void>;
  /** Ends the command and all processes that it started. */
  signal: AbortSignal;
}

export interface LimitHold {
  /** The command line prefix for the runtime of a process beside the command. */
  readonly prefix: readonly string[];
  /** Starts a helper whose child is such a runtime, or becomes one. */
  hold<Started extends { pid: number }>(start: () => Started): Started;
  /** Call it when the helper with this process id has ended. */
  release(helper: number): void;
}

/** A sandbox whose command runs. */
export interface LiveSandbox {
  id: string;
  directory: string;
  /** The directory of configurations for its runtime, in the helper's mount namespace. It is in memory if the sandbox has some. */
  configurations: string;
  /** The process id of the helper. The helper has started runc as the first process of a PID namespace. */
  pid: number;
  process: SandboxProcess;
  /** Returns runc's configuration of another process, with the command's limits and rights. */
  configure: (process: SandboxProcess) => object;
  /** Locates paths below the root on this machine, including its mounts. */
  locate: Locate;
  /** The runtime that has started the command. */
  runtime: ContainerRuntime;
  /** Applies the command's limits to processes that are started beside it as well. */
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
