import type { Helper, SpawnSettings } from "../../../programs/helper.ts";
import type { Layout } from "../../layout.ts";
import type { OwnGroups } from "../limits/own-groups.ts";
import type { NamespaceMount } from "../root/namespace-mount.ts";

/** The program that starts containers: an OCI runtime that this machine has. */
export interface ContainerRuntime {
  readonly name: "runc" | "crun";
  /**
   * True if the runtime makes and mounts a container's control groups by its configuration. Otherwise bough makes them, and starts the
   * runtime inside them.
   */
  readonly makesGroups: boolean;
  /** Mounts that the runtime needs beside a container's root, in the same mount namespace. */
  readonly mounts: readonly NamespaceMount[];
  /** The path of one of these mounts that is in memory, for configurations; `undefined` if they are in the operation's directory. */
  readonly memory: string | undefined;
  /** Makes what a container needs before its first process starts: its control groups, if the runtime makes none. */
  prepare(host: { layout: Layout; inUserNamespace: boolean }, id: string): OwnGroups | undefined;
  /** Returns the command line that starts a container and waits for its end. */
  start(layout: Layout, container: { id: string; directory: string; bundle: string }): string[];
  /** Returns the command line that starts a process beside a container's command and waits for its end. */
  exec(layout: Layout, process: { id: string; log: string; process: string; pid: string }): string[];
  /** Starts a process that becomes the runtime. It inherits the descriptors as 3 and 4. */
  launch(command: readonly string[], place: SpawnSettings): Helper;
  /** Returns the configuration of the system call filter for processes with these capabilities. */
  filter(architecture: string, capabilities: readonly string[]): RuntimeFilter;
  /** True for a trial, which creates a container but does not start its command. */
  readonly onlyCreates: boolean;
  /** Returns a setting of this machine that is likely to keep the runtime from starting any command, if there is one. */
  likelyProblem(): string | undefined;
}

interface RuntimeFilter {
  seccomp: object;
  annotations?: Readonly<Record<string, string>>;
}

/** Arguments by which both runtimes write their errors to a file. */
export function logArguments(path: string): string[] {
  return ["--log", path, "--log-format", "json"];
}
