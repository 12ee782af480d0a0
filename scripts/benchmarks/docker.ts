import { join } from "node:path";
import { type Docker, startDocker } from "../../test/support/docker.ts";
import type { Bench } from "./bench.ts";
import { importBase } from "./buildah.ts";

let started: Promise<Docker> | undefined;

/** Starts a Docker daemon with the same base image `base:1` as bough's engine. It ends with the benchmarks. */
export function makeDocker(bench: Bench): Promise<Docker> {
  started ??= start(bench);
  return started;
}

async function start(bench: Bench): Promise<Docker> {
  const docker = await startDocker(join(bench.directory("docker"), "daemon"));
  bench.atEnd(docker.close);
  await docker.importBase(await importBase(bench), "base:1");
  return docker;
}

/** Returns the milliseconds of a build. */
export async function timeDocker(docker: Docker, context: string, ...options: string[]): Promise<number> {
  const begun = performance.now();
  await docker.build({ context, dockerfile: join(context, "Dockerfile"), options });
  return performance.now() - begun;
}
