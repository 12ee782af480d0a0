import { parseImageConfig } from "../../image/config.ts";
import { parseImageOrigin } from "../../image/history.ts";
import type { RemoteImageRequest } from "../../service/wire/image.ts";
import {
  asFields,
  optionalFields,
  optionalNumber,
  optionalString,
  type RequestFields,
  readBody,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import { jsonResponse, RequestError } from "../http/responses.ts";
import { requireImage } from "../records/images.ts";
import type { Route } from "../router.ts";
import { isUsable } from "../unpack/probe-image.ts";
import { declareRemoteImage } from "../unpack/remote-image.ts";

/** Routes of the extension `remote-layers`: images whose layers are fetched when they are needed. */
export const remoteImageRoutes: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/images/remote",
    respond: async ({ state, request }) =>
      jsonResponse(declareRemoteImage(state, readRemoteImage(await readBody(request)))),
  },
  {
    method: "POST",
    path: "/v1/images/:uuid/probe",
    respond: async ({ state, parameters }) =>
      jsonResponse({ usable: await isUsable(state, requireImage(state, parameters.uuid ?? "")) }),
  },
];

const common = ["source", "layers", "tag"];

function readRemoteImage(body: RequestFields): RemoteImageRequest {
  const configuration = optionalString(body, "configuration");
  const named = ["config", "origin", "platform", "config_digest"];
  refuseUnknownFields(body, [...common, "configuration", ...(configuration === undefined ? named : [])]);
  const [tag, platform] = [optionalString(body, "tag"), optionalString(body, "platform")];
  const digest = optionalString(body, "config_digest");
  const shared = {
    source: readString(body, "source"),
    layers: readLayers(body),
    ...(tag !== undefined && { tag }),
  };
  if (configuration !== undefined) return { ...shared, configuration };
  const config = optionalFields(body, "config") ?? refuse("config", "is missing");
  return {
    ...shared,
    config: parseImageConfig(config, (problem) => refuse("config", problem)),
    origin: parseImageOrigin(optionalFields(body, "origin") ?? {}, (problem) => {
      throw new RequestError(400, `origin: ${problem}`);
    }),
    ...(platform !== undefined && { platform }),
    ...(digest !== undefined && { config_digest: digest }),
  };
}

function readLayers({ layers }: RequestFields): RemoteImageRequest["layers"] {
  if (!Array.isArray(layers)) return refuse("layers", "must be a list");
  return layers.map((item, index) => {
    const name = `layers[${index}]`;
    const fields = asFields(item, name);
    refuseUnknownFields(fields, ["media_type", "digest", "size", "diff_id", "created_at"], name);
    const createdAt = optionalString(fields, "created_at");
    return {
      media_type: readString(fields, "media_type"),
      digest: textIn(fields.digest),
      size: optionalNumber(fields, "size", 0) ?? refuse(`${name}.size`, "is missing"),
      diff_id: textIn(fields.diff_id),
      ...(createdAt !== undefined && { created_at: createdAt }),
    };
  });
}

/** Returns a string, or an empty one for another type, which `declareRemoteImage` refuses like any invalid digest. */
function textIn(value: unknown): string {
  return typeof value === "string" ? value : "";
}
