import type { Clock } from "../../clock.ts";
import { inTransaction } from "../../database.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { ImageOrigin } from "../../image/history.ts";
import type { ImageRecord } from "../../service/wire/image.ts";
import { requireTag } from "../http/fields.ts";
import { describeImage } from "./image-list.ts";
import { findOrAddConfigured, requireImage, setTag } from "./images.ts";
import type { Records } from "./records.ts";

/** Sets a complete tag. */
export function tagImage(records: Records, reference: string, tag: string): ImageRecord {
  requireTag(tag);
  const { database } = records;
  return inTransaction(database, () => {
    const { uuid } = requireImage(records, reference);
    setTag(database, tag, uuid);
    return describeImage(database, uuid, tag);
  });
}

/** Returns the image with the same files, exactly this configuration, and `origin`, or else the image's own. */
export function configureImage(
  records: Records & { clock: Clock },
  reference: string,
  description: { config: ImageConfig; origin: ImageOrigin | undefined },
): ImageRecord {
  const { database, clock } = records;
  return inTransaction(database, () => {
    const image = requireImage(records, reference);
    return describeImage(database, findOrAddConfigured(database, image, description, clock.now()), null);
  });
}
