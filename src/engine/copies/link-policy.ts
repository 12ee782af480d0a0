import { lstatSync, type Stats } from "node:fs";
import type { Pace } from "../../pace.ts";
import { layerDirectory, layersWithLinks } from "../records/layers.ts";
import type { Records } from "../records/whole-layers.ts";
import type { LinkPolicy } from "./image-copier.ts";
import { joinPath, listDirectory, type Path } from "./path.ts";

interface LinkOptions {
  /** False where a command is about to run in the upper directory: it would write to the layer. */
  isAllowed: boolean;
  /** Layers that the image stands on. */
  shared: ReadonlySet<number>;
  /** Inodes of files of it that other layers have, too. */
  taken: ReadonlySet<number>;
  /** Whether one source is all that is copied. */
  isSingle: boolean;
}

/**
 * When a file of a layer may itself become a file of another image: a second name of it, for which nothing is copied. Not where
 * the image shows the same file under another name already, since BuildKit makes two files of them.
 */
export class LinkPolicies {
  readonly #options: LinkOptions;
  readonly #linked = new Map<number, LinkPolicy>();
  /** Layers with files for which it was allowed. */
  readonly linkedLayers = new Set<number>();

  constructor(options: LinkOptions) {
    this.#options = options;
  }

  /** Returns the policy for the files of one source: names of one file there stay names of one file. */
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

/** Inodes of the files that these layers share with others, or with themselves. */
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
