import { constants, lstatSync, renameSync, rmSync, type Stats, unlinkSync } from "node:fs";
import { join } from "node:path";
import { createPace, type Pace } from "../../pace.ts";
import { copyMetadata, setFileTimes } from "../copies/upper-tree.ts";
import type { ImportedConfig } from "../import/image-config.ts";
import type { ImageParts, LayerFile } from "../import/image-parts.ts";
import type { Room } from "../import-limits.ts";
import { gatherBlobs, type ImportedBlob } from "../records/imported-blobs.ts";
import { countMarks, type LayerMarks, noMarks } from "../records/layer-marks.ts";
import { layerDirectory } from "../records/layers.ts";
import type { OperationRun } from "../run-operation.ts";
import { LayerTree, type MergedDirectory } from "../sandbox/root/layer-tree.ts";
import { lstatIfExists } from "../sandbox/root/root-path.ts";
import type { EngineState } from "../state.ts";
import { makeDirectory } from "../system/owner-and-mode.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";
import { isOpaque, isWhiteout, markOpaque } from "../system/xattrs.ts";
import { completeLayer, type DeferredParts } from "./complete-layer.ts";
import type { LayerGroup } from "./layer-plan.ts";
import { type LayerThreads, needsThread } from "./layer-threads.ts";
import { type LayerJob, requireSameDigest, type UnpackedLayer } from "./unpack-layer.ts";

interface UnpackOptions {
  parts: Pick<ImageParts, "layers">;
  image: Pick<ImportedConfig, "diffIds">;
  run: OperationRun;
  threads: LayerThreads;
  eager: EagerLayers;
  room: Room;
  signal: AbortSignal;
  report: (message: string) => void;
  /** Called with the index of a layer that can't be unpacked, before the error is thrown. `isForged` is true if it is another layer. */
  onFailure?: (index: number, isForged: boolean) => void;
}

/** The name of the directory for layers that are being unpacked, in the operation's directory. */
export const unpackingDirectory = "unpacking";

/** Returns the paths of a group's content and blobs in the operation's directory. */
export function unpackedPaths(directory: string, { to }: LayerGroup): { content: string; blobs: string } {
  return { content: join(directory, `content-${to}`), blobs: join(directory, `blobs-${to}`) };
}

/** Unpacks the parts that each group lacks: its content, its blobs, or both. Returns the marks of the contents. */
export async function unpackLayers(
  state: EngineState,
  groups: readonly LayerGroup[],
  options: UnpackOptions,
): Promise<ReadonlyMap<LayerGroup, LayerMarks>> {
  const { layout, inUserNamespace } = state;
  const { parts, run, signal } = options;
  const pace = createPace(signal);
  const missing = groups.filter(({ existing }) => !existing?.isWhole || !existing.hasBlobs);
  const unpacking = new Map(missing.map((group) => [group, unpackGroup(group, state, options)]));
  for (const unpacked of unpacking.values()) unpacked.catch(() => undefined);
  /** The directories of the layers below, the uppermost first. */
  const below: string[] = [];
  const marks = new Map<LayerGroup, LayerMarks>();
  for (const group of groups) {
    const unpacked = (await unpacking.get(group)) ?? [];
    const { content, blobs } = unpackedPaths(run.directory, group);
    if (unpacked.length > 0)
      gatherBlobs(
        blobs,
        unpacked.map(({ blob }) => blob),
      );
    if (group.existing?.isWhole) {
      below.unshift(layerDirectory(layout, group.existing.id));
      continue;
    }
    if (parts.layers.length === 0) makeDirectory(content);
    const own: string[] = [];
    for (const { deferred, place } of unpacked) {
      if (deferred !== undefined)
        await completeLayer(place, deferred, [...own, ...below], { inUserNamespace, pace });
      own.unshift(place);
    }
    const [lowest, ...others] = own.reverse();
    for (const other of others) await mergeLayers(lowest ?? "", other, { inUserNamespace, pace });
    if (lowest !== undefined) renameSync(lowest, content);
    if (unpacked.some(({ deferred }) => deferred?.hasWhiteouts))
      await removeNeedlessWhiteouts(content, below, { inUserNamespace, pace });
    const isMarked = unpacked.length > 1 || unpacked.some(({ deferred }) => hasMarks(deferred));
    marks.set(group, isMarked ? await countMarks(content, pace) : noMarks);
    below.unshift(content);
  }
  return marks;
}

function hasMarks(deferred: DeferredParts | undefined): boolean {
  return deferred !== undefined && (deferred.hasWhiteouts || deferred.hasOpaque || deferred.isRootOpaque);
}

interface PlacedLayer extends UnpackedLayer {
  blob: ImportedBlob;
  place: string;
}

function unpackGroup(
  group: LayerGroup,
  { layout, inUserNamespace }: EngineState,
  options: UnpackOptions,
): Promise<PlacedLayer[]> {
  const { parts, image, room, report, onFailure } = options;
  const unpackVerified = async (layer: LayerFile, index: number) => {
    const existing = group.existing?.isWhole ? layerDirectory(layout, group.existing.id) : undefined;
    const failed = (isForged: boolean) => (error: unknown) => {
      onFailure?.(index, isForged);
      throw error;
    };
    const isMerged = group.to - group.from > 1;
    const unpacking = unpackOne(layer, index, { inUserNamespace, existing, isMerged }, options);
    const placed = await unpacking.catch(failed(false));
    try {
      requireSameDigest(
        placed.diffId,
        image.diffIds[index],
        `${room.image} is damaged or forged: the content of ${layer.file.name} does not match its configuration`,
      );
    } catch (error) {
      failed(true)(error);
    }
    return placed;
  };
  return Promise.all(
    parts.layers.slice(group.from, group.to).map(async (layer, offset): Promise<PlacedLayer> => {
      const index = group.from + offset;
      const placed = await unpackVerified(layer, index);
      const skippedDevices = placed.deferred?.skippedDevices ?? 0;
      const remark =
        skippedDevices === 0
          ? ""
          : `, without ${skippedDevices} of its devices, which cannot be created here`;
      report(`Unpacked layer ${index + 1} of ${parts.layers.length}${remark}`);
      return placed;
    }),
  );
}

async function unpackOne(
  { file, digest, source }: LayerFile,
  index: number,
  group: Pick<LayerJob, "inUserNamespace" | "existing" | "isMerged">,
  { run, threads, eager, room }: UnpackOptions,
): Promise<PlacedLayer> {
  const begun = eager.take(digest);
  const place = begun?.place ?? join(run.directory, unpackingDirectory, `layer-${index}`);
  const copyTo = file.isOwn ? undefined : join(run.directory, unpackingDirectory, `copy-${index}`);
  const unpacked =
    (await begun?.unpacked) ??
    (await threads.unpack({
      name: file.name,
      file: file.place,
      digest,
      ...{ copyTo, directory: place, ...group, room },
    }));
  const { deferred: _, splitBytes, ...described } = unpacked;
  const path = copyTo ?? file.place.path;
  const kept = { ...(source !== undefined && { source }), ...(splitBytes !== undefined && { splitBytes }) };
  return { ...unpacked, blob: { ...described, ...kept, path }, place };
}

/**
 * Merges two layers: moves everything in the upper one's directory to the lower one's. Whiteouts of the upper one stay, since
 * there may be layers below both.
 */
async function mergeLayers(
  lower: string,
  upper: string,
  { inUserNamespace, pace }: { inUserNamespace: boolean; pace: Pace },
): Promise<void> {
  const waiting: { from: Path; to: Path }[] = [{ from: upper, to: lower }];
  const merged: typeof waiting = [];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    merged.push(next);
    for (const { name } of listDirectory(next.from)) {
      await pace.step();
      const [from, to] = [joinPath(next.from, name), joinPath(next.to, name)];
      const [above, below] = [lstatSync(from), lstatIfExists(to)];
      const isHidden = above.isDirectory() && isOpaque(from, inUserNamespace);
      if (above.isDirectory() && below?.isDirectory() && !isHidden) waiting.push({ from, to });
      else {
        // A directory that replaces a file or a whiteout of the lower layer hides the layers below both.
        const isNew = above.isDirectory() && below !== undefined && !below.isDirectory();
        if (below !== undefined) rmSync(to, { recursive: true });
        renameSync(from, to);
        if (isNew) markOpaque(to, inUserNamespace);
      }
    }
  }
  // Directories' times come last, since adding entries changes them; the deepest directories come first.
  for (const { from, to } of merged.reverse()) copyMetadata(from, to, lstatSync(from));
  rmSync(upper, { recursive: true });
}

/**
 * Removes whiteouts for names that the layers below do not have. overlayfs lists them as broken entries in a directory that it
 * does not merge. `below` are the directories of those layers, the uppermost first.
 */
async function removeNeedlessWhiteouts(
  directory: string,
  below: readonly string[],
  { inUserNamespace, pace }: { inUserNamespace: boolean; pace: Pace },
): Promise<void> {
  const layers = [directory, ...below].map((path, layer) => ({ layer, path }));
  const tree = new LayerTree(layers, inUserNamespace);
  const waiting: MergedDirectory[] = [tree.root];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    const [own, ...lower] = next;
    if (own?.layer !== 0) continue;
    let times: Stats | undefined;
    for (const { name, type } of listDirectory(own.path)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = joinPath(own.path, name);
      if (type === "directory") waiting.push(tree.enter(next, name));
      if (type !== "other" || !isWhiteout(lstatSync(path))) continue;
      if (tree.find(lower, name) !== undefined) continue;
      times ??= lstatSync(own.path);
      unlinkSync(path);
    }
    if (times !== undefined) setFileTimes(own.path, times);
  }
}

/** A layer that is being unpacked to `place`, or has been. */
interface EagerLayer {
  place: string;
  unpacked: Promise<UnpackedLayer>;
}

interface EagerOptions extends Pick<UnpackOptions, "threads" | "room"> {
  directory: string;
  inUserNamespace: boolean;
}

/** Unpacks blobs while others are still downloaded, before it is known which layers of the image they are. */
export class EagerLayers {
  readonly #options: EagerOptions;
  #started = 0;
  readonly #layers = new Map<string, EagerLayer>();

  constructor(options: EagerOptions) {
    this.#options = options;
  }

  /** Starts to unpack a blob, which is verified meanwhile. If it is not a layer, that fails, but only `take` returns the error. */
  start(digest: string, path: string): void {
    const { directory, threads, room, inUserNamespace } = this.#options;
    const { size } = lstatSync(path);
    if (!needsThread(size)) return;
    const place = join(directory, `eager-${this.#started++}`);
    const file = { path, offset: 0, length: size, name: path, flags: constants.O_NOFOLLOW };
    const job = { name: path, file, digest, copyTo: undefined, directory: place, inUserNamespace, room };
    const unpacked = threads.unpack({ ...job, existing: undefined, isMerged: false });
    unpacked.catch(() => undefined);
    this.#layers.set(digest, { place, unpacked });
  }

  /** Returns a layer, only once: an image may have the same layer twice. */
  take(digest: string | undefined): EagerLayer | undefined {
    const layer = digest === undefined ? undefined : this.#layers.get(digest);
    if (digest !== undefined) this.#layers.delete(digest);
    return layer;
  }
}
