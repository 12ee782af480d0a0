/** Files of an image, without starting anything: `GET /v1/inspect/{uuid}/list`, `/download` and `/archive`. */
import { isDate } from "../../clock.ts";
import { BoughError } from "../../errors.ts";
import { asInteger, asNumber, asRecord, asText, type JsonRecord } from "../http/json.ts";
import { aList, listIn } from "../http/response.ts";
import type { Transport } from "../http/transport.ts";
import { fileName, fileType, type ImageFile, type ImageFiles, noSuchFile } from "./image-file.ts";
import { type InspectRoutes, lacksRoute, wrongType } from "./inspect-routes.ts";

/** Statuses that can only mean a missing route. Others mean that the token is not accepted. */
const noRoute = [405, 501];

export function createImageFiles(transport: Transport, routes: InspectRoutes): ImageFiles {
  const partsOf = (image: string, route: string, path: string) => ({
    method: "GET" as const,
    path: `/v1/inspect/${encodeURIComponent(image)}/${route}`,
    query: { path },
  });

  async function open(
    image: string,
    route: string,
    path: string,
  ): Promise<ReadableStream<Uint8Array> | undefined> {
    const call = {
      ...partsOf(image, route, path),
      repeatable: true,
      expects: "stream" as const,
      handles: [404, ...noRoute, ...wrongType],
    };
    const { status, body, headers } = await routes.ask(image, () => transport.call(call));
    if (noRoute.includes(status)) throw lacksRoute(route);
    if (body instanceof ReadableStream && !(await routes.serveFile(image, headers))) {
      await body.cancel();
      throw lacksRoute(route);
    }
    // A 404 may also mean that the path is of another type. The list tells these apart, or rejects.
    if (status === 404) await listFiles(image, path);
    return body instanceof ReadableStream ? (body as ReadableStream<Uint8Array>) : undefined;
  }

  async function listFiles(image: string, path: string): Promise<ImageFile[]> {
    const call = {
      ...partsOf(image, "list", path),
      repeatable: true,
      handles: [404, ...noRoute],
      requires: aList("files"),
    };
    const { status, body } = await routes.ask(image, () => transport.call(call));
    if (noRoute.includes(status)) throw lacksRoute("list");
    if (status === 404) throw await routes.explainMissing(image, path);
    return listIn(body, "files").flatMap((item) => parseImageFile(asRecord(item)) ?? []);
  }

  return {
    listFiles,

    async digestFiles(image, files) {
      const { status, body } = await transport.call({
        method: "POST",
        path: `/v1/inspect/${encodeURIComponent(image)}/digest`,
        json: files,
        repeatable: true,
        handles: [404, ...wrongType],
      });
      const digest = asText(asRecord(body)?.digest);
      // Other statuses may mean that files are missing, too: the copy itself reports which.
      if (status !== 200 || digest === undefined) throw noSuchFile(image, files.sources.join(" "));
      return digest;
    },

    openFile: (image, path) => open(image, "download", path),

    async openArchive(image, path) {
      const archive = await open(image, "archive", path);
      if (archive === undefined)
        throw new BoughError(`${path}: the service does not return an archive of it`);
      return archive;
    },
  };
}

function parseImageFile(record: JsonRecord | undefined): ImageFile | undefined {
  const mode = asNumber(record?.mode);
  if (record === undefined || typeof record.path !== "string") return undefined;
  const modified = asNumber(record.mtime) ?? 0;
  return {
    name: fileName(record),
    type: fileType(record),
    mode: mode === undefined ? null : mode & 0o7777,
    uid: asInteger(record.uid) ?? 0,
    gid: asInteger(record.gid) ?? 0,
    size: asInteger(record.size) ?? 0,
    modified: isDate(modified) ? modified : 0,
    target: asText(record.symlink_to) ?? null,
  };
}
