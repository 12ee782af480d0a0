import { unsupportedStatuses } from "../capabilities.ts";
import type { Transport } from "../http/transport.ts";
import type { ImageList } from "./image-list.ts";

export interface Untagging {
  /** Takes all tags away from an image. Rejects with NotFoundError where the image is gone. */
  untagImage(uuid: string): Promise<void>;
  /** Takes one tag away from an image; its other ones stay. */
  removeTag(uuid: string, tag: string): Promise<void>;
}

/** The service does not know `?tag=`, or not this tag. */
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

  /** Nobody else's: a service that does not know the filter lists all images. */
  async function tagsOf(uuid: string): Promise<string[]> {
    const records = await images.list({ uuid });
    return records.filter((record) => record.uuid === uuid).flatMap(({ tag }) => tag ?? []);
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
      // A service that passes the query over has taken them all away, as the one that refuses it now has.
      for (const other of before) if (other !== tag && !left.includes(other)) await tagImage(uuid, other);
    },
  };
}

export function tagPathOf(uuid: string): string {
  return `/v1/images/${encodeURIComponent(uuid)}/tag`;
}
