import { NotFoundError } from "../../service/http/errors.ts";
import type { ImageCopy } from "../../service/wire/instance.ts";
import type { BuildJob, BuildServices } from "../job.ts";
import type { Layer } from "../state/layer.ts";

type Copied = Pick<ImageCopy, "sources" | "parents" | "exclude">;

/**
 * Finds the layer of the same copy from another image with equal files there: a stage that was built again with the same result
 * leaves the copies from it cached. `place`: a hash of where and how the files are placed.
 */
export async function findEqualCopy(
  place: string,
  { image, copy }: { image: string; copy: Copied },
  parent: Layer,
  build: BuildJob,
): Promise<Layer | undefined> {
  const { store, layers } = build.services;
  const { session } = build.asked;
  const before = build.useCache ? store.copyLayers.latest(session, place) : undefined;
  const layer = before === undefined ? undefined : await layers.find(before.layer, parent);
  if (before === undefined || layer === undefined) return undefined;
  const [was, is] = [
    await digestOf(before.source, copy, build.services),
    await digestOf(image, copy, build.services),
  ];
  return was !== undefined && was === is ? layer : undefined;
}

/**
 * Returns the first source whose files differ from those of the copy before, for an explanation; `undefined` if there is none to
 * compare with.
 */
export async function findChangedSource(
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

/** An image never changes, so it is asked once. Returns `undefined` if it is gone or lacks the files, which the copy reports. */
async function digestOf(
  image: string,
  { sources, parents, exclude }: Copied,
  { service, store, layers }: BuildServices,
): Promise<string | undefined> {
  const request = { sources, ...(parents === undefined ? {} : { parents }), ...(exclude && { exclude }) };
  const question = `digest ${JSON.stringify(request)}`;
  const known = store.facts.get(image, question);
  if (known !== undefined) return known;
  try {
    const digest = await service.digestFiles(await layers.imageOf(image), request);
    store.facts.set(image, question, digest);
    return digest;
  } catch (error) {
    if (error instanceof NotFoundError) return undefined;
    throw error;
  }
}
