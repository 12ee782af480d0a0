import { join, resolve } from "node:path";
import type { ExportedAs } from "../../builder/result.ts";
import { formatPlatform } from "../../image/platform.ts";
import { createSemaphore, type Semaphore } from "../../semaphore.ts";
import type { Log } from "../../terminal/log.ts";
import type { Surroundings } from "../command-line/command.ts";
import { partsFor } from "../export/annotations.ts";
import type { AttestOutput } from "../export/attest.ts";
import { type BuildOutput, isInline } from "../export/build-outputs.ts";
import type { Daemon } from "../export/daemon.ts";
import { deliverImage } from "../export/deliver.ts";
import { nameDestination } from "../export/destination.ts";
import { platformOfImage } from "../export/image-source.ts";
import { makeParents } from "../export/output-places.ts";
import { copyDirectory } from "../images/cp.ts";
import { findDescription } from "../references/image-argument.ts";
import type { Connection } from "../service/connection.ts";
import type { SignImage } from "../signing/open-signer.ts";

/** A built image, and what is written with it. */
export interface BuiltImage {
  uuid: string;
  attest: AttestOutput | undefined;
  /** The service that has it. */
  from: Pick<Connection, "service" | "store">;
}

interface BuildToWrite {
  images: readonly BuiltImage[];
  /** True if files get a directory for each platform, as with several or BUILDKIT_MULTI_PLATFORM. */
  isMap: boolean;
  sign: SignImage | undefined;
  /** See `ImageToWrite`. */
  topAnnotations: ReadonlyMap<string, string> | undefined;
  /** The directories that builds of this process write to. Each is filled by one at a time: the next replaces files, as in docker. */
  directories: Map<string, Semaphore>;
}

/**
 * Exports what was built, an image for each platform, to all destinations, and returns what was written. Messages go to `log`.
 */
export async function writeBuildOutputs(
  outputs: readonly BuildOutput[],
  { images, isMap, sign, topAnnotations, directories }: BuildToWrite,
  invocation: Surroundings,
  log: Log,
  daemon: Daemon | undefined,
): Promise<ExportedAs[]> {
  const exported: ExportedAs[] = [];
  const described = await Promise.all(
    images.map(async (image) => ({
      ...{ ...image, ...(await findDescription(image.uuid, image.from)) },
      directory: isMap ? await directoryOf(image) : undefined,
    })),
  );
  const [first, ...others] = described;
  if (first === undefined) return [];
  for (const { destinations, ignored, annotations, ...options } of outputs) {
    for (const sentence of ignored) log.warn(sentence);
    const annotated = async (image: typeof first) => ({
      ...image,
      ...(annotations.length > 0 && {
        annotations: partsFor(annotations, await platformOfImage(image.from.service, image.uuid)),
      }),
    });
    const written = [await annotated(first), ...(await Promise.all(others.map(annotated)))] as const;
    const fileTime = options.times.epoch;
    for (const destination of destinations) {
      makeParents(destination);
      if (destination.kind === "local") {
        const isSplit = options.splitsPlatforms ?? isMap;
        await writeFiles(destination.path, { images, isSplit, fileTime, directories }, invocation, log);
        continue;
      }
      const output = { isInline: isInline(destination) };
      const [one, ...more] = written;
      const attested = (image: typeof one) => ({ ...image, attest: image.attest?.(output) });
      const attestedImages = [attested(one), ...more.map(attested)] as const;
      const own = { images: attestedImages, destination, daemon, fileTime, sign, topAnnotations };
      const delivery = { ...options, ...own };
      // The build may be drawn below the log, so this prints only lines.
      const globals = { ...invocation.globals, quiet: true };
      const delivered = await deliverImage(delivery, { runtime: invocation.runtime, globals, log });
      const place = nameDestination(destination);
      if (delivered !== undefined) {
        const { descriptor, configDigest, sentBytes, signature } = delivered;
        exported.push({
          ...{ destination: place, descriptor, configDigest },
          ...(sentBytes !== undefined && { sentBytes }),
          ...(signature && { signature }),
        });
      }
      const digest = delivered === undefined ? "" : `, ${delivered.descriptor.digest}`;
      log.info(`${destination.kind === "daemon" ? "loaded into" : "exported to"} ${place}${digest}`);
    }
  }
  return exported;
}

interface WrittenFiles extends Pick<BuildToWrite, "images" | "directories"> {
  /** True if each platform gets a directory. */
  isSplit: boolean;
  /** The time of all files, in place of their own. */
  fileTime: number | undefined;
}

/** Writes the files of the images into a directory. */
async function writeFiles(
  path: string,
  { images, isSplit, fileTime, directories }: WrittenFiles,
  invocation: Surroundings,
  log: Log,
): Promise<void> {
  const owners = new Map<string, string>();
  const { signal, workingDirectory } = invocation.runtime;
  const turns = directories.getOrInsertComputed(resolve(workingDirectory, path), () => createSemaphore(1));
  const leave = await turns.acquire(signal);
  using _turn = { [Symbol.dispose]: leave };
  for (const image of images) {
    const local = isSplit ? join(path, await directoryOf(image)) : path;
    makeParents({ kind: "local", path: local });
    const from = { image: image.uuid, path: "/", meansContents: true };
    const isShared = !isSplit && images.length > 1;
    const shared = isShared ? { owner: await platformNameOf(image), owners } : undefined;
    const options = { style: "exact", time: fileTime, shared } as const;
    const place = { local, endsWithSlash: true };
    await copyDirectory(from, place, image.from.service, { ...invocation, log }, options);
    log.info(`exported to ${local}`);
  }
}

/** Returns the directory for the files of one platform of several, named as docker buildx names it. */
async function directoryOf(image: BuiltImage): Promise<string> {
  return (await platformNameOf(image)).replaceAll("/", "_");
}

async function platformNameOf({ uuid, from }: BuiltImage): Promise<string> {
  return formatPlatform(await platformOfImage(from.service, uuid));
}
