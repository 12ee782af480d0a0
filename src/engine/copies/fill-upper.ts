import { createPace } from "../../pace.ts";
import type { HostFile } from "../../service/wire/file.ts";
import { absentLayersOf } from "../records/absent-layers.ts";
import { type Image, layersOf } from "../records/images.ts";
import type { LayerFileDigests } from "../records/layer-file-digests.ts";
import { lookupDirectory } from "../records/layer-listings.ts";
import { BackgroundSync } from "../records/layer-sync.ts";
import { layerDirectory } from "../records/layers.ts";
import { imageTreeOf, LayerTree } from "../sandbox/root/layer-tree.ts";
import type { EngineState } from "../state.ts";
import { withinPathLimit } from "../system/path.ts";
import { copySource } from "./copy-from-image.ts";
import { type ImageCopySpec, selectSources } from "./copy-spec.ts";
import { type PlacedEntry, type PlacedUpload, placedFiles } from "./file-spec.ts";
import { createLinker, LinkPolicies, linkedFiles } from "./linker.ts";
import { placeEntries } from "./place-entries.ts";
import { placeFiles } from "./place-files.ts";
import { createReuse } from "./reuse.ts";
import { UpperTree } from "./upper-tree.ts";

/** The entries, files and copies that a request adds to its image. */
interface Filling {
  image: Image;
  spec: {
    entries: readonly PlacedEntry[];
    files: readonly PlacedUpload[];
    hostFiles: Iterable<HostFile>;
    earlier?: string | undefined;
  };
  copies: readonly { spec: ImageCopySpec; image: Image }[];
}

/** The result of filling an upper directory. */
export interface Filled {
  /** The layers whose files are hard-linked in it. */
  linkedLayers: ReadonlySet<number>;
  fileDigests: LayerFileDigests | undefined;
}

/**
 * Fills an upper directory over the instance's image: first directories and links, then files, then copies from images.
 *
 * @param runsCommand true if a command will write to the upper directory: then no layer's file may be hard-linked there
 */
export async function fillUpper(
  state: EngineState,
  upper: string,
  { image, spec, copies }: Filling,
  { runsCommand, signal }: { runsCommand: boolean; signal: AbortSignal },
): Promise<Filled> {
  const pace = createPace(signal);
  const base = openLayerTree(state, image);
  const to = new UpperTree(upper, base);
  const setTimes = await placeEntries(to, spec.entries, pace);
  const backgroundSync = new BackgroundSync(state.layerSync);
  await placeFiles(to, spec.files, pace, { backgroundSync });
  const layers = base.root.map(({ layer }) => layer);
  // Digests are kept only if neither other files nor a command can replace the host files.
  const isAll = !runsCommand && copies.length + spec.files.length === 0;
  const reuse = isAll ? await createReuse(state, spec.earlier, layers, pace) : undefined;
  await placeFiles(to, placedFiles(spec.hostFiles, state.layout), pace, { backgroundSync, reuse });
  setTimes();
  const trees = new Map<number, LayerTree>();
  const selected = [];
  for (const { spec, image } of copies) {
    const from = trees.get(image.layer) ?? openLayerTree(state, image);
    trees.set(image.layer, from);
    for (const source of await selectSources(spec, imageTreeOf(from))) selected.push({ from, source, spec });
  }
  const policies = new LinkPolicies({
    isAllowed: !runsCommand,
    shared: new Set(layers),
    taken: await linkedFiles(state, runsCommand || selected.length === 0 ? [] : layers, pace),
    isSingle: selected.length === 1,
  });
  await using linker = createLinker(pace);
  for (const { from, source, spec } of selected)
    await withinPathLimit(source.path, () =>
      copySource(source, spec, {
        from,
        to,
        links: { policy: policies.forSource(), linker },
        pace,
        backgroundSync,
      }),
    );
  backgroundSync.end();
  return { linkedLayers: policies.linkedLayers, fileDigests: reuse?.fileDigests() };
}

/** The maximum number of trees that are kept: the latest ones, each with the trees below on which it is based. */
const maxTrees = 8;

/** Returns the tree of an image whose layers are here or listed. A tree with listings is not kept, since its files are fetched later. */
export function openLayerTree(state: EngineState, image: Image): LayerTree {
  const { database, layout, inUserNamespace, trees } = state;
  if (absentLayersOf(database, image.layer).length > 0) {
    const listed = layersOf(database, image).map((layer) => ({ layer, path: lookupDirectory(state, layer) }));
    return new LayerTree(listed, inUserNamespace);
  }
  const known = trees.get(image.layer);
  trees.delete(image.layer);
  const layers =
    known?.root ?? layersOf(database, image).map((layer) => ({ layer, path: layerDirectory(layout, layer) }));
  const below = trees.get(layers[1]?.layer ?? 0);
  const tree = known ?? new LayerTree(layers, inUserNamespace, { below });
  trees.set(image.layer, tree);
  for (const layer of trees.keys().take(Math.max(0, trees.size - maxTrees))) trees.delete(layer);
  return tree;
}
