import { readSelectionBody } from "../copies/copy-spec.ts";
import { unpackedLayers } from "../export/image-layers.ts";
import { queryChoice, queryFlag, queryNumber, queryText, queryTexts, readBody } from "../http/fields.ts";
import { jsonResponse, RequestError } from "../http/responses.ts";
import { streamArchive } from "../inspect/archive.ts";
import { describeEntries, formatEntries } from "../inspect/entries.ts";
import { streamFile } from "../inspect/file-stream.ts";
import { grepFiles } from "../inspect/grep.ts";
import { changesOf, maxListedChanges, summarizeChanges } from "../inspect/image-changes.ts";
import { findInImage, findInView, viewImage } from "../inspect/image-path.ts";
import { describeImage } from "../records/image-list.ts";
import { findTag, type Image, requireImage } from "../records/images.ts";
import type { Route, RoutedRequest } from "../router.ts";
import { ensureForRequest } from "../unpack/ensure-layers.ts";

const maxMatches = 10_000;
const defaultMatches = 1000;

/** Routes that read images, and what their layers change, without starting an instance. Links are followed inside the image. */
export const inspectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/inspect/",
    respond({ state, url }) {
      const tag = queryText(url, "tag");
      if (tag === undefined) throw new RequestError(400, "tag is missing");
      const { uuid } = requireImage(state, `tag:${tag}`);
      return new Response(null, { status: 302, headers: { Location: `/v1/inspect/${uuid}/` } });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/",
    respond({ state, parameters }) {
      const { uuid } = requireImage(state, parameters.uuid ?? "");
      return jsonResponse(describeImage(state.database, uuid, findTag(state.database, uuid)));
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/list",
    async respond(call) {
      const { view, found } = findInImage(call.state, await requestedImage(call), pathOf(call));
      const files = describeEntries(view, found);
      if (!queryFlag(call.url, "text")) return jsonResponse({ path: found.inside, files });
      return new Response(formatEntries(files), {
        headers: { "Content-Type": "text/plain;charset=utf-8" },
      });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/download",
    async respond(call) {
      const { inside, path, stats } = findInImage(call.state, await requestedImage(call), pathOf(call)).found;
      // Directories are downloaded by the route `archive`.
      if (!stats.isFile()) throw new RequestError(404, `${inside} is not a regular file`);
      const body = call.request.method === "HEAD" ? null : streamFile(path);
      const headers = { "Content-Type": "application/octet-stream", "Content-Length": String(stats.size) };
      return new Response(body, { headers });
    },
  },
  {
    method: "POST",
    path: "/v1/inspect/:uuid/digest",
    async respond(call) {
      const selection = readSelectionBody(await readBody(call.request));
      const { digestOfImage } = await import("../copies/digest.ts");
      const image = await requestedImage(call);
      return jsonResponse({ digest: await digestOfImage(call.state, image, selection, call.request.signal) });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/archive",
    async respond(call) {
      using owned = new DisposableStack();
      const view = owned.use(await viewImage(call.state, await requestedImage(call)));
      const { path, stats } = findInView(view, pathOf(call));
      const headers = { "Content-Type": "application/x-tar" };
      if (call.request.method === "HEAD") return new Response(null, { headers });
      const body = streamArchive(call.state, path, stats, view);
      owned.move();
      return new Response(body, { headers });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/grep",
    async respond(call) {
      const { url, state, request } = call;
      const patterns = queryTexts(url, "pattern");
      if (patterns.length === 0) throw new RequestError(400, "pattern is missing");
      const paths = queryTexts(url, "path");
      const query = {
        patterns,
        globs: queryTexts(url, "glob"),
        case: queryChoice(url, "case", ["smart", "sensitive", "insensitive"]) ?? "smart",
        maxCount: queryNumber(url, "max_count", 1, maxMatches),
        maxTotal: queryNumber(url, "max_total", 1, maxMatches) ?? defaultMatches,
        before: queryNumber(url, "before", 0, 1000) ?? 0,
        after: queryNumber(url, "after", 0, 1000) ?? 0,
      } as const;
      using view = await viewImage(state, await requestedImage(call));
      const places = (paths.length === 0 ? ["/"] : paths).map((path) => findInView(view, path));
      const found = await grepFiles(places, query, { ...state, signal: request.signal });
      return jsonResponse({ path: paths.join(",") || "/", patterns, ...found });
    },
  },
  // The extension `changes`: what an image's layers add, change and delete.
  {
    method: "GET",
    path: "/v1/images/:uuid/changes",
    async respond(call) {
      const { uuid } = await requestedImage(call);
      return jsonResponse({ layers: await summarizeChanges(unpackedLayers(call.state, uuid), call.state) });
    },
  },
  {
    method: "GET",
    path: "/v1/images/:uuid/changes/:layer",
    async respond(call) {
      const { state, url } = call;
      const { uuid = "", layer = "" } = call.parameters;
      const limit = queryNumber(url, "limit", 1, maxListedChanges);
      return jsonResponse(await changesOf(state, { image: uuid, layer, limit }, () => requestedImage(call)));
    },
  },
];

/** Returns the image that a request names, with its layers. */
async function requestedImage({ state, parameters }: RoutedRequest): Promise<Image> {
  const image = requireImage(state, parameters.uuid ?? "");
  await ensureForRequest(state, image);
  return image;
}

function pathOf({ url }: RoutedRequest): string {
  return queryText(url, "path") ?? "/";
}
