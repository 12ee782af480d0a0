import type { BuildJob } from "../job.ts";
import type { DirectoryContext } from "./named-context.ts";

/** Returns the job of a step whose files come from a named context instead of the build context. */
export function inDirectory(build: BuildJob, { name, context, ignore }: DirectoryContext): BuildJob {
  const { inputs } = build;
  return {
    ...build,
    ...{ context, ignore },
    inputs: inputs && { ...inputs, file: (path, sha256) => inputs.file(path, sha256, name) },
  };
}
