import type { HistoryEntry, HistoryKind } from "../../store/sessions.ts";
import type { Store } from "../../store/store.ts";
import type { EvictableImage, Layer } from "../state/layer.ts";
import { formatOrigin, type LayerOrigin, madeHere, parseOrigin } from "../state/layer-origin.ts";

/** Layers by their chain hashes. */
export interface LayerCache {
  /** True if layers of other machines can be found, too. */
  readonly hasOthers: boolean;
  /** `parent`: the layer that it would be made from. */
  find(hash: string, parent?: Layer): Promise<Layer | undefined>;
  /** Finds layers of this machine only. Synchronous, so that two stages don't both add the layer of one base. */
  findLocal(hash: string, parent?: Layer): Layer | undefined;
  /** Returns the service's image of one that a cache of other machines names by its contents; any other image as it is. */
  imageOf(image: string): Promise<string>;
  put(layer: NewCacheLayer): Layer;
  /** Removes what is stored of an image that the service no longer has. */
  forget(lost: EvictableImage): void;
  /** The image of a layer that this session has. */
  imageHere(hash: string): string | undefined;
  /** The title of the instruction that made a layer, to show. */
  titleOf(hash: string): string | undefined;
}

export interface NewCacheLayer {
  hash: string;
  image: string;
  parent: Layer | undefined;
  kind: HistoryKind;
  title: string;
  operation: string | undefined;
  /** Default: its parent's. */
  origin?: LayerOrigin | undefined;
  /** The values that the service reports. */
  seconds?: number | undefined;
  bytes?: number | undefined;
}

/** The title of a layer that only adds a configuration. */
export const configurationTitle = "(the configuration)";

/** Returns true for an entry that no step has made: a FROM's image, with or without an added configuration. */
export function isOfBase({
  kind,
  operation,
  title,
}: Pick<HistoryEntry, "kind" | "operation" | "title">): boolean {
  return kind === "from" || (kind === "commit" && operation === null && title === configurationTitle);
}

/** Returns the name of the branch that a layer is stored under. */
export function layerBranch(hash: string): string {
  return `layer:${hash}`;
}

/**
 * Stores layers as branches of a build's session. `otherSessions`: the sessions of builds that run at the same time. Their layers become
 * this session's own when they are found.
 */
export function createLayerCache(
  { sessions, imports }: Pick<Store, "sessions" | "imports">,
  session: string,
  otherSessions: Iterable<string> = [],
): LayerCache {
  const entryOf = (hash: string) => sessions.findTip(session, layerBranch(hash));
  const adopt = (hash: string, parent: Layer | undefined): HistoryEntry | undefined => {
    for (const other of otherSessions) {
      if (other === session) continue;
      const entry = sessions.findTip(other, layerBranch(hash));
      if (entry === undefined) continue;
      const { image, kind, title, operation, origin } = entry;
      return sessions.commit(session, layerBranch(hash), {
        ...{ parent: parent?.entry ?? null, image, kind, title, operation, origin },
      });
    }
    return undefined;
  };
  const findLocal = (hash: string, parent?: Layer): Layer | undefined => {
    const entry = entryOf(hash) ?? adopt(hash, parent);
    if (entry === undefined) return undefined;
    const { id, image, operation } = entry;
    // Every build finds a FROM itself.
    const origin = entry.kind === "from" ? madeHere : parseOrigin(entry.origin);
    return { hash, image, entry: id, cached: true, operation, isBase: isOfBase(entry), origin };
  };
  return {
    hasOthers: false,

    find: async (hash, parent) => findLocal(hash, parent),
    findLocal,

    imageOf: async (image) => image,

    put(layer) {
      const origin = layer.origin ?? layer.parent?.origin ?? madeHere;
      const entry: HistoryEntry = sessions.commit(session, layerBranch(layer.hash), {
        parent: layer.parent?.entry ?? null,
        image: layer.image,
        kind: layer.kind,
        title: layer.title,
        operation: layer.operation ?? null,
        origin: formatOrigin(origin),
      });
      const { id, image, operation } = entry;
      return {
        hash: layer.hash,
        image,
        entry: id,
        cached: false,
        operation,
        isBase: isOfBase(entry),
        origin,
      };
    },

    forget({ hash, image }) {
      for (const each of new Set([session, ...otherSessions])) {
        if (each !== session && sessions.findTip(each, layerBranch(hash))?.image !== image) continue;
        sessions.deleteBranch(each, layerBranch(hash));
      }
      imports.forgetImage(image);
    },

    imageHere: (hash) => entryOf(hash)?.image,
    titleOf: (hash) => entryOf(hash)?.title,
  };
}
