import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import { BoughError } from "../../errors.ts";
import { sandboxSpid } from "../records/event-files.ts";
import { addImage, findImportedImage, setTag } from "../records/images.ts";
import { findBlobs, gatherBlobs, keepBlobs } from "../records/imported-blobs.ts";
import { addLayer, findLayerByContent, restoreLayer } from "../records/layers.ts";
import type { Outcome } from "../records/operations.ts";
import { createLayerCheck } from "../records/whole-layers.ts";
import type { OperationRun } from "../run-operation.ts";
import type { EngineState } from "../state.ts";
import { syncToDisk } from "../system/disk.ts";
import { machineArchitecture } from "../system/machine.ts";
import { archiveFile } from "./archive-files.ts";
import { downloadDirectory, downloadImage, type RegistryCredentials } from "./download.ts";
import { emptyImage, makeEmptyRoot } from "./empty-image.ts";
import { type ImportedConfig, readImageConfig } from "./image-config.ts";
import type { ImageParts } from "./image-parts.ts";
import type { ImageSource } from "./image-source.ts";
import { createBudget } from "./limits.ts";
import { openLocalImage } from "./open-image.ts";
import { layoutImage, makePlainLayout } from "./plain-layout.ts";
import { requireAccepted } from "./signature-policy.ts";
import { runTool } from "./tool.ts";

interface ImportSpec {
  source: ImageSource;
  credentials: RegistryCredentials | undefined;
  tag: string | undefined;
  timeoutSeconds: number;
}

/**
 * Brings an image from where it is, verifies it and unpacks it into one layer. The same image again is the same UUID, the same
 * content under another configuration the same layer.
 */
export async function performImport(
  state: EngineState,
  spec: ImportSpec,
  run: OperationRun,
): Promise<() => Outcome> {
  const { database, clock } = state;
  const ended = new AbortController();
  const signal = AbortSignal.any([run.signal, ended.signal]);
  let timedOut = false;
  clock.sleep(spec.timeoutSeconds * 1000, ended.signal).then(
    () => {
      timedOut = true;
      ended.abort();
    },
    () => {},
  );
  try {
    const parts = await bringImage(state, spec, run, signal);
    const image = readImageConfig(parts, spec.source.name);
    checkPlatform(image, spec.source);
    const content = join(run.directory, "content");
    const existing = findLayerByContent(database, image.contentDigest);
    const isUnpacked = existing !== undefined && createLayerCheck(state)(existing.id);
    // Both digests are of what was verified when it was stored: nothing of this one's layers would be used.
    const lacksBlobs = () =>
      parts.layers.length > 0 && existing !== undefined && findBlobs(state.layout, existing.id) === undefined;
    if (!isUnpacked || lacksBlobs()) {
      await takeImage(state, parts, image, { spec, run, content: isUnpacked ? undefined : content, signal });
      await syncToDisk(state, run.directory, signal);
    }
    // Whoever learns that this has ended finds its room on the disk free again.
    await Promise.all(Object.values(temporaries).map((name) => removeTemporary(run, name)));
    return () => {
      const createdAt = clock.now();
      const layer = keepContent(state, image.contentDigest, content, createdAt);
      keepBlobs(state.layout, layer, join(run.directory, gathered));
      const { config, configDigest } = image;
      const uuid =
        findImportedImage(database, { layer, config, configDigest }) ??
        addImage(database, { layer, config, configDigest, operation: run.uuid, createdAt });
      if (spec.tag !== undefined) setTag(database, spec.tag, uuid);
      return { status: "SUCCESS", error: null, image: uuid, tag: spec.tag };
    };
  } catch (error) {
    if (timedOut) throw new BoughError(`the import did not end within ${spec.timeoutSeconds} seconds`);
    throw error;
  } finally {
    ended.abort();
  }
}

/** Returns the layer of the content, which is in the directory `content` where it was not there, or not whole. */
function keepContent(
  { database, layout }: EngineState,
  contentDigest: string,
  content: string,
  createdAt: number,
): number {
  const existing = findLayerByContent(database, contentDigest);
  if (existing !== undefined && createLayerCheck({ database, layout })(existing.id)) return existing.id;
  if (!existsSync(content))
    throw new BoughError("the image's layer was removed while it was being imported: import it again");
  if (existing === undefined) {
    const layer = { directory: content, parent: undefined, content: contentDigest, createdAt };
    return addLayer(database, layout, layer).id;
  }
  restoreLayer(database, layout, existing.id, content);
  return existing.id;
}

/** The files of the image's layers, in the operation's directory. */
const gathered = "blobs";

/** What an import has in its directory beside the unpacked content and these. */
const temporaries = { download: downloadDirectory, archive: archiveFile, layout: "layout" };

function removeTemporary(run: OperationRun, name: string): Promise<void> {
  return rm(join(run.directory, name), { recursive: true, force: true });
}

async function bringImage(
  state: EngineState,
  { source, credentials }: ImportSpec,
  run: OperationRun,
  signal: AbortSignal,
): Promise<ImageParts> {
  if (source.kind === "scratch") return emptyImage;
  if (source.kind === "registry") return downloadImage(state, source, credentials, run, signal);
  requireAccepted(source, state.environment);
  const budget = createBudget(source.name, state.layout.directory, state.importLimits);
  return openLocalImage(source, run.directory, budget, signal);
}

/** Gathers the files of the image's layers, and unpacks them where there is a place for their `content`. */
async function takeImage(
  state: EngineState,
  parts: ImageParts,
  image: ImportedConfig,
  {
    spec,
    run,
    content,
    signal,
  }: { spec: ImportSpec; run: OperationRun; content: string | undefined; signal: AbortSignal },
): Promise<void> {
  if (parts.layers.length === 0 && content !== undefined) makeEmptyRoot(content);
  if (parts.layers.length === 0) return;
  const { name } = spec.source;
  const originals = await makePlainLayout(parts, image, join(run.directory, temporaries.layout), {
    image: name,
    budget: createBudget(name, state.layout.directory, state.importLimits),
    signal,
    report: (message) => state.events.append(run.uuid, sandboxSpid, "progress", { message }),
  });
  if (content !== undefined) {
    const args = ["raw", "unpack", "--image", `${temporaries.layout}:${layoutImage}`, content];
    await runTool(state, run, "umoci", args, signal);
  }
  gatherBlobs(join(run.directory, gathered), originals);
}

/** Refuses an image of another platform. From an index this machine's was picked already. */
function checkPlatform(image: ImportedConfig, source: ImageSource): void {
  const machine = machineArchitecture();
  const { os = "linux", architecture = machine } = image.platform;
  if (os === "linux" && architecture === machine) return;
  throw new BoughError(
    `${source.name} is an image for ${os}/${architecture}, and this machine is linux/${machine}`,
  );
}
