/** The records in a response to `GET /v1/images`. */
import { parseImageConfig } from "../../image/config.ts";
import { parseOrigin } from "../../image/history.ts";
import { asId, asInteger, asRecord, asText, idIn, type JsonRecord } from "../http/json.ts";
import { listIn } from "../http/requirements.ts";
import type { ImageRecord } from "../wire/image.ts";

export function readImages(body: unknown): ImageRecord[] {
  return listIn(body, "images").flatMap((item) => {
    const record = asRecord(item);
    const uuid = idIn(record);
    if (uuid === undefined) return [];
    const operation = asId(record?.operation_uuid);
    const size = asInteger(record?.size);
    const config = asRecord(record?.oci_config);
    const identity = asText(record?.identity);
    return [
      {
        uuid,
        tag: asText(record?.tag) ?? null,
        created_at: asText(record?.created_at) ?? "",
        ...(operation === undefined ? {} : { operation_uuid: operation }),
        ...(size === undefined ? {} : { size }),
        ...(config === undefined ? {} : { oci_config: parseImageConfig(config), ...originIn(record) }),
        ...(identity === undefined ? {} : { identity }),
      },
    ];
  });
}

function originIn(record: JsonRecord | undefined): Pick<ImageRecord, "oci_author" | "oci_history"> {
  const { author, history } = parseOrigin({ author: record?.oci_author, history: record?.oci_history });
  return {
    ...(author === undefined ? {} : { oci_author: author }),
    ...(history === undefined ? {} : { oci_history: history }),
  };
}
