import type { BuildJob } from "../job.ts";
import type { DirectoryContext } from "./named-context.ts";

/** Returns the job of a step whose files come from a named context instead of the build context. */
export async function inDirectory(build: BuildJob, directory: DirectoryContext): Promise<BuildJob> {
  const { inputs } = build;
  const { name } = directory;
  return {
    ...build,
    ...(await directory.open(build)),
    inputs: inputs && { ...inputs, file: (path, sha256) => inputs.file(path, sha256, name) },
  };
}
