import { existsSync, mkdirSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import type { Platform } from "../../image/platform.ts";
import { startDeadline } from "../../programs/helper.ts";
import type { RegistryCredentials } from "../../registry/credentials.ts";
import { sandboxSpid } from "../../service/wire/operation.ts";
import { archiveFile } from "../import/archive-files.ts";
import { downloadDirectory, downloadImage } from "../import/download.ts";
import { readImageConfig, requireImagePlatform } from "../import/image-config.ts";
import { emptyImage, type ImageParts } from "../import/image-parts.ts";
import type { ImageSource } from "../import/image-source.ts";
import { openLocalImage } from "../import/open-image.ts";
import { repositoryOf } from "../import/registry-settings.ts";
import { requireAccepted } from "../import/signature-policy.ts";
import { createBudget, measureRoom } from "../import-limits.ts";
import { isAbsent } from "../records/absent-layers.ts";
import { addImage, findImportedImage, setTag } from "../records/images.ts";
import { keepBlobs } from "../records/imported-blobs.ts";
import { type LayerMarks, noMarks } from "../records/layer-marks.ts";
import {
  addLayer,
  clearContent,
  findLayerByContent,
  type LayerRecord,
  type LayerToAdd,
  restoreLayer,
} from "../records/layers.ts";
import type { SuccessfulOutcome } from "../records/operations.ts";
import { requireNoFailedSync } from "../records/unsynced-layers.ts";
import { createLayerCheck } from "../records/whole-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { type LayerGroup, planLayers } from "./layer-plan.ts";
import { openLayerThreads } from "./layer-threads.ts";
import { EagerLayers, unpackedPaths, unpackingDirectory, unpackLayers } from "./unpack-layers.ts";

interface ImportSpec {
  source: ImageSource;
  /** The platform of the image; by default the machine's. */
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
): Promise<() => SuccessfulOutcome> {
  const { database, clock } = state;
  const deadline = startDeadline(clock, spec.timeoutSeconds, "the import did not end");
  const signal = AbortSignal.any([run.signal, deadline.signal]);
  const { inUserNamespace, layout, importLimits } = state;
  const threads = openLayerThreads(signal);
  const room = measureRoom(spec.source.name, layout.directory, importLimits);
  const directory = join(run.directory, unpackingDirectory);
  const eager = new EagerLayers({ directory, threads, room, inUserNamespace });
  try {
    mkdirSync(directory);
    const parts = await fetchParts(state, spec, run, { eager, signal });
    const image = readImageConfig(parts, spec.source.name);
    requireImagePlatform(image.platform, spec.source.name, spec.platform);
    const groups = planLayers(state, image.diffIds);
    const report = (message: string) => state.events.append(run.uuid, sandboxSpid, "progress", { message });
    const marks = await unpackLayers(state, groups, {
      parts,
      image,
      run,
      threads,
      eager,
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
      // Layers that are synced later are recorded as lost by `addLayer` if a sync has failed.
      if (!maySyncLater(groups)) requireNoFailedSync(database, run.uuid);
      const createdAt = clock.now();
      const layer = commitLayers(state, groups, { ...run, marks }, createdAt);
      const { config, origin, configDigest } = image;
      const uuid =
        findImportedImage(database, { layer, config, origin, configDigest }) ??
        addImage(database, { layer, config, origin, configDigest, operation: run.uuid, createdAt });
      if (spec.tag !== undefined) setTag(database, spec.tag, uuid);
      return { status: "SUCCESS", error: null, image: uuid, tag: spec.tag };
    };
  } catch (error) {
    // If the deadline has passed, it is the reason, whatever error the stopped work has thrown.
    deadline.signal.throwIfAborted();
    throw error;
  } finally {
    deadline.end();
    await threads.close();
  }
}

/** The temporary files of an import, in the operation's directory. */
const temporaries = [downloadDirectory, archiveFile, unpackingDirectory];

async function fetchParts(
  state: EngineState,
  { source, platform, credentials }: ImportSpec,
  run: OperationRun,
  { eager, signal }: { eager: EagerLayers; signal: AbortSignal },
): Promise<ImageParts> {
  if (source.kind === "scratch") return emptyImage(platform);
  if (source.kind === "registry") {
    const onBlob = (digest: string, path: string) => eager.start(digest, path);
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

/** True if the engine may sync an import's layers later. A layer that replaces a damaged one must be synced at once. */
function maySyncLater(groups: readonly LayerGroup[]): boolean {
  return groups.every(
    ({ existing }) =>
      existing === undefined || existing.isAbsent === true || (existing.isWhole && existing.hasBlobs),
  );
}

/** Records the unpacked directories as layers, and returns the uppermost one. Call it inside a transaction. */
export function commitLayers(
  state: EngineState,
  groups: readonly LayerGroup[],
  {
    uuid,
    directory,
    marks,
  }: Pick<OperationRun, "uuid" | "directory"> & {
    marks: ReadonlyMap<LayerGroup, LayerMarks>;
  },
  createdAt: number,
): number {
  const syncsLater = maySyncLater(groups);
  let top: LayerRecord | undefined;
  for (const group of groups) {
    const places = unpackedPaths(directory, group);
    const layer = {
      content: group.content,
      parent: top,
      directory: places.content,
      createdAt,
      marks: marks.get(group) ?? noMarks,
    };
    const unsyncedIn = { boot: state.boot, operation: uuid };
    top = commitLayer(state, syncsLater ? { ...layer, unsyncedIn } : layer);
    keepBlobs(state.layout, top.id, places.blobs);
  }
  if (syncsLater) state.layerSync.request();
  if (top === undefined) throw new Error("an image has no layer");
  return top.id;
}

function commitLayer(state: EngineState, layer: LayerToAdd & { content: string }): LayerRecord {
  const { database, layout } = state;
  const { content, parent, directory } = layer;
  const existing = findLayerByContent(database, content);
  const isHere = existing !== undefined && !isAbsent(database, existing.id);
  if (isHere && createLayerCheck(state)(existing.id)) return existing;
  if (!existsSync(directory))
    throw new BoughError("a layer of the image was removed while it was being imported: import it again");
  const isInPlace = existing?.parent === (parent?.id ?? null) && existing.depth === (parent?.depth ?? 0) + 1;
  if (existing !== undefined && isInPlace) {
    restoreLayer(database, layout, existing.id, layer);
    return existing;
  }
  // The existing layer's record has another parent, so the layers built on it are lost.
  if (existing !== undefined) clearContent(database, existing.id);
  return addLayer(database, layout, layer);
}
