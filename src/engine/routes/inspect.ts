import { closeSync, openSync, readSync } from "node:fs";
import { BoughError } from "../../errors.ts";
import { createPace } from "../../pace.ts";
import { readSelectionBody } from "../copies/copy-spec.ts";
import { openLayerTree } from "../copies/fill-upper.ts";
import { jsonResponse, RequestError } from "../http/answers.ts";
import { readBody, readChoice, readFlag, readNumber, readText, readTexts } from "../http/fields.ts";
import { streamArchive } from "../inspect/archive.ts";
import { describeEntries, formatEntries } from "../inspect/entries.ts";
import { grepFiles } from "../inspect/grep.ts";
import { findInView, findPath, readLayers, viewImage } from "../inspect/image-path.ts";
import { describeImage } from "../records/image-list.ts";
import { findTag, requireImage } from "../records/images.ts";
import type { Route } from "../router.ts";
import { bringForRequest } from "../unpack/bring-layers.ts";
import { unpackedLayers } from "./layers.ts";

const maxMatches = 10_000;
const defaultMatches = 1000;
/** The number of changes in one response, which is held in memory as a whole. */
const maxListed = 100_000;

/** Routes that read images, and what their layers change, without starting an instance. Links are followed inside the image. */
export const inspectRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/inspect/",
    answer({ state, url }) {
      const tag = readText(url, "tag");
      if (tag === undefined) throw new RequestError(400, "tag is missing");
      const { uuid } = requireImage(state, `tag:${tag}`);
      return new Response(null, { status: 302, headers: { Location: `/v1/inspect/${uuid}/` } });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/",
    answer({ state, parameters }) {
      const { uuid } = requireImage(state, parameters.uuid ?? "");
      return jsonResponse(describeImage(state.database, uuid, findTag(state.database, uuid)));
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/list",
    async answer(call) {
      const view = await readLayers(call);
      const found = findPath(view, call.url);
      const files = describeEntries(view, found);
      if (!readFlag(call.url, "text")) return jsonResponse({ path: found.inside, files });
      return new Response(formatEntries(files), {
        headers: { "Content-Type": "text/plain;charset=utf-8" },
      });
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/download",
    async answer(call) {
      const view = await readLayers(call);
      const { inside, path, stats } = findPath(view, call.url);
      // For a directory there is `archive`.
      if (!stats.isFile()) throw new RequestError(404, `${inside} is not a regular file`);
      const body = call.request.method === "HEAD" ? null : streamFile(path);
      const headers = { "Content-Type": "application/octet-stream", "Content-Length": String(stats.size) };
      return new Response(body, { headers });
    },
  },
  {
    method: "POST",
    path: "/v1/inspect/:uuid/digest",
    async answer({ state, parameters, request }) {
      const selection = readSelectionBody(await readBody(request));
      const { digestSelection } = await import("../copies/digest.ts");
      const image = requireImage(state, parameters.uuid ?? "");
      await bringForRequest(state, image);
      const tree = openLayerTree(state, image);
      try {
        return jsonResponse({ digest: await digestSelection(selection, tree, createPace(request.signal)) });
      } catch (error) {
        throw error instanceof BoughError ? new RequestError(404, error.message) : error;
      }
    },
  },
  {
    method: "GET",
    path: "/v1/inspect/:uuid/archive",
    async answer(call) {
      using owned = new DisposableStack();
      const view = owned.use(await viewImage(call));
      const { path, stats } = findPath(view, call.url);
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
    async answer(call) {
      const { url, state, request } = call;
      const patterns = readTexts(url, "pattern");
      if (patterns.length === 0) throw new RequestError(400, "pattern is missing");
      const paths = readTexts(url, "path");
      const query = {
        patterns,
        globs: readTexts(url, "glob"),
        case: readChoice(url, "case", ["smart", "sensitive", "insensitive"]) ?? "smart",
        maxCount: readNumber(url, "max_count", 1, maxMatches),
        maxTotal: readNumber(url, "max_total", 1, maxMatches) ?? defaultMatches,
        before: readNumber(url, "before", 0, 1000) ?? 0,
        after: readNumber(url, "after", 0, 1000) ?? 0,
      } as const;
      using view = await viewImage(call);
      const places = (paths.length === 0 ? ["/"] : paths).map((path) => findInView(view, path));
      const found = await grepFiles(places, query, { ...state, signal: request.signal });
      return jsonResponse({ path: paths.join(",") || "/", patterns, ...found });
    },
  },
  // The extension `changes`: what an image's layers add, change and delete.
  {
    method: "GET",
    path: "/v1/images/:uuid/changes",
    async answer({ state, parameters }) {
      const { summarizeChanges } = await import("../inspect/image-changes.ts");
      await bringForRequest(state, requireImage(state, parameters.uuid ?? ""));
      const layers = await summarizeChanges(unpackedLayers(state, parameters.uuid ?? ""), state);
      return jsonResponse({ layers: layers.map(({ number: _, ...layer }) => layer) });
    },
  },
  {
    method: "GET",
    path: "/v1/images/:uuid/changes/:layer",
    async answer({ state, parameters, url }) {
      const { uuid = "", layer = "" } = parameters;
      const layers = unpackedLayers(state, uuid);
      const index = layers.findIndex(({ id }) => id === layer);
      if (index < 0) throw new RequestError(404, `image ${uuid} has no layer ${layer}`);
      await bringForRequest(state, requireImage(state, uuid));
      const limit = readNumber(url, "limit", 1, maxListed) ?? maxListed;
      const { listChanges } = await import("../inspect/image-changes.ts");
      return jsonResponse(await listChanges(layers, index, limit, state));
    },
  },
];

/**
 * Streams a file, which stays readable after its view is disposed of. Uses no FileHandle: one left open by an aborted request is
 * an uncaught error at its collection.
 */
function streamFile(path: string): ReadableStream<Uint8Array> {
  const descriptor = openSync(path, "r");
  return new ReadableStream<Uint8Array>({
    pull(controller) {
      try {
        const buffer = new Uint8Array(256 * 1024);
        const count = readSync(descriptor, buffer);
        if (count > 0) return controller.enqueue(buffer.subarray(0, count));
        controller.close();
      } catch (error) {
        controller.error(error);
      }
      closeSync(descriptor);
    },
    cancel: () => closeSync(descriptor),
  });
}
