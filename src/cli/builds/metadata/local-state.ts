import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../errors.ts";
import type { Log } from "../../../terminal/log.ts";
import { buildRefsDirectory } from "../../history/buildx-refs.ts";
import type { BuildInputs } from "../inputs.ts";
import type { BuildInvocation } from "../request.ts";
import { buildRefOf } from "./build-ref.ts";
import { readMetadataOptions } from "./options.ts";

/**
 * Notes what a build is made of where docker buildx does, if warnings are asked for: docker's action for GitHub finds the last build
 * there, also one that has failed, and the Dockerfile beside whose lines it shows them.
 */
export function noteForDocker(
  build: { id: string },
  { location, target, fetched, dockerfile }: BuildInputs,
  { runtime, options }: Pick<BuildInvocation, "runtime" | "options">,
  log: Pick<Log, "debug">,
): void {
  if (!readMetadataOptions(runtime).hasWarnings) return;
  const { builder, node, id } = buildRefOf(build.id, runtime);
  const directory = join(buildRefsDirectory(runtime), builder, node);
  const path = fetched === undefined ? dockerfile.absolutePath : dockerfile.path;
  const state = {
    ...{ Target: target ?? "default", LocalPath: location },
    DockerfilePath: options.dockerfile === "-" ? "-" : path,
  };
  try {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    writeFileSync(join(directory, id), JSON.stringify(state));
  } catch (error) {
    // A directory that can't be written costs the annotations only.
    log.debug(`the build is not noted for docker: ${messageOf(error)}`);
  }
}
