/** Docker's daemon in a build: its images are bases, and the build's image may go there (`--load`, `-o type=docker`). */
import type { DaemonImages } from "../../builder/job.ts";
import type { BuildResult } from "../../builder/result.ts";
import { BoughError, usageError } from "../../errors.ts";
import type { Log } from "../../terminal/log.ts";
import { type BuildOutput, isForDaemon } from "../export/build-outputs.ts";
import { type Daemon, findDaemon } from "../export/daemon.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch, withScratchHint } from "../process/scratch.ts";

interface DaemonOutput {
  daemon: Daemon;
  /** Throws a usage BoughError for what the daemon's store has no place for. */
  requireKeeps(wanted: Readonly<Record<keyof typeof alternatives, boolean>>): void;
}

/** `kept`: there is no daemon, and the image stays in bough's store. */
export interface FoundOutputs {
  outputs: readonly BuildOutput[];
  daemon?: DaemonOutput;
  kept?: { say(result: BuildResult, log: Pick<Log, "info">): void };
  images?: DaemonImages;
}

/** What to do instead. */
const alternatives = {
  "images of several platforms": "one --platform",
  "provenance and packages": "neither --provenance nor --sbom",
};

/**
 * Finds docker's daemon. Without one, the outputs for it are left out. In the place of docker's builder its images are found for other
 * outputs, too.
 */
export async function findDaemonFor(
  outputs: readonly BuildOutput[],
  runtime: Runtime,
  log: Pick<Log, "warn">,
): Promise<FoundOutputs> {
  const decides = runtime.isPlugin === true;
  if (!isForDaemon(outputs)) {
    if (!decides) return { outputs };
    const daemon = await findAnswering(runtime, log);
    return { outputs, ...(daemon && { images: imagesOf(daemon, runtime, decides) }) };
  }
  const found = await findDaemon(runtime);
  if (found.daemon !== undefined) {
    const { daemon } = found;
    const kept = daemon.hasContentStore ? outputs : outputs.map(withoutAnnotations);
    return { outputs: kept, daemon: outputTo(daemon), images: imagesOf(daemon, runtime, decides) };
  }
  const { reason } = found;
  return {
    outputs: outputs.filter((output) => !isForDaemon([output])),
    kept: {
      say: ({ image, tags: [tag] }, log) =>
        log.info(`the image is in bough's own store, since ${reason}: \`bough run ${tag ?? image}\` runs it`),
    },
  };
}

/** A store of unpacked layers keeps no manifests. */
function withoutAnnotations(output: BuildOutput): BuildOutput {
  const { annotations, ignored } = output;
  if (annotations.length === 0 || !isForDaemon([output])) return output;
  const reason = "docker's daemon keeps none, unless it has containerd's image store";
  return { ...output, annotations: [], ignored: [...ignored, `--annotation is left out: ${reason}`] };
}

/** Nothing goes to the daemon, so that the build can do without it. */
async function findAnswering(runtime: Runtime, log: Pick<Log, "warn">): Promise<Daemon | undefined> {
  try {
    return (await findDaemon(runtime)).daemon;
  } catch (error) {
    runtime.signal.throwIfAborted();
    if (!(error instanceof BoughError) || error.kind === "usage") throw error;
    log.warn(`${error.message}: FROM takes images of bough's own store and of registries`);
    return undefined;
  }
}

function outputTo(daemon: Daemon): DaemonOutput {
  return {
    daemon,
    requireKeeps(wanted) {
      for (const [what, otherwise] of Object.entries(alternatives))
        if (!daemon.hasContentStore && wanted[what as keyof typeof alternatives])
          throw usageError(
            `the docker daemon at ${daemon.address} cannot keep ${what}`,
            `Give --push or -o type=oci,dest=PATH, or ${otherwise}; docker can with containerd's image store.`,
          );
    },
  };
}

function imagesOf(daemon: Daemon, { environment }: Runtime, decides: boolean): DaemonImages {
  return {
    decides,
    async find(reference, platform) {
      const found = await daemon.findImage(reference, platform);
      return (
        found && {
          ...found,
          async save() {
            const scratch = openScratch("export", environment);
            try {
              await daemon.save(found, platform, scratch.path);
            } catch (error) {
              scratch[Symbol.dispose]();
              throw withScratchHint(error, scratch);
            }
            return { url: `docker-archive:${scratch.path}`, [Symbol.dispose]: scratch[Symbol.dispose] };
          },
        }
      );
    },
  };
}
