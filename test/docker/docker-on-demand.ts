import { type Docker, startDocker } from "../support/docker.ts";

/** Starts Docker and imports the base images at the first `get`, which kept results of an earlier run make unnecessary. */
export function dockerOnDemand(directory: string, bases: () => Readonly<Record<string, string>>) {
  let started: Promise<Docker> | undefined;
  const start = async () => {
    const docker = await startDocker(directory);
    for (const [name, source] of Object.entries(bases())) await docker.importBase(source, name);
    return docker;
  };
  return {
    get(): Promise<Docker> {
      started ??= start();
      return started;
    },
    async close(): Promise<void> {
      await (await started)?.close();
    },
  };
}
