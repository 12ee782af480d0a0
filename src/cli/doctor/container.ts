import { viewsInUserNamespace } from "../../engine/system/kernel-views.ts";
import { isInUserNamespace } from "../../engine/system/user-namespace.ts";
import { type ContainerKind, findContainer } from "../process/container.ts";
import type { Runtime } from "../process/runtime.ts";
import type { CheckResult } from "./check-result.ts";

export interface ContainerFacts {
  kind: ContainerKind;
  /** The row of the table in `bough help ci`. */
  row: "privileged" | "privileged, with users of its own" | "root" | "user";
  /** False if parts of `/proc` are hidden, so that a RUN gets the container's. */
  hasOwnProc: boolean;
}

/** Says which container bough is in. `canBuild`: false if no user namespace can be made, which another check explains. */
export function diagnoseContainer({ kind, row, hasOwnProc }: ContainerFacts, canBuild: boolean): CheckResult {
  const check = "container";
  if (!canBuild)
    return {
      check,
      status: "ok",
      detail: `${kind}, in no row of \`bough help ci\`: see engine's user`,
    };
  const place = `${kind}, in row "${row}" of \`bough help ci\``;
  if (hasOwnProc) return { check, status: "ok", detail: place };
  const detail = `${place}; parts of /proc are hidden, so a RUN sees this container's processes, and no process can be started beside its command`;
  const fix =
    kind === "Kubernetes"
      ? "Set procMount: Unmasked of the container's securityContext, which needs hostUsers: false."
      : "Start the container with --security-opt systempaths=unconfined (Podman: unmask=ALL).";
  return { check, status: "warning", detail, fix };
}

/** Returns `undefined` outside of containers. */
export function examineContainer(runtime: Runtime, needsNamespace: boolean): ContainerFacts | undefined {
  const kind = findContainer(runtime.environment);
  if (kind === undefined) return undefined;
  const hasOwnUsers = isInUserNamespace();
  const hasOwnProc = (!needsNamespace && !hasOwnUsers) || viewsInUserNamespace().proc;
  if (needsNamespace) return { kind, row: runtime.userId === 0 ? "root" : "user", hasOwnProc };
  return { kind, row: hasOwnUsers ? "privileged, with users of its own" : "privileged", hasOwnProc };
}
