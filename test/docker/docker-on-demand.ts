import { type Docker, startDocker } from "../support/docker.ts";

/** Docker with base images, by their names in a FROM: started when something is asked of it that an earlier run has not kept. */
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
