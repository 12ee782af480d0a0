import type { CopyInstruction } from "../../dockerfile/instruction.ts";
import { hasWhiteoutName, whiteoutNameError } from "../../image/archive-limits.ts";
import { chmodKey } from "../../image/file-mode.ts";
import { NotFoundError } from "../../service/http/errors.ts";
import type { ImageCopy } from "../../service/wire/instance.ts";
import type { CopyLayer } from "../../store/copies.ts";
import { findImageSource } from "../bases/locked-image.ts";
import { chainHash } from "../cache/chain-hash.ts";
import type { StepKey } from "../cache/step-key.ts";
import { requireDirectories } from "../copy/check-plan.ts";
import { namesDirectory } from "../copy/destination.ts";
import { stageImageCopy } from "../copy/from-image.ts";
import { isReadBefore } from "../copy/read-image.ts";
import type { CopyWords } from "../copy/words.ts";
import { type BuildJob, type BuildServices, jobUsing } from "../job.ts";
import { titleOf } from "../location.ts";
import { detectEviction } from "../operations/evicted-image.ts";
import { findFileOwner } from "../owners/ownership.ts";
import type { Layer } from "../state/layer.ts";
import { formatOrigin, madeHere } from "../state/layer-origin.ts";
import { pathInImage } from "../state/path-in-image.ts";
import { type StageState, withLayer } from "../state/state.ts";
import { findOrMake } from "./find-or-make.ts";
import type { Step } from "./step.ts";

/**
 * Performs a `COPY --from`. A service that copies between images makes a layer of it, without transferring files. For another
 * service, the files are staged for the next RUN, like files of the context.
 */
export async function performCopyFrom(
  instruction: CopyInstruction,
  { words, ordinal }: { words: CopyWords; ordinal: number },
  stage: StageState,
  given: BuildJob,
): Promise<StageState> {
  const build = jobUsing([stage.layer], given);
  const line = instruction.range.start;
  await requireDirectories(words.destination, stage, build.services);
  const path = pathInImage(stage.config.WorkingDir, words.destination);
  if (hasWhiteoutName(path)) throw whiteoutNameError(path, "Copy it under another name.");
  const from = await build.stages.sourceOf(instruction);
  const source = await findImageSource(instruction.from ?? "", from, build);
  const copy = copyOf(instruction, words, stage);
  const placed = placeKey(copy, words, stage);
  const key = { ...placed, source: { from: instruction.from ?? "", hash: source.hash } };
  const place = await chainHash(placed, build.services.signal);
  const hash = await chainHash(key, build.services.signal);

  const recorded = build.services.store.copyLayers.get(build.asked.session, hash);
  // The hash of a rebuilt source says nothing about its files: only equal files make the copy a cached one.
  const known = jobUsing([source.evictable], build).useCache
    ? await build.services.layers.find(recorded?.layer ?? hash, stage.layer)
    : undefined;
  if (known === undefined && (await isStaged(instruction, words, source.image, build.services)))
    return detectEviction(source.evictable, build.services, () =>
      stageImageCopy(instruction, { words, source }, stage, build),
    );
  const copied = { image: source.image, copy };
  /** The record that names the layer of this copy. */
  let claim = known && recorded;
  const step: Step = {
    title: titleOf(instruction),
    ...{ line, ordinal, key, history: "copy" },
    sources: source.evictable === undefined ? [] : [source.evictable],
    async find() {
      if (known !== undefined) return known;
      const equal = await findEqualCopy(place, copied, stage.layer, build);
      claim = equal?.copy;
      return equal?.layer;
    },
    async refine(explanation) {
      if (explanation.reason !== "source") return explanation;
      const path = await findChangedSource(place, copied, build);
      return path === undefined ? explanation : { ...explanation, path };
    },
    async make(made, job) {
      const { makeOfFiles } = await import("./layer-instance.ts");
      const copies = async () => [
        { ...copy, image: source.image, ...(await ownerOf(words, line, stage, job)) },
      ];
      return makeOfFiles(made, step, stage, job, copies);
    },
  };
  const layer = await detectEviction(source.evictable, build.services, () => findOrMake(step, build, hash));
  build.services.store.copyLayers.set(build.asked.session, {
    ...{ hash, place, source: source.image, layer: layer.hash },
    origin: claim?.layer === layer.hash ? claim.origin : formatOrigin(madeHere),
  });
  return withLayer(stage, layer);
}

/** Returns the key of a copy without its source: where and how the files are placed. */
function placeKey(
  copy: Omit<ImageCopy, "image">,
  { chmod, chown }: CopyWords,
  { layer }: StageState,
): StepKey {
  const mode = chmod === "" ? {} : { chmod: chmodKey(chmod) };
  return { parent: layer, instruction: "COPY", copy: { ...copy, ...mode, chown }, files: new Map() };
}

/** Returns the copy of the request without the owner, whose numbers may have to be looked up in the image. */
export function copyOf(
  { parents }: CopyInstruction,
  { paths, destination, exclude, chmod }: CopyWords,
  { config }: StageState,
): Omit<ImageCopy, "image" | "uid" | "gid"> {
  const path = pathInImage(config.WorkingDir, destination);
  const isDirectory = namesDirectory(destination) && path !== "/";
  return {
    sources: [...paths],
    destination: isDirectory ? `${path}/` : path,
    ...(chmod === "" ? {} : { chmod }),
    ...(parents ? { parents } : {}),
    ...(exclude.length === 0 ? {} : { exclude: [...exclude] }),
  };
}

function ownerOf({ chown }: CopyWords, line: number, stage: StageState, build: BuildJob) {
  return chown === "" ? {} : findFileOwner(chown, line, stage, build);
}

/** Returns true if the service can't copy between images. Files staged by an earlier build are staged again without asking it. */
async function isStaged(
  instruction: CopyInstruction,
  words: CopyWords,
  image: string,
  services: BuildServices,
): Promise<boolean> {
  if (isReadBefore(words, instruction, image, services)) return true;
  return !(await services.supports.imageCopies());
}

type Copied = Pick<ImageCopy, "sources" | "parents" | "exclude">;

/**
 * Finds the layer of the same copy from another image with equal files there: a stage that was built again with the same result
 * leaves the copies from it cached. `place`: a hash of where and how the files are placed.
 */
async function findEqualCopy(
  place: string,
  { image, copy }: { image: string; copy: Copied },
  parent: Layer,
  build: BuildJob,
): Promise<{ layer: Layer; copy: Pick<CopyLayer, "layer" | "origin"> } | undefined> {
  const { store, layers } = build.services;
  const { session } = build.asked;
  const before = build.useCache ? store.copyLayers.latest(session, place) : undefined;
  const layer = before === undefined ? undefined : await layers.find(before.layer, parent);
  if (before === undefined || layer === undefined) return undefined;
  const [was, is] = [
    await digestOf(before.source, copy, build.services),
    await digestOf(image, copy, build.services),
  ];
  return was !== undefined && was === is ? { layer, copy: before } : undefined;
}

/**
 * Returns the first source whose files differ from those of the copy before, for an explanation; `undefined` if there is none to
 * compare with.
 */
async function findChangedSource(
  place: string,
  { image, copy }: { image: string; copy: Copied },
  build: BuildJob,
): Promise<string | undefined> {
  const before = build.services.store.copyLayers.latest(build.asked.session, place);
  if (before === undefined) return undefined;
  for (const source of copy.sources) {
    const one = { ...copy, sources: [source] };
    const was = await digestOf(before.source, one, build.services);
    if (was !== undefined && was !== (await digestOf(image, one, build.services))) return source;
  }
  return undefined;
}

/** Returns a digest of files of an image, computed once. Returns `undefined` if the image or the files are gone: the copy reports that. */
async function digestOf(
  image: string,
  { sources, parents, exclude }: Copied,
  { service, store, layers }: BuildServices,
): Promise<string | undefined> {
  const request = { sources, ...(parents === undefined ? {} : { parents }), ...(exclude && { exclude }) };
  const factKey = `digest ${JSON.stringify(request)}`;
  const known = store.imageMetadata.get(image, factKey);
  if (known !== undefined) return known;
  try {
    const digest = await service.digestFiles(await layers.imageOf(image), request);
    store.imageMetadata.set(image, factKey, digest);
    return digest;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
