import type { CopyInstruction } from "../../dockerfile/instruction.ts";
import { hasMarkName, markNameError } from "../../image/archive-limits.ts";
import type { ImageCopy } from "../../service/wire/instance.ts";
import { sha256Of } from "../../sha256.ts";
import { findImageSource } from "../bases/image-source.ts";
import { chainHash } from "../cache/chain-hash.ts";
import { requireDirectories } from "../copy/check-plan.ts";
import { namesDirectory } from "../copy/destination.ts";
import { findChangedSource, findEqualCopy } from "../copy/equal-copy.ts";
import { stageImageCopy } from "../copy/from-image.ts";
import { isReadBefore } from "../copy/read-image.ts";
import type { CopyWords } from "../copy/words.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import { jobOn } from "../job-of-step.ts";
import { detectLoss } from "../operations/missing-image.ts";
import { findFileOwner } from "../owners/ownership.ts";
import { pathInImage } from "../state/path-in-image.ts";
import { type StageState, startStage, withLayer } from "../state/state.ts";
import { filesStepOf } from "./files-step.ts";
import { findOrMakeKeyed } from "./find-or-make.ts";

/**
 * Performs a `COPY --from`. A service that copies between images makes a layer of it, without transferring files. For another
 * service, the files are staged for the next RUN, like files of the context.
 */
export async function copyFromImage(
  instruction: CopyInstruction,
  { words, ordinal }: { words: CopyWords; ordinal: number },
  stage: StageState,
  given: BuildJob,
): Promise<StageState> {
  const build = jobOn([stage.layer], given);
  const line = instruction.range.start;
  await requireDirectories(words.destination, stage, build.services);
  const path = pathInImage(stage.config.WorkingDir, words.destination);
  if (hasMarkName(path)) throw markNameError(path, "Copy it under another name.");
  const from = await build.stages.sourceOf(instruction);
  const source = await findImageSource(instruction.from ?? "", from, build);
  const copy = copyOf(instruction, words, stage);
  const what = JSON.stringify({ ...copy, chown: words.chown });
  const place = await chainHash(startStage(stage.layer), ["COPY", what], build.services.signal);
  const hash = sha256Of(`${place} ${source.hash}`);

  const made = build.services.store.copyLayers.get(build.asked.session, hash) ?? hash;
  // The hash of a rebuilt source says nothing about its files: only equal files make the copy a cached one.
  const job = jobOn([source.losable], build);
  const known = job.useCache ? await build.services.layers.find(made, stage.layer) : undefined;
  if (known === undefined && (await isStaged(instruction, words, source.image, build.services)))
    return detectLoss(source.losable, build.services, () =>
      stageImageCopy(instruction, { words, source }, stage, build),
    );
  const stepWith = (changed: string | undefined) =>
    filesStepOf(instruction, ordinal, build.asked, {
      directive: ["COPY", source.hash, JSON.stringify(copy)],
      source: { from: instruction.from ?? "", hash: source.hash, changed },
      copies: async () => [{ ...copy, image: source.image, ...(await ownerOf(words, line, stage, build)) }],
    });
  const layer = await detectLoss(source.losable, build.services, async () => {
    const copied = { image: source.image, copy };
    const found = known ?? (await findEqualCopy(place, copied, stage.layer, build));
    const changed =
      found === undefined && build.services.memory.explains
        ? await findChangedSource(place, copied, build)
        : undefined;
    return findOrMakeKeyed(hash, { step: stepWith(changed), found }, stage, job);
  });
  build.services.store.copyLayers.set(build.asked.session, {
    hash,
    place,
    source: source.image,
    layer: layer.hash,
  });
  return withLayer(stage, layer);
}

/** Returns the request's copy without the owner, for whom the image may have to be asked. */
function copyOf(
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
