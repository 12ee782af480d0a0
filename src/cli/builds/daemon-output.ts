/** A build whose image is for docker's daemon: `--load`, `-o type=docker`. */
import type { BuildServices } from "../../builder/job.ts";
import type { BuildResult } from "../../builder/result.ts";
import { usageError } from "../../errors.ts";
import type { Log } from "../../terminal/log.ts";
import { type BuildOutput, isForDaemon } from "../export/build-outputs.ts";
import { type Daemon, findDaemon } from "../export/daemon.ts";
import type { Runtime } from "../process/runtime.ts";
import { openScratch, withScratchHint } from "../process/scratch.ts";

interface DaemonOutput {
  daemon: Daemon;
  /** Throws a usage BoughError for what the daemon's store has no place for. */
  requireKeeps(wanted: Readonly<Record<keyof typeof alternatives, boolean>>): void;
  /** Images that only the daemon has are bases, too. */
  saveImage: BuildServices["saveImage"];
}

/** `kept`: there is no daemon, and the image stays in bough's store. */
interface FoundOutputs {
  outputs: readonly BuildOutput[];
  daemon?: DaemonOutput;
  kept?: { say(result: BuildResult, log: Pick<Log, "info">): void };
}

/** What to do instead. */
const alternatives = {
  "images of several platforms": "one --platform",
  "provenance and packages": "neither --provenance nor --sbom",
};

/** Finds docker's daemon. Without one, the outputs for it are left out. */
export async function findDaemonFor(
  outputs: readonly BuildOutput[],
  runtime: Runtime,
): Promise<FoundOutputs> {
  const found = await findDaemon(runtime);
  if (found.daemon !== undefined) return { outputs, daemon: outputTo(found.daemon, runtime) };
  const { reason } = found;
  return {
    outputs: outputs.filter((output) => !isForDaemon([output])),
    kept: {
      say: ({ image, tags: [tag] }, log) =>
        log.info(`the image is in bough's own store, since ${reason}: \`bough run ${tag ?? image}\` runs it`),
    },
  };
}

function outputTo(daemon: Daemon, { environment }: Runtime): DaemonOutput {
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
    async saveImage(reference) {
      const scratch = openScratch("export", environment);
      try {
        if (await daemon.save(reference, scratch.path))
          return { url: `docker-archive:${scratch.path}`, [Symbol.dispose]: scratch[Symbol.dispose] };
      } catch (error) {
        scratch[Symbol.dispose]();
        throw withScratchHint(error, scratch);
      }
      scratch[Symbol.dispose]();
      return undefined;
    },
  };
}
