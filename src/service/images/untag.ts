import { unsupportedStatuses } from "../capabilities.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageList } from "./image-list.ts";
import { isSameImage } from "./reference.ts";

export interface Untagging {
  /** Removes all tags of an image. Rejects with NotFoundError if the image is gone. */
  untagImage(uuid: string): Promise<void>;
  /** Removes one tag of an image; its others stay. */
  removeTag(uuid: string, tag: string): Promise<void>;
}

/** Statuses of a service that does not support `?tag=`, or does not know this tag. */
const refusesTag = [400, 422, ...unsupportedStatuses];

export function createUntagging(
  transport: Transport,
  images: Pick<ImageList, "list">,
  tagImage: (uuid: string, tag: string) => Promise<void>,
): Untagging {
  const remove = { method: "DELETE" as const, repeatable: true };

  async function untagImage(uuid: string): Promise<void> {
    await transport.call({ ...remove, path: tagPathOf(uuid) });
  }

  /** Filtered again here, because a service that ignores the filter lists all images. */
  async function tagsOf(uuid: string): Promise<string[]> {
    const records = await images.list({ uuid });
    return records.filter((record) => isSameImage(record.uuid, uuid)).flatMap(({ tag }) => tag ?? []);
  }

  return {
    untagImage,

    async removeTag(uuid, tag) {
      const before = await tagsOf(uuid);
      const query = { tag };
      const { status } = await transport.call({
        ...remove,
        path: tagPathOf(uuid),
        query,
        handles: refusesTag,
      });
      let left = await tagsOf(uuid);
      if (left.includes(tag) || (left.length === 0 && refusesTag.includes(status))) {
        await untagImage(uuid);
        left = [];
      }
      // Restores the other tags: a service that ignores the query has removed them, and so has `untagImage`.
      for (const other of before) if (other !== tag && !left.includes(other)) await tagImage(uuid, other);
    },
  };
}

export function tagPathOf(uuid: string): string {
  return `/v1/images/${encodeURIComponent(uuid)}/tag`;
}
