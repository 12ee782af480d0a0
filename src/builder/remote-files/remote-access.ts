import type { Clock } from "../../clock.ts";
import type { Fetch } from "../../service/service.ts";
import type { GitProgram } from "../addresses/git-program.ts";
import type { BuildJob } from "../job.ts";
import type { KeyPins, ReferenceLock } from "../reference-lock.ts";
import type { GivenSecrets } from "../state/secrets.ts";

/** Everything needed to fetch from any server, for an ADD or for a build's context. */
export interface RemoteAccess {
  buildArgs: ReadonlyMap<string, string>;
  secrets: GivenSecrets;
  /** The size limit of what is fetched. */
  maxAddBytes: number;
  fetchUrl: Fetch;
  git: GitProgram;
  lock?: ReferenceLock | undefined;
  pins?: Pick<KeyPins, "commits"> | undefined;
  clock: Clock;
  signal: AbortSignal;
  /** The beginning of messages, before the address: `ADD`, `the build context`. */
  subject: string;
  warn(message: string): void;
}

export function accessForAdd({ asked, services, lock, emit }: BuildJob): RemoteAccess {
  const { buildArgs, secrets, maxAddBytes, pins } = asked;
  const { fetchUrl, git, clock, signal } = services;
  return {
    ...{ buildArgs, secrets, maxAddBytes, fetchUrl, git, lock, pins, clock, signal },
    subject: "ADD",
    warn: (message) => emit({ type: "warning", message, line: undefined }),
  };
}
