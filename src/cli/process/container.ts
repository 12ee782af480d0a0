import { existsSync, readFileSync } from "node:fs";
import type { Environment } from "../../home-directory.ts";

/** The kinds of container that bough distinguishes, since they have different settings. */
export type ContainerKind = "Docker" | "Podman" | "Kubernetes" | "gVisor" | "LXC" | "another kind";

/** Returns the kind of container that this process runs in; `undefined` if nothing indicates a container. */
export function findContainer(
  environment: Environment,
  has: (path: string) => boolean = existsSync,
  read: (path: string) => string = readText,
): ContainerKind | undefined {
  // gVisor's kernel always reports this version and date.
  if (/^Linux version 4\.4\.0 .*Sun Jan 10 15:06:54 PST 2016/.test(read("/proc/version"))) return "gVisor";
  if (environment.KUBERNETES_SERVICE_HOST || has("/var/run/secrets/kubernetes.io")) return "Kubernetes";
  if (has("/run/.containerenv")) return "Podman";
  // A machine that was made from an image can have /.dockerenv, too.
  if (has("/.dockerenv") && / \/etc\/hostname /.test(read("/proc/self/mountinfo"))) return "Docker";
  const name = environment.container || read("/run/systemd/container").trim();
  if (name === "") return undefined;
  return name.startsWith("lxc") ? "LXC" : "another kind";
}

/** Returns the settings that let bough make user namespaces and mount in them, in the syntax of the container's engine. */
export function settingsFor(kind: ContainerKind): string {
  switch (kind) {
    case "Kubernetes":
      return "set seccompProfile and appArmorProfile of its securityContext to {type: Unconfined}, and hostUsers: false in the pod's spec";
    case "LXC":
      return "set security.nesting=true (lxc.include = /usr/share/lxc/config/nesting.conf)";
    case "gVisor":
      return "start it with another runtime than gVisor's runsc, such as --runtime=runc, with --security-opt seccomp=unconfined --security-opt apparmor=unconfined";
    case "Docker":
    case "Podman":
    case "another kind":
      return "start it with --security-opt seccomp=unconfined --security-opt apparmor=unconfined";
  }
}

/** Returns "" if the file can't be read. */
function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}
