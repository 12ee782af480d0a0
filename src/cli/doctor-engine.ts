/** What the embedded engine needs of the machine: asked for, and tried, without starting it. */
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmdirSync } from "node:fs";
import { join } from "node:path";
import { helperEnvironment, locate, missingPrograms } from "../engine/system/programs.ts";
import type { BoughError } from "../errors.ts";
import { type Finding, failureOf } from "./finding.ts";
import type { Runtime } from "./runtime.ts";
import { stateDirectory } from "./state-directory.ts";
import { findUserNamespaceProblem, needsUserNamespace, userNamespaceEntry } from "./user-namespace.ts";

export interface EngineFacts {
  isRoot: boolean;
  /** Why there is no user namespace for who is not root. */
  namespaceProblem: BoughError | undefined;
  missing: readonly { program: string; package: string }[];
  /** Of the programs that are there, such as `runc 1.1.5`. */
  versions: readonly string[];
  /** What the kernel said to an overlay mount; `untried` where a mount can't be tried. */
  overlay: "mounted" | "untried" | { problem: string };
}

/** `isNeeded`: nothing else is configured, so what is missing for the engine is missing for all. */
export function diagnoseEngine(facts: EngineFacts, isNeeded: boolean): Finding[] {
  const { isRoot, namespaceProblem, missing, versions, overlay } = facts;
  const unmet = isNeeded ? "failed" : "warning";
  return [
    namespaceProblem === undefined
      ? { check: "engine's user", status: "ok", detail: isRoot ? "root" : "root of a user namespace" }
      : failureOf("engine's user", namespaceProblem, unmet),
    missing.length === 0
      ? { check: "engine's programs", status: "ok", detail: versions.join(", ") }
      : {
          check: "engine's programs",
          status: unmet,
          detail: `missing: ${missing.map(({ program }) => program).join(", ")}`,
          fix: `apt-get install ${missing.map((entry) => entry.package).join(" ")}`,
        },
    ...(overlay === "untried" ? [] : [diagnoseOverlay(overlay, unmet)]),
  ];
}

function diagnoseOverlay(overlay: "mounted" | { problem: string }, unmet: "failed" | "warning"): Finding {
  const check = "engine's layers";
  if (overlay === "mounted") return { check, status: "ok", detail: "overlayfs can be mounted" };
  return {
    check,
    status: unmet,
    detail: `overlayfs can't be mounted: ${overlay.problem}`,
    fix: "It needs Linux 5.11 or later, the right to mount (inside of a container: --privileged), and BOUGH_HOME on ext4, xfs, btrfs or tmpfs.",
  };
}

export function examineEngine(runtime: Runtime): EngineFacts {
  const missing = missingPrograms(runtime.environment);
  const needsNamespace = needsUserNamespace(runtime);
  const namespaceProblem = needsNamespace ? findUserNamespaceProblem(runtime) : undefined;
  const cannotTry =
    namespaceProblem !== undefined || missing.some(({ program }) => /^(unshare|mount|sh)$/.test(program));
  return {
    isRoot: !needsNamespace,
    namespaceProblem,
    missing,
    versions: missing.length > 0 ? [] : programVersions(runtime),
    overlay: cannotTry ? "untried" : tryOverlay(runtime, needsNamespace),
  };
}

function programVersions({ environment }: Runtime): string[] {
  const env = helperEnvironment(environment);
  return (["runc", "skopeo", "umoci"] as const).map((program) => {
    const { stdout } = spawnSync(locate(program, environment), ["--version"], { env, encoding: "utf8" });
    return [program, ...(/\d+\.\d[\w.+~-]*/.exec(stdout) ?? [])].join(" ");
  });
}

/** In a mount namespace of its own, in which it also clears up: an ordinary user can't remove what overlayfs leaves. */
const overlayTrial = `mkdir lower upper work merged
mount -t overlay -o "$1" overlay merged; status=$?
umount merged 2>&-; rm -rf lower upper work merged; exit $status`;

function tryOverlay(runtime: Runtime, needsNamespace: boolean): EngineFacts["overlay"] {
  const { environment } = runtime;
  try {
    const parent = stateDirectory(runtime);
    mkdirSync(parent, { recursive: true, mode: 0o700 });
    const directory = mkdtempSync(join(parent, "overlay-trial-"));
    const options = `lowerdir=lower,upperdir=upper,workdir=work${needsNamespace ? ",userxattr" : ""}`;
    const [program = "", ...words] = needsNamespace ? userNamespaceEntry : ["unshare", "--mount", "--"];
    const { status, stderr } = spawnSync(program, [...words, "sh", "-c", overlayTrial, "sh", options], {
      cwd: directory,
      env: helperEnvironment(environment),
      encoding: "utf8",
    });
    rmdirSync(directory);
    return status === 0 ? "mounted" : { problem: stderr.split("\n")[0]?.trim() || `exit code ${status}` };
  } catch {
    // No room for the trial: that is the state directory's finding.
    return "untried";
  }
}
