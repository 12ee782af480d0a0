import type { Helper } from "../../../programs/helper.ts";
import type { Layout } from "../../layout.ts";
import type { OwnGroups } from "../limits/own-groups.ts";
import type { NamespaceMount } from "../root/namespace-mount.ts";

/** The program that starts containers: an OCI runtime that this machine has. */
export interface ContainerRuntime {
  readonly name: "runc" | "crun";
  /**
   * True if it makes and mounts a container's control groups by its configuration. Else bough makes them, and starts it inside them.
   */
  readonly makesGroups: boolean;
  /** Mounts that it needs beside a container's root, in the same mount namespace. */
  readonly mounts: readonly NamespaceMount[];
  /** One of these mounts, in memory, for configurations; `undefined`: the operation's directory has them. */
  readonly memory: string | undefined;
  /** Makes what a container needs before its first process starts: its control groups, if the runtime makes none. */
  prepare(host: { layout: Layout; inUserNamespace: boolean }, id: string): OwnGroups | undefined;
  /** Returns the command line that starts a container and waits for its end. */
  start(layout: Layout, container: { id: string; directory: string; bundle: string }): string[];
  /** Returns the command line that starts a process beside a container's command and waits for its end. */
  exec(layout: Layout, process: { id: string; log: string; process: string; pid: string }): string[];
  /** Starts a process that becomes the runtime. It inherits the descriptors as 3 and 4. */
  launch(command: readonly string[], place: RuntimePlace): Helper;
  /** Returns the configuration of the system call filter for processes with these capabilities. */
  filter(architecture: string, capabilities: readonly string[]): RuntimeFilter;
  /** True for a trial: it creates a container, and starts no command. */
  readonly onlyCreates: boolean;
  /** Returns what on this machine is likely to keep it from starting any command; `undefined`: nothing is known. */
  likelyProblem(): string | undefined;
}

export interface RuntimePlace {
  environment: Readonly<Record<string, string>>;
  workingDirectory?: string;
  descriptors?: readonly (number | undefined)[];
}

interface RuntimeFilter {
  seccomp: object;
  annotations?: Readonly<Record<string, string>>;
}

/** Arguments by which both runtimes write their errors to a file. */
export function logTo(path: string): string[] {
  return ["--log", path, "--log-format", "json"];
}
