import { createPace } from "../../pace.ts";
import type { LentFile } from "../../service/wire/file.ts";
import type { Instance } from "../instances/spec.ts";
import { filePath } from "../records/files.ts";
import type { Image } from "../records/images.ts";
import { layerChain, layerDirectory } from "../records/layers.ts";
import type { EngineState } from "../state.ts";
import { copyFromImage } from "./copy-from-image.ts";
import type { PlacedFile } from "./file-spec.ts";
import { imageTreeOf, LayerTree } from "./layer-tree.ts";
import { LinkPolicies, linkedFiles } from "./link-policy.ts";
import { withinPathLimit } from "./path.ts";
import { placeEntries } from "./place-entries.ts";
import { placeFiles } from "./place-files.ts";
import { selectSources } from "./select-sources.ts";
import { UpperTree } from "./upper-tree.ts";

/**
 * Puts directories and links, then files, and then what is copied from images, into an upper directory over the instance's image.
 *
 * @returns the layers whose own files are there now
 * @param runsCommand a command will write to the upper directory: then no file in it is a layer's own
 */
export async function fillUpper(
  state: EngineState,
  upper: string,
  { image, spec, lent, copies }: Instance,
  { runsCommand, signal }: { runsCommand: boolean; signal: AbortSignal },
): Promise<{ linkedLayers: ReadonlySet<number> }> {
  const pace = createPace(signal);
  const base = openLayerTree(state, image);
  const to = new UpperTree(upper, base);
  await placeEntries(to, spec.entries, pace);
  await placeFiles(to, spec.files, pace);
  await placeFiles(to, takeLent(state, lent), pace);
  const trees = new Map<number, LayerTree>();
  const selected = [];
  for (const { spec, image } of copies) {
    const from = trees.get(image.layer) ?? openLayerTree(state, image);
    trees.set(image.layer, from);
    for (const source of await selectSources(spec, imageTreeOf(from))) selected.push({ from, source, spec });
  }
  const layers = base.root.map(({ layer }) => layer);
  const links = new LinkPolicies({
    isAllowed: !runsCommand,
    shared: new Set(layers),
    taken: await linkedFiles(state, runsCommand ? [] : layers, pace),
    isSingle: selected.length === 1,
  });
  for (const { from, source, spec } of selected)
    await withinPathLimit(source.path, () =>
      copyFromImage(source, spec, { from, to, links: links.forSource(), pace }),
    );
  return { linkedLayers: links.linkedLayers };
}

/** Each when its turn comes: of a large context, all at once would be felt. A stored one that is gone counts as damaged: it is sent again. */
function* takeLent({ layout }: EngineState, lent: Iterable<LentFile>): Generator<PlacedFile> {
  for (const file of lent) yield "path" in file ? file : { ...file, path: filePath(layout, file.sha256) };
}

export function openLayerTree({ database, layout, inUserNamespace }: EngineState, image: Image): LayerTree {
  const chain = layerChain(database, image.layer);
  if (chain.length === 0) throw new Error(`the layers of image ${image.uuid} are gone`);
  const layers = chain.map((layer) => ({ layer, path: layerDirectory(layout, layer) }));
  return new LayerTree(layers, inUserNamespace);
}
