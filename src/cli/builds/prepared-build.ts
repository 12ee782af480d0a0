import { runBuild } from "../../builder/build.ts";
import type { BuildServices, ServiceBuild } from "../../builder/job.ts";
import type { BuildResult } from "../../builder/result.ts";
import type { Platform } from "../../image/platform.ts";
import { unlessStateDiskFull } from "../../state-failure.ts";
import type { ContextHashes } from "../../store/hashes.ts";
import type { Log } from "../../terminal/log.ts";
import { createDecompress, createGit } from "../contexts/programs.ts";
import type { Runtime } from "../process/runtime.ts";
import type { BuildCache } from "./build-cache.ts";
import type { BuildService } from "./build-services.ts";

/** Returns what a build uses of this machine, besides its files. */
export function machineOf(
  runtime: Runtime,
): Pick<BuildServices, "decompress" | "git" | "openRegistry" | "fetchUrl" | "clock"> {
  const { fetch, clock, environment } = runtime;
  return {
    decompress: createDecompress(runtime.environment.PATH),
    git: createGit(runtime),
    openRegistry: async (address) => {
      const { openBlobSource } = await import("../../registry/open-blob-store.ts");
      return openBlobSource(address, { fetch, clock, environment });
    },
    fetchUrl: runtime.fetch,
    clock: runtime.clock,
  };
}

/** A build on one of its services. */
export interface PreparedBuild {
  service: BuildService;
  build: ServiceBuild;
  cache: BuildCache;
}

interface PlatformInputs {
  platforms: readonly Platform[];
  inputsFor(platform: Platform): ServiceBuild["inputs"];
}

/** Runs the build, and saves what later builds can use: what was done before a failed step is still valid. */
export async function runAndSave(
  prepared: readonly PreparedBuild[],
  { platforms, inputsFor }: PlatformInputs,
  {
    signal,
    written,
    log,
  }: {
    /** Unlike the requests' own, it is not aborted by a failed stage. */
    signal: AbortSignal;
    /** Writes the shared caches, unless other builds are still to add to them. */
    written(): Promise<void>;
    log: Log;
  },
): Promise<BuildResult> {
  const [{ build: first }] = prepared as [PreparedBuild];
  const { hashes, fileStates } = first.source;
  const perPlatform = platforms.flatMap((platform) =>
    prepared
      .filter(({ service }) => service.platforms.includes(platform))
      .map(({ build }) => ({ platform, build: { ...build, inputs: inputsFor(platform) } })),
  );
  try {
    const result =
      perPlatform.length > 1
        ? await (await import("../../builder/platform-builds.ts")).runForPlatforms(perPlatform)
        : await runBuild(first);
    remember(() => {
      // It may be another target's, of the same context, which has just failed.
      if (!first.services.signal.aborted)
        for (const { service } of prepared) service.connection.store.failedSteps.delete(first.asked.session);
      hashes.save();
      if (!fileStates.isUsed) hashes.removeUnqueried();
      fileStates.save();
    }, log);
    const images = imagesOf(
      result,
      platforms,
      prepared.map(({ service }) => service),
    );
    for (const { cache, service } of prepared)
      await cache.add(images.filter((image) => image.service === service).map(({ uuid }) => uuid));
    await written();
    return withProfiles(result, images);
  } catch (error) {
    saveQuietly(hashes);
    saveQuietly(fileStates);
    if (!signal.aborted) {
      for (const { cache } of prepared) await cache.add([]).catch(() => undefined);
      await written().catch(() => undefined);
    }
    throw error;
  }
}

/** An image that was built. */
interface ImageOfService {
  uuid: string;
  /** `undefined` if none was asked for. */
  platform: Platform | undefined;
  service: BuildService;
}

/** Says of the image for each platform which service has it. */
function withProfiles(result: BuildResult, images: readonly ImageOfService[]): BuildResult {
  if (result.platforms === undefined) return result;
  const platforms = result.platforms.map((built, at) => {
    const { option, globals } = images[at]?.service ?? {};
    return option === undefined ? built : { ...built, profile: globals?.profile };
  });
  return { ...result, platforms };
}

/** Returns the image for each platform, with its service. */
export function imagesOf(
  { image, platforms: built }: Pick<BuildResult, "image" | "platforms">,
  platforms: readonly Platform[],
  services: readonly BuildService[],
): ImageOfService[] {
  if (platforms.length === 0)
    return services.map((service) => ({ uuid: image, platform: undefined, service }));
  return platforms.flatMap((platform, at) =>
    services
      .filter((service) => service.platforms.includes(platform))
      .map((service) => ({ uuid: built?.[at]?.image ?? image, platform, service })),
  );
}

/** Writes what only helps later builds. The build's own result or error stands even if the disk is full. */
export function remember(write: () => void, log?: Pick<Log, "warn">): void {
  unlessStateDiskFull(write, () =>
    log?.warn("there is no space left for bough's state: the next build hashes files again"),
  );
}

/** Saves the hashes after a failed build, since they are still valid. Ignores errors: the build's error is the one to report. */
function saveQuietly(hashes: Pick<ContextHashes, "save">): void {
  try {
    hashes.save();
  } catch {
    // The next build hashes the files again.
  }
}
