import { parseImageConfig } from "../../image/config.ts";
import { parseImageOrigin } from "../../image/history.ts";
import { Secret } from "../../secret.ts";
import {
  optionalFields,
  optionalNumber,
  optionalString,
  queryFlag,
  queryText,
  readBody,
  readListFilter,
  readString,
  refuse,
  refuseUnknownFields,
} from "../http/fields.ts";
import { jsonResponse, RequestError, respondStarted } from "../http/responses.ts";
import { configureImage, tagImage } from "../records/image-changes.ts";
import { listImages } from "../records/image-list.ts";
import { removeImage } from "../records/image-removal.ts";
import { removeTags, requireImage } from "../records/images.ts";
import type { Route } from "../router.ts";
import { startImport } from "../unpack/start-import.ts";

export const imageRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/images",
    respond: ({ state, url }) =>
      jsonResponse({
        images: listImages(state, {
          tagPrefix: queryText(url, "tag"),
          taggedOnly: queryFlag(url, "tagged"),
          uuids: queryText(url, "uuid")?.toLowerCase().split(","),
          sizes: queryFlag(url, "sizes"),
          ...readListFilter(url, state.clock.now()),
        }),
      }),
  },
  {
    method: "POST",
    path: "/v1/images/import",
    async respond({ state, request }) {
      const body = await readBody(request);
      refuseUnknownFields(body, ["registry", "tag", "timeout", "platform"]);
      const registry = optionalFields(body, "registry") ?? refuse("registry", "is missing");
      refuseUnknownFields(registry, ["url", "credentials"], "registry");
      const login = optionalFields(registry, "credentials");
      refuseUnknownFields(login ?? {}, ["username", "password"], "registry.credentials");
      const url = readString(registry, "url");
      const uuid = startImport(state, {
        url,
        platform: optionalString(body, "platform"),
        credentials: login && {
          username: readString(login, "username"),
          password: Secret.of(readString(login, "password")),
        },
        tag: optionalString(body, "tag"),
        timeoutSeconds: optionalNumber(body, "timeout", 1) ?? 600,
      });
      return respondStarted(uuid);
    },
  },
  {
    method: "PATCH",
    path: "/v1/images/:uuid/tag",
    async respond({ state, request, parameters }) {
      const body = await readBody(request);
      refuseUnknownFields(body, ["tag"]);
      return jsonResponse(tagImage(state, parameters.uuid ?? "", readString(body, "tag")));
    },
  },
  {
    method: "POST",
    path: "/v1/images/:uuid/config",
    async respond({ state, request, parameters }) {
      const body = await readBody(request);
      refuseUnknownFields(body, ["config", "author", "history", "platform"]);
      const fields = optionalFields(body, "config") ?? refuse("config", "is missing");
      const config = parseImageConfig(fields, (problem) => refuse("config", problem));
      const malformed = (problem: string) => {
        throw new RequestError(400, problem);
      };
      const isGiven = body.history != null || body.platform != null;
      const origin = isGiven ? parseImageOrigin(body, malformed) : undefined;
      return jsonResponse(configureImage(state, parameters.uuid ?? "", { config, origin }));
    },
  },
  {
    method: "DELETE",
    path: "/v1/images/:uuid",
    async respond({ state, parameters }) {
      const { freedBytes, cachedBytes } = await removeImage(state, parameters.uuid ?? "");
      return jsonResponse({ freed_bytes: freedBytes, cached_bytes: cachedBytes });
    },
  },
  {
    method: "DELETE",
    path: "/v1/images/:uuid/tag",
    respond({ state, url, parameters }) {
      const { uuid } = requireImage(state, parameters.uuid ?? "");
      const tag = queryText(url, "tag");
      if (!removeTags(state.database, uuid, tag) && tag !== undefined)
        throw new RequestError(404, `image ${uuid} has no tag ${tag}`);
      return new Response(null, { status: 204 });
    },
  },
];
