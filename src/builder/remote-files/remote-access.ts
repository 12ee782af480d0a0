import type { BuildJob } from "../job.ts";

/** Everything needed to fetch from any server, for an ADD or for a build's context. */
export interface RemoteAccess
  extends Pick<BuildJob, "buildArgs" | "secrets" | "maxAddBytes" | "fetchUrl" | "git" | "clock" | "signal"> {
  /** The beginning of messages, before the address: `ADD`, `the build context`. */
  subject: string;
  warn(message: string): void;
}

export function accessForAdd(build: BuildJob): RemoteAccess {
  const { buildArgs, secrets, maxAddBytes, fetchUrl, git, clock, signal } = build;
  return {
    ...{ buildArgs, secrets, maxAddBytes, fetchUrl, git, clock, signal },
    subject: "ADD",
    warn: (message) => build.emit({ type: "warning", message, line: undefined }),
  };
}
