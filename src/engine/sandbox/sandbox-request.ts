import type { Clock } from "../../clock.ts";
import type { LimitHit, NetworkMode } from "../../service/types.ts";
import type { Layout } from "../layout.ts";
import type { Networks } from "../network/networks.ts";
import type { Environment } from "../system/programs.ts";
import type { InstanceLimits } from "./limits.ts";
import type { SandboxProcess } from "./sandbox-config.ts";
import type { StagedFile } from "./staging.ts";

export interface SandboxHost {
  layout: Layout;
  environment: Environment;
  clock: Clock;
  inUserNamespace: boolean;
  networks: Networks;
}

export interface SandboxRequest {
  /** Names the container; no other one has the same. */
  id: string;
  /** The operation's own directory. */
  directory: string;
  /** The image's layers, the uppermost first. */
  chain: readonly [number, ...number[]];
  files: readonly StagedFile[];
  /** Told of the mounted root, since who runs the command may depend on the image's files. */
  process: (root: string) => SandboxProcess;
  hostname: string;
  network: NetworkMode;
  stdin: Uint8Array | undefined;
  timeoutSeconds: number;
  limits: InstanceLimits;
  onStart: (pid: number, process: SandboxProcess) => void;
  onOutput: (stream: "stdout" | "stderr", chunk: Uint8Array) => void;
  /** Ends the command and all that it started. */
  signal: AbortSignal;
}

export interface SandboxOutcome {
  pid: number;
  exitCode: number;
  timedOut: boolean;
  elapsedSeconds: number;
  limitsHit: readonly LimitHit[];
}
