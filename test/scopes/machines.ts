/** Machines that share a service. Each has its own checkout and home. */
import type { FakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

export interface Machine {
  context: string;
  home: string;
}

export interface Built extends Ended {
  /** The commands that ran for the build, without those that store an index. */
  runs: string[];
  /** The requests, such as `GET /v1/images`, in order. */
  calls: string[];
}

export function newMachine(files: Readonly<Record<string, FileSpec>>): Machine {
  const context = temporaryDirectory();
  writeFiles(context, files);
  return { context, home: temporaryDirectory() };
}

export async function buildOn(
  { context, home }: Machine,
  service: FakeService,
  words: readonly string[],
  options: Partial<BoughOptions> = {},
): Promise<Built> {
  service.clearRequests();
  const before = service.state.instances.length;
  const ended = await bough({ context, home }, service, ["build", ".", ...words], options);
  const runs = service.state.instances
    .slice(before)
    .map(({ command }) => command)
    .filter((command) => command !== ":");
  const calls = service.requests.map(({ method, path }) => `${method} ${path}`);
  return { ...ended, runs, calls };
}

export function bough(
  { context, home }: Machine,
  service: Pick<FakeService, "url">,
  words: readonly string[],
  { environment, ...options }: Partial<BoughOptions> = {},
): Promise<Ended> {
  return runBough(["--url", service.url, "--token", "t0ken-t0ken", ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: home, ...environment },
    ...options,
  });
}
