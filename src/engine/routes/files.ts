import { statfsSync } from "node:fs";
import { queryText, readListFilter } from "../http/fields.ts";
import { jsonResponse, RequestError } from "../http/responses.ts";
import type { Layout } from "../layout.ts";
import { findFile, listFiles, storeFile } from "../records/files.ts";
import type { Route } from "../router.ts";

/** Throws the error of a full disk before the disk is full: an archive of a few kilobytes may have a file of any size. */
function requireRoom(bytes: number, { files }: Pick<Layout, "files">): void {
  const { bavail, bsize } = statfsSync(files);
  if (bytes > bavail * bsize)
    throw Object.assign(new Error("ENOSPC: no space left on device"), { code: "ENOSPC" });
}

export const fileRoutes: readonly Route[] = [
  {
    method: "GET",
    path: "/v1/files",
    respond: ({ state, url }) =>
      jsonResponse({
        files: listFiles(state.database, {
          sha256: queryText(url, "sha256"),
          ...readListFilter(url, state.clock.now()),
        }),
      }),
  },
  {
    method: "POST",
    path: "/v1/files",
    async respond({ state, request }) {
      requireRoom(Number(request.headers.get("content-length") ?? 0), state.layout);
      const stored = await storeFile(state.database, state.layout, request.body, state.clock.now, {
        signal: request.signal,
      });
      return jsonResponse(stored, 201);
    },
  },
  {
    method: "GET",
    path: "/v1/files/:sha256",
    respond({ state, parameters }) {
      const file = findFile(state.database, state.layout, "sha256", parameters.sha256 ?? "");
      if (file === undefined)
        throw new RequestError(404, `there is no file with the SHA-256 ${parameters.sha256}`);
      return jsonResponse(file);
    },
  },
];
