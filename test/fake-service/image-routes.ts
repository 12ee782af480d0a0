import { asNumber, asRecord, asText } from "../../src/service/http/json.ts";
import { isServiceTag } from "../../src/service/wire/image.ts";
import { answerWith } from "./answer.ts";
import type { RouteCall } from "./options.ts";
import { readJson } from "./recording.ts";
import { findUnknownField } from "./request-fields.ts";
import { endOperation, startEvents } from "./run.ts";

export function listImages({ state, recorded }: RouteCall): Response {
  const { tag, tagged, uuid, since, until, limit = "100", offset = "0" } = recorded.query;
  if (Number(limit) < 1 || Number(limit) > 1000) return answerWith.error(400, "limit must be 1 to 1000");
  const images = state
    .imageRecords()
    .filter(
      (image) =>
        (tag === undefined || image.tag?.startsWith(tag) === true) &&
        (tagged !== "1" || image.tag !== null) &&
        (uuid === undefined || uuid.split(",").includes(image.uuid)) &&
        (since === undefined || image.created_at >= since) &&
        (until === undefined || image.created_at <= until),
    );
  // An exact match of the tag comes first.
  images.sort((one, other) => Number(other.tag === tag) - Number(one.tag === tag));
  return Response.json({ images: images.slice(Number(offset), Number(offset) + Number(limit)) });
}

export async function importImage({ state, options, request, recorded }: RouteCall): Promise<Response> {
  const body = asRecord(await readJson(request, recorded));
  const unknown = findUnknownField(body, "ImageImportRequest");
  if (unknown !== undefined) return answerWith.error(400, `${unknown} is not a known field`);
  const url = asText(asRecord(body?.registry)?.url);
  if (url === undefined) return answerWith.error(400, "registry.url is required");
  const tag = asText(body?.tag);
  if (tag !== undefined && !isServiceTag(tag)) return answerWith.error(400, `invalid tag ${tag}`);
  const error = options.importError?.(url);
  const image = error === undefined ? state.images.get(state.addImage(tag)) : undefined;
  if (options.importAnswers === "image") {
    return image === undefined ? answerWith.error(422, error ?? "") : Response.json(image, { status: 201 });
  }
  // The response has only an id. The client has to find out that it is an image's and not an operation's.
  if (options.importAnswers === "image id") {
    return Response.json({ uuid: image?.uuid }, { status: 201 });
  }
  const operation = state.addOperation("image_import", {
    metadata: { registry: { url }, tag: tag ?? null, timeout: asNumber(body?.timeout) ?? 600 },
  });
  startEvents(operation);
  endOperation(operation, {
    status: image === undefined ? "FAILED" : "SUCCESS",
    error: error ?? null,
    result_image_uuid: image?.uuid ?? null,
    result: image === undefined ? null : { image: image.uuid, tag: image.tag },
  });
  const headers = { location: `/v1/operations/${operation.record.uuid}` };
  return Response.json({ uuid: operation.record.uuid }, { status: 201, headers });
}

export async function tagImage({ state, request, recorded, parameter }: RouteCall): Promise<Response> {
  const tag = asText(asRecord(await readJson(request, recorded))?.tag);
  if (tag === undefined || !isServiceTag(tag)) return answerWith.error(400, "invalid tag");
  const image = state.setTag(parameter, tag);
  return image === undefined ? answerWith.error(404, `no image ${parameter}`) : Response.json(image);
}

/** Removes one tag or all of an image's. */
export function untagImage({ state, options, recorded, parameter }: RouteCall): Response {
  if (state.images.get(parameter) === undefined) return answerWith.error(404, `no image ${parameter}`);
  const only = options.removesAllTags === true ? undefined : recorded.query.tag;
  const removed = [...state.tags].filter(
    ([tag, image]) => image === parameter && (only === undefined || tag === only),
  );
  if (removed.length === 0 && only !== undefined)
    return answerWith.error(404, `no tag ${only} of ${parameter}`);
  for (const [tag] of removed) state.tags.delete(tag);
  return new Response(null, { status: 204 });
}
