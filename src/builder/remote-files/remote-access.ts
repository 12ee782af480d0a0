import type { BuildJob } from "../job.ts";

/** What it takes to fetch from anybody's server, for an ADD or for a build's context. */
export interface RemoteAccess
  extends Pick<BuildJob, "buildArgs" | "secrets" | "maxAddBytes" | "fetchUrl" | "git" | "clock" | "signal"> {
  /** What messages say before the address: `ADD`, `the build context`. */
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
