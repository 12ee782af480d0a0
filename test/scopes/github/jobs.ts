/** Builds as jobs of GitHub Actions run them: with an empty home each, and with a service on loopback for their cache. */
import { cpSync, existsSync } from "node:fs";
import { join } from "node:path";
import { type BoughOptions, temporaryDirectory } from "../../support/bough.ts";
import { makeBusyboxLayout } from "../../support/busybox-image.ts";
import { writeFiles } from "../../support/files.ts";
import type { GithubCache } from "../../support/github-cache.ts";
import { type Built, buildIn, type Home, newHome } from "../registry/homes.ts";

let base: string | undefined;

/** Returns a directory with a Dockerfile that begins with an image of its context. */
export async function sourceOf(steps: string): Promise<string> {
  // Directories of a test file are removed after it.
  if (base === undefined || !existsSync(base)) {
    base = temporaryDirectory();
    await makeBusyboxLayout(base);
  }
  const source = temporaryDirectory();
  cpSync(base, join(source, "base"), { recursive: true });
  writeFiles(source, { Dockerfile: `FROM oci:./base\n${steps}` });
  return source;
}

export interface Job extends Partial<BoughOptions> {
  /** The branches that the job's token opens. */
  refs?: readonly string[];
  from?: string;
  to?: string;
  home?: Home;
  words?: readonly string[];
}

export function wordsOf({ from = "type=gha", to = "type=gha,mode=max", words = [] }: Job): string[] {
  return ["--allow-local-from", `--cache-from=${from}`, `--cache-to=${to}`, ...words];
}

/** Builds the steps, or a source directory, as a job. */
export async function build(
  cache: GithubCache,
  steps: string | { source: string },
  { refs = [], from, to, home = newHome(), words, environment, ...options }: Job = {},
): Promise<Built> {
  const source = typeof steps === "string" ? await sourceOf(steps) : steps.source;
  return buildIn(
    home,
    source,
    wordsOf({ ...(from && { from }), ...(to && { to }), ...(words && { words }) }),
    {
      ...options,
      environment: environment ?? cache.environmentFor(...refs),
    },
  );
}

/** The number of entries that were begun. */
export function created({ requests }: GithubCache): number {
  return requests.filter((request) => request.endsWith("CreateCacheEntry")).length;
}
