import { type BuildContext, describeContext } from "../../context/build-context.ts";
import type { FileSystem } from "../../context/file-system/file-system.ts";
import { escapeGlob } from "../../context/patterns/glob.ts";
import type { IgnoreRules } from "../../context/patterns/ignore.ts";
import type { SourceMatch } from "../../context/sources/entry-list.ts";
import { type ResolvedSources, resolveSources } from "../../context/sources/sources.ts";
import type { RunInstruction } from "../../dockerfile/instruction.ts";
import { BoughError } from "../../errors.ts";
import { directoryMode } from "../../image/file-mode.ts";
import { hashMatches } from "../copy/hash-sources.ts";
import { stageEntry } from "../copy/staged-items.ts";
import type { BuildJob } from "../job.ts";
import { titleOf } from "../location.ts";
import { root } from "../owners/ownership.ts";
import type { Staged } from "../state/staged.ts";

/** The parts of a step's job that finding the files of a mount needs. */
interface MountingJob extends Pick<BuildJob, "inputs"> {
  services: Pick<BuildJob["services"], "signal" | "clock">;
  source: Omit<BuildJob["source"], "fileStates">;
  asked: Pick<BuildJob["asked"], "dialect">;
  eagerUploads: Parameters<typeof hashMatches>[1]["eagerUploads"];
  emit: BuildJob["emit"];
}

/** Returns the files of the context that a bind mount shows, hashed as for a COPY: by path below it, a lone file as "". */
export async function stageMountedFiles(
  path: string,
  instruction: RunInstruction,
  build: MountingJob,
): Promise<Staged> {
  const { signal, clock } = build.services;
  const { hashes: cache } = build.source;
  const { dialect } = build.asked;
  const { eagerUploads, inputs, emit } = build;
  const { match, warnings, excluded } = await findMountedFiles(path, { ...build.source, signal });
  const line = instruction.range.start;
  for (const warning of warnings) emit({ type: "warning", ...warning, line });
  if (excluded.length > 0) emit({ type: "excluded", title: titleOf(instruction), line, paths: excluded });
  if (dialect.copiesAsBuildKit) match.entries.groupLinks();
  await hashMatches([match], { signal, clock, cache, eagerUploads, inputs });
  // As in BuildKit, root owns the files of a context.
  const owned = { ...root, line };
  return new Map(
    Array.from(match.entries, (entry) => [
      match.isDirectory ? entry.relativePath : "",
      // As in BuildKit, the mode of the context itself is not used: it is seldom chosen on purpose.
      stageEntry({ entry, mode: entry.contextPath === "" ? directoryMode : entry.mode }, owned),
    ]),
  );
}

/** The files of a bind mount: a file, or a directory with all that is in it. */
export interface MountedFiles extends Pick<ResolvedSources, "warnings" | "excluded"> {
  match: SourceMatch;
}

/** @throws BoughError if the context has nothing of that name; globs are not expanded */
export async function findMountedFiles(
  path: string,
  options: { context: BuildContext; ignore: IgnoreRules; signal: AbortSignal; files: FileSystem },
): Promise<MountedFiles> {
  const { context, ignore, signal, files } = options;
  const sources = [escapeGlob(path)];
  const { matches, ...found } = await resolveSources({ context, ignore, signal, files, sources });
  const [match] = matches;
  if (match === undefined)
    throw new BoughError(
      `--mount=type=bind: ${JSON.stringify(path)} is excluded from ${describeContext(context)}`,
      {
        kind: "usage",
        hint: "Check .dockerignore and the default excludes.",
      },
    );
  return { match, ...found };
}
