import { join } from "node:path";
import type { Layout } from "../../layout.ts";
import { type Environment, findProgram } from "../../system/programs.ts";
import type { NamespaceMount } from "../root/namespace-mount.ts";
import { type Crun, crunProgram } from "./crun.ts";

/** The program that starts containers: an OCI runtime that this machine has. */
export type ContainerRuntime = { kind: "runc"; program: string } | Crun;

export function findRunc(environment: Environment): ContainerRuntime {
  return { kind: "runc", program: findProgram("runc", environment) };
}

/** Returns the command line that starts a container and waits for its end. */
export function runCommand(
  runtime: ContainerRuntime,
  layout: Layout,
  { id, directory, bundle }: { id: string; directory: string; bundle: string },
): string[] {
  const files = ["--bundle", bundle, "--pid-file", join(directory, "pid")];
  // The control groups must stay until bough has read which limits the command ran into.
  const keep = runtime.kind === "runc" ? ["--keep"] : [];
  const verb = runtime.kind === "crun" && runtime.onlyCreates ? "create" : "run";
  return [...commandLine(runtime, layout, join(directory, "log")), verb, ...keep, ...files, id];
}

/** Returns the command line that starts a process beside a container's command and waits for its end. */
export function execCommand(
  runtime: ContainerRuntime,
  layout: Layout,
  { id, log, process, pid }: { id: string; log: string; process: string; pid: string },
): string[] {
  return [...commandLine(runtime, layout, log), "exec", "--process", process, "--pid-file", pid, id];
}

/** Returns the mounts that the runtime needs: memory for crun's configuration and state. */
export function runtimeMounts(runtime: ContainerRuntime): NamespaceMount[] {
  return runtime.kind === "runc"
    ? []
    : [{ type: "tmpfs", options: "mode=0700,size=64m", place: runtime.state }];
}

function commandLine(runtime: ContainerRuntime, layout: Layout, log: string): string[] {
  const logging = ["--log", log, "--log-format", "json"];
  if (runtime.kind === "runc") return [runtime.program, "--root", layout.containers, ...logging];
  return [crunProgram(runtime), "--root", runtime.state, "--cgroup-manager", "disabled", ...logging];
}
