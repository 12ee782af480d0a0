import type { CacheStore } from "../../builder/scopes/registry/cache-store.ts";
import { type BoughError, usageError } from "../../errors.ts";
import { parseGoDuration } from "../../go/duration.ts";
import {
  type AccessFields,
  defaultWaitMilliseconds,
  findAccess,
  type GithubRef,
  refsOf,
  tagOfRef,
} from "../../registry/github/access.ts";
import { addressOfScope, nameOfScope } from "../../registry/github/scope-address.ts";
import { listWords } from "../command-line/option-values.ts";
import type { GithubFields } from "../entries/cache.ts";
import type { Runtime } from "../process/runtime.ts";

interface GithubOptions extends Pick<Runtime, "environment" | "github" | "isPlugin"> {
  /** The option or variable that names the cache. */
  option: string;
  warn(text: string): void;
}

/** The name that docker buildx has for it. */
const defaultScope = "buildkit";

/**
 * Returns a cache for each branch whose entries the job's token opens: those that it may write, or all. None where docker's
 * builder would leave it out, which is said.
 */
export function githubStores(
  fields: GithubFields,
  use: "read" | "write",
  options: GithubOptions,
): CacheStore[] {
  const { option, environment, github, warn } = options;
  const found = findAccess(fields, environment);
  if (found.kind !== "found") {
    if (options.isPlugin !== true) throw usageError(`${option}: ${reasonAgainst(found)}`, placesHint);
    // Pipelines name it for docker, and a build without its cache is the same build.
    warn(`${option}: ${reasonAgainst(found)}: it is left out`);
    return [];
  }
  const { url, token } = found;
  const { scope = defaultScope, timeout } = fields;
  const address = addressOfScope(scope, url);
  const maxWaitMilliseconds = timeout === undefined ? defaultWaitMilliseconds : readTimeout(timeout, option);
  github.access.set(address, { url, token, maxWaitMilliseconds });
  const refs = refsOf(token).filter(({ isWritable }) => use === "read" || isWritable);
  if (refs.length === 0)
    warn(`${option}: nothing is written to GitHub's cache: the token of this job can only read`);
  return (use === "write" ? refs.slice(0, 1) : refs).map((ref) => storeOf(scope, address, ref));
}

function storeOf(scope: string, address: string, ref: GithubRef): CacheStore {
  const label = `GitHub's cache ${scope}${ref.name === "" ? "" : ` (${ref.name})`}`;
  return { label, address, tag: tagOfRef(ref), name: nameOfScope(scope) };
}

/** Returns why a build can't use GitHub's cache; `undefined` if it can. */
export function reasonAgainstGithub(
  fields: AccessFields,
  environment: Runtime["environment"],
): string | undefined {
  const found = findAccess(fields, environment);
  return found.kind === "found" ? undefined : reasonAgainst(found);
}

function reasonAgainst(found: Exclude<ReturnType<typeof findAccess>, { kind: "found" }>): string {
  return found.kind === "missing"
    ? `type=gha needs ${listWords(found.missing, "and")}, which actions of a GitHub job have`
    : `type=gha: the service at ${found.url} has the first version of the protocol only (ACTIONS_CACHE_SERVICE_V2 is not set)`;
}

const placesHint =
  "A step with `run:` gets them from an action that exports them, such as crazy-max/ghaction-github-runtime. Elsewhere name a registry (type=registry,ref=HOST/NAME:TAG) or a directory (type=local,dest=DIR).";

/** Returns milliseconds. */
function readTimeout(text: string, option: string): number {
  const nanoseconds = parseGoDuration(text);
  if (nanoseconds === undefined || nanoseconds < 0) throw wrongTimeout(text, option);
  return nanoseconds / 1e6;
}

function wrongTimeout(text: string, option: string): BoughError {
  return usageError(
    `${option}: timeout takes a duration such as 90s or 2m, not ${JSON.stringify(text)}`,
    "It is the time that a build waits for a service that is busy.",
  );
}
