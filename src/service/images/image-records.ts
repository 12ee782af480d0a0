/** The records in a response to `GET /v1/images`. */
import { parseImageConfig } from "../../image/config.ts";
import { parseOrigin } from "../../image/history.ts";
import { asId, asInteger, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { listIn } from "../http/requirements.ts";
import type { ImageRecord } from "../wire/image.ts";
import { findAll, readId } from "../wire/reader/fields.ts";
import { tagsIn } from "../wire/reader/images.ts";
import { imageIdKeys } from "../wire/reader/tables.ts";

/** An image in a list, once for each of its tags. */
export interface ListedImage extends ImageRecord {
  /** True if the list says that it has no tag, and not only nothing about tags. */
  isUntagged: boolean;
}

export function readImages(body: unknown): ListedImage[] {
  return listIn(body, "images").flatMap((item) => {
    const record = asRecord(item);
    const [uuid] = findAll(record, [{ places: [""], names: imageIdKeys }], readId);
    if (uuid === undefined || record === undefined) return [];
    const operation = asId(record?.operation_uuid);
    const size = asInteger(record?.size);
    const ownSize = asInteger(record?.own_size);
    const config = asRecord(record?.oci_config);
    const identity = asText(record?.identity);
    const tags = tagsIn(record);
    const isUntagged = tags?.length === 0;
    return (tags === undefined || isUntagged ? [null] : tags).map((tag) => ({
      uuid,
      tag,
      isUntagged,
      created_at: asText(record?.created_at) ?? "",
      ...(operation === undefined ? {} : { operation_uuid: operation }),
      ...(size === undefined ? {} : { size }),
      ...(ownSize === undefined ? {} : { own_size: ownSize }),
      ...(config === undefined ? {} : { oci_config: parseImageConfig(config), ...originIn(record) }),
      ...(identity === undefined ? {} : { identity }),
    }));
  });
}

function originIn(record: JsonRecord | undefined): Pick<ImageRecord, "oci_author" | "oci_history"> {
  const { author, history } = parseOrigin({ author: record?.oci_author, history: record?.oci_history });
  return {
    ...(author === undefined ? {} : { oci_author: author }),
    ...(history === undefined ? {} : { oci_history: history }),
  };
}
