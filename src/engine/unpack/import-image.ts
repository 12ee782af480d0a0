import { mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Platform } from "../../image/platform.ts";
import { startDeadline } from "../../programs/helper.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { archiveFile } from "../import/archive-files.ts";
import { downloadDirectory, downloadImage } from "../import/download.ts";
import { readImageConfig, requirePlatform } from "../import/image-config.ts";
import { emptyImage, type ImageParts } from "../import/image-parts.ts";
import type { ImageSource } from "../import/image-source.ts";
import { openLocalImage } from "../import/open-image.ts";
import { repositoryOf } from "../import/registry-settings.ts";
import { requireAccepted } from "../import/signature-policy.ts";
import { createBudget, measureRoom } from "../import-limits.ts";
import { addImage, findImportedImage, setTag } from "../records/images.ts";
import type { Success } from "../records/operations.ts";
import { requireNoFailedSync } from "../records/unsynced-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { EarlyLayers } from "./early-layers.ts";
import { keepLayers, maySyncLater } from "./keep-layers.ts";
import { planLayers } from "./layer-plan.ts";
import { openLayerThreads } from "./layer-threads.ts";
import { unpackingDirectory, unpackLayers } from "./unpack-layers.ts";

interface ImportSpec {
  source: ImageSource;
  /** By default the machine's. */
  platform: Platform | undefined;
  credentials: RegistryCredentials | undefined;
  tag: string | undefined;
  timeoutSeconds: number;
}

/**
 * Fetches an image, verifies it and unpacks its layers into layers of the engine. Layers that the engine already has are used.
 * Importing the same image again gives the same UUID; the same content with another configuration gives the same layers.
 */
export async function performImport(
  state: EngineState,
  spec: ImportSpec,
  run: OperationRun,
): Promise<() => Success> {
  const { database, clock } = state;
  const deadline = startDeadline(clock, spec.timeoutSeconds, "the import did not end");
  const signal = AbortSignal.any([run.signal, deadline.signal]);
  const { inUserNamespace, layout, importLimits } = state;
  const threads = openLayerThreads(signal);
  const room = measureRoom(spec.source.name, layout.directory, importLimits);
  const directory = join(run.directory, unpackingDirectory);
  const early = new EarlyLayers({ directory, threads, room, inUserNamespace });
  try {
    mkdirSync(directory);
    const parts = await bringImage(state, spec, run, { early, signal });
    const image = readImageConfig(parts, spec.source.name);
    requirePlatform(image.platform, spec.source.name, spec.platform);
    const groups = planLayers(state, image.diffIds);
    const report = (message: string) => state.events.append(run.uuid, sandboxSpid, "progress", { message });
    const marks = await unpackLayers(state, groups, {
      parts,
      image,
      run,
      threads,
      early,
      room,
      signal,
      report,
    });
    await threads.close();
    if (!maySyncLater(groups)) await state.layerSync.syncNow(signal);
    // The space of temporary files is free before a client learns that the import has ended.
    await Promise.all(
      temporaries.map((name) => rm(join(run.directory, name), { recursive: true, force: true })),
    );
    return () => {
      // Otherwise `addLayer` notes that it is lost.
      if (!maySyncLater(groups)) requireNoFailedSync(database, run.uuid);
      const createdAt = clock.now();
      const layer = keepLayers(state, groups, { ...run, marks }, createdAt);
      const { config, origin, configDigest } = image;
      const uuid =
        findImportedImage(database, { layer, config, origin, configDigest }) ??
        addImage(database, { layer, config, origin, configDigest, operation: run.uuid, createdAt });
      if (spec.tag !== undefined) setTag(database, spec.tag, uuid);
      return { status: "SUCCESS", error: null, image: uuid, tag: spec.tag };
    };
  } catch (error) {
    // What it has stopped may have failed in another way.
    deadline.signal.throwIfAborted();
    throw error;
  } finally {
    deadline.end();
    await threads.close();
  }
}

/** Temporary files of an import, which don't become part of the engine. */
const temporaries = [downloadDirectory, archiveFile, unpackingDirectory];

async function bringImage(
  state: EngineState,
  { source, platform, credentials }: ImportSpec,
  run: OperationRun,
  { early, signal }: { early: EarlyLayers; signal: AbortSignal },
): Promise<ImageParts> {
  if (source.kind === "scratch") return emptyImage(platform);
  if (source.kind === "registry") {
    const onBlob = (digest: string, path: string) => early.start(digest, path);
    const { config, layers } = await downloadImage(state, source, platform, credentials, run, {
      signal,
      onBlob,
    });
    const repository = repositoryOf(source.name)?.address;
    return { config, layers: layers.map((layer) => ({ ...layer, source: repository })) };
  }
  requireAccepted(source, state.environment);
  const budget = createBudget(source.name, state.layout.directory, state.importLimits);
  return openLocalImage(source, platform, run.directory, budget, signal);
}
