import { lstatSync, type Stats } from "node:fs";
import type { Pace } from "../../pace.ts";
import { layerDirectory, layersWithLinks } from "../records/layers.ts";
import type { Records } from "../records/records.ts";
import { joinPath, listDirectory, type Path } from "../system/path.ts";

/** Decides which files of layers are hard-linked instead of copied. */
export interface LinkPolicy {
  /** True if the image may hard-link this file of a layer; false if two names there would become one file. */
  allows(entry: { layer: number }, stats: () => Stats): boolean;
}

interface LinkOptions {
  /** False if a command will run in the upper directory: it could write to a layer's file. */
  isAllowed: boolean;
  /** Layers that the image is built on. */
  shared: ReadonlySet<number>;
  /** Inodes of files that the image shares with other layers. */
  taken: ReadonlySet<number>;
  /** True if only one source is copied. */
  isSingle: boolean;
}

/**
 * Decides when a file of a layer may be hard-linked into another image, so that nothing is copied. It may not if the image
 * already has the same file under another name, since BuildKit makes two files of them.
 */
export class LinkPolicies {
  readonly #options: LinkOptions;
  readonly #linked = new Map<number, LinkPolicy>();
  /** Layers for whose files a hard link was allowed. */
  readonly linkedLayers = new Set<number>();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Returns the policy for the files of one source. Hard links within a source are kept. */
  forSource(): LinkPolicy {
    const policy: LinkPolicy = {
      allows: ({ layer }, stats) => {
        const isAllowed = this.#allows(layer, stats, policy);
        if (isAllowed) this.linkedLayers.add(layer);
        return isAllowed;
      },
    };
    return policy;
  }

  #allows(layer: number, stats: () => Stats, policy: LinkPolicy): boolean {
    const { isAllowed, shared, taken, isSingle } = this.#options;
    if (!isAllowed || shared.has(layer)) return false;
    if (isSingle && taken.size === 0) return true;
    const { ino } = stats();
    if (taken.has(ino)) return false;
    const other = this.#linked.get(ino) ?? policy;
    this.#linked.set(ino, other);
    return other === policy;
  }
}

/** Returns the inodes of files in these layers that have more than one hard link. */
export async function linkedFiles(
  { database, layout }: Records,
  layers: readonly number[],
  pace: Pace,
): Promise<Set<number>> {
  const found = new Set<number>();
  const waiting: Path[] = layersWithLinks(database, layers).map((id) => layerDirectory(layout, id));
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    for (const { name, type } of listDirectory(next)) {
      const pause = pace.step();
      if (pause !== undefined) await pause;
      const path = joinPath(next, name);
      if (type === "directory") waiting.push(path);
      else {
        const { nlink, ino } = lstatSync(path);
        if (nlink > 1) found.add(ino);
      }
    }
  }
  return found;
}
