import { existsSync } from "node:fs";
import { rm } from "node:fs/promises";
import { inTransaction } from "../../database.ts";
import { messageOf } from "../../errors.ts";
import { parseImageConfig } from "../../image/config.ts";
import { parseOrigin } from "../../image/history.ts";
import { type Platform, parsePlatform } from "../../image/platform.ts";
import { Secret } from "../../secret.ts";
import { jsonResponse, orRefuse, RequestError, respondStarted } from "../http/answers.ts";
import {
  type Fields,
  optionalFields,
  optionalNumber,
  optionalString,
  readBody,
  readFlag,
  readListFilter,
  readString,
  readText,
  refuse,
  refuseUnknown,
  requireTag,
} from "../http/fields.ts";
import { type ImageSource, parseImageSource } from "../import/image-source.ts";
import { moveToScratch } from "../layout.ts";
import { describeImage, listImages } from "../records/image-list.ts";
import { configureImage, removeTags, requireImage, setTag } from "../records/images.ts";
import { blobsDirectory } from "../records/imported-blobs.ts";
import { createOwnLayers, layerSize } from "../records/layer-sizes.ts";
import { findLayer, layerDirectory } from "../records/layers.ts";
import { imagesInUse } from "../records/operations.ts";
import type { Records } from "../records/records.ts";
import type { Route } from "../router.ts";
import { startOperation } from "../run-operation.ts";
import { freedBytes } from "../system/disk.ts";
import { type Environment, findProgram, requireRuntime } from "../system/programs.ts";

export const imageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/images",
    answer: ({ state, url }) =>
      jsonResponse({
        images: listImages(state, {
          tagPrefix: readText(url, "tag"),
          taggedOnly: readFlag(url, "tagged"),
          uuids: readText(url, "uuid")?.toLowerCase().split(","),
          sizes: readFlag(url, "sizes"),
          ...readListFilter(url, state.clock.now()),
        }),
      }),
  },
  {
    method: "POST",
    path: "/v1/images/import",
    async answer({ state, request }) {
      const body = await readBody(request);
      refuseUnknown(body, ["registry", "tag", "timeout", "platform"]);
      const registry = optionalFields(body, "registry") ?? refuse("registry", "is missing");
      refuseUnknown(registry, ["url", "credentials"], "registry");
      const login = optionalFields(registry, "credentials");
      refuseUnknown(login ?? {}, ["username", "password"], "registry.credentials");
      const url = readString(registry, "url");
      const tag = optionalString(body, "tag");
      if (tag !== undefined) requireTag(tag);
      const source = orRefuse(() => parseImageSource(url, state));
      if (source.kind !== "scratch") requirePrograms(source.kind, state.environment);
      const spec = {
        source,
        platform: readPlatform(body),
        credentials: login && {
          username: readString(login, "username"),
          password: Secret.of(readString(login, "password")),
        },
        tag,
        timeoutSeconds: optionalNumber(body, "timeout", 1) ?? 600,
      };
      const uuid = startOperation(state, {
        kind: "image_import",
        metadata: { registry: { url }, tag: tag ?? null, timeout: spec.timeoutSeconds },
        // Loaded with the first import: most builds find their base image in the engine.
        perform: async (run) => (await import("../unpack/import-image.ts")).performImport(state, spec, run),
      });
      return respondStarted(uuid);
    },
  },
  {
    method: "PATCH",
    path: "/v1/images/:uuid/tag",
    async answer({ state, request, parameters }) {
      const body = await readBody(request);
      refuseUnknown(body, ["tag"]);
      const tag = readString(body, "tag");
      requireTag(tag);
      return inTransaction(state.database, () => {
        const image = requireImage(state, parameters.uuid ?? "");
        setTag(state.database, tag, image.uuid);
        return jsonResponse(describeImage(state.database, image.uuid, tag));
      });
    },
  },
  {
    method: "POST",
    path: "/v1/images/:uuid/config",
    async answer({ state, request, parameters }) {
      const body = await readBody(request);
      refuseUnknown(body, ["config", "author", "history", "platform"]);
      const fields = optionalFields(body, "config") ?? refuse("config", "is missing");
      const config = parseImageConfig(fields, (problem) => refuse("config", problem));
      const malformed = (problem: string) => {
        throw new RequestError(400, problem);
      };
      const isGiven = body.history != null || body.platform != null;
      const origin = isGiven ? parseOrigin(body, malformed) : undefined;
      return inTransaction(state.database, () => {
        const image = requireImage(state, parameters.uuid ?? "");
        const uuid = configureImage(state.database, image, { config, origin }, state.clock.now());
        return jsonResponse(describeImage(state.database, uuid, null));
      });
    },
  },
  {
    method: "DELETE",
    path: "/v1/images/:uuid",
    async answer({ state, parameters }) {
      const { freedBytes, cachedBytes } = await removeImage(state, parameters.uuid ?? "");
      return jsonResponse({ freed_bytes: freedBytes, cached_bytes: cachedBytes });
    },
  },
  {
    method: "DELETE",
    path: "/v1/images/:uuid/tag",
    answer({ state, url, parameters }) {
      const { uuid } = requireImage(state, parameters.uuid ?? "");
      const tag = readText(url, "tag");
      if (!removeTags(state.database, uuid, tag) && tag !== undefined)
        throw new RequestError(404, `image ${uuid} has no tag ${tag}`);
      return new Response(null, { status: 204 });
    },
  },
];

function requirePrograms(kind: ImageSource["kind"], environment: Environment): void {
  if (kind === "registry") findProgram("skopeo", environment);
  // An image is of little use without a runtime; the error comes before the user waits for an import.
  requireRuntime(environment);
}

function readPlatform(body: Fields): Platform | undefined {
  const text = optionalString(body, "platform");
  try {
    return text === undefined ? undefined : parsePlatform(text);
  } catch (error) {
    return refuse("platform", messageOf(error));
  }
}

/**
 * Removes an image, its tags, and those of its layers that nothing else is built on. Rejects with a RequestError (404, 409).
 * Returns the bytes that this frees, and those that stay although no image with a tag needs them: builds find these layers.
 */
async function removeImage(
  records: Records,
  uuid: string,
): Promise<{ freedBytes: number; cachedBytes: number }> {
  const { database } = records;
  const { doomed, cachedBytes } = inTransaction(database, () => {
    const image = requireImage(records, uuid);
    if (imagesInUse(records).has(image.uuid))
      throw new RequestError(409, `image ${image.uuid} is in use: an operation runs on it`);
    database.query<undefined, [string]>("DELETE FROM images WHERE uuid = ?").run(image.uuid);
    const own = createOwnLayers(records)(image);
    const taken = takeUnusedLayers(records, image.layer);
    const cached = own.filter((id) => findLayer(database, id) !== undefined);
    return { doomed: taken, cachedBytes: cached.reduce((sum, id) => sum + layerSize(records, id), 0) };
  });
  const freed = freedBytes(doomed);
  for (const path of doomed) await rm(path, { recursive: true, force: true });
  return { freedBytes: freed, cachedBytes };
}

/**
 * Removes the records of layers from `top` down, up to the first that an image or another layer is built on. Moves their
 * directories into scratch and returns the new paths.
 */
function takeUnusedLayers({ database, layout }: Records, top: number): string[] {
  const isUsed = database.query<{ used: number }, [number, number]>(
    "SELECT EXISTS (SELECT 1 FROM images WHERE layer = ?) OR EXISTS (SELECT 1 FROM layers WHERE parent = ?) AS used",
  );
  const doomed: string[] = [];
  for (let layer = findLayer(database, top); layer !== undefined; ) {
    const { id, parent } = layer;
    if (isUsed.get(id, id)?.used !== 0) break;
    database.query<undefined, [number]>("DELETE FROM layers WHERE id = ?").run(id);
    for (const path of [layerDirectory(layout, id), blobsDirectory(layout, id)]) {
      // Only imported layers have blobs.
      if (existsSync(path)) doomed.push(moveToScratch(layout, path));
    }
    layer = parent === null ? undefined : findLayer(database, parent);
  }
  return doomed;
}
