/** Looking into an image without starting anything: `GET /v1/inspect/{uuid}/...`. */

import { posix } from "node:path";
import type { LearntCapabilities } from "../capabilities.ts";
import type { Answer } from "../http/answer.ts";
import { asRecord, asText, type JsonRecord } from "../http/json.ts";
import type { Transport } from "../http/transport.ts";
import { fileName, fileType } from "./file-record.ts";
import type { ImageInspector, ListedEntry, PathType } from "./image-file.ts";
import { type InspectRoutes, lost, noSuchRoute, wrongType } from "./inspect-routes.ts";

export function createInspector(
  transport: Transport,
  capabilities: LearntCapabilities,
  routes: InspectRoutes,
): ImageInspector {
  function ask(image: string, route: "list" | "download", path: string): Promise<Answer> {
    const call = {
      method: "GET",
      path: `/v1/inspect/${encodeURIComponent(image)}/${route}`,
      query: { path },
      repeatable: true,
      handles: [404, ...noSuchRoute, ...wrongType],
      ...(route === "download" ? { expects: "bytes" as const } : {}),
    } as const;
    return routes.ask(image, () => transport.call(call));
  }

  /**
   * A directory's list has its entries. The list of anything else has only that thing, by its full path or by its name alone. A
   * directory with a single file of the directory's own name looks the same; the list of its parent tells them apart.
   */
  async function typeInList(image: string, list: JsonRecord | undefined, path: string): Promise<PathType> {
    const [only, ...others] = filesIn(list);
    const resolved = asText(list?.path) ?? path;
    const name = asText(only?.path);
    if (only === undefined || others.length > 0 || only.is_dir === true) return "directory";
    if (name === path || name === resolved) return fileType(only);
    if (name !== posix.basename(resolved)) return "directory";
    const above = await ask(image, "list", posix.dirname(resolved));
    const itself = filesIn(asRecord(above.body)).find((file) => file.path === name);
    return itself === undefined || itself.is_dir === true ? "directory" : fileType(itself);
  }

  return {
    async pathType(image, path) {
      if (capabilities.lacks("inspect")) return "unsupported";
      const { status, body } = await ask(image, "list", path);
      if (status === 200) return typeInList(image, asRecord(body), path);
      if (noSuchRoute.includes(status)) capabilities.learn("inspect", false);
      if (!(await routes.exist(image))) return "unsupported";
      // Every image has a root.
      if (status === 404 && path === "/") throw lost(image);
      return status === 404 ? undefined : "file";
    },

    async listEntries(image, directory) {
      const { status, body } = await ask(image, "list", directory);
      if (status !== 200) return undefined;
      const entries = filesIn(asRecord(body)).map((file): [string, ListedEntry] => [
        fileName(file),
        { type: fileType(file), target: asText(file.symlink_to) },
      ]);
      return new Map(entries);
    },

    async readFile(image, path) {
      const { status, body } = await ask(image, "download", path);
      if (status === 200) return body instanceof Uint8Array ? body : new Uint8Array();
      return noSuchRoute.includes(status) || !(await routes.exist(image)) ? "unsupported" : undefined;
    },
  };
}

function filesIn(list: JsonRecord | undefined): JsonRecord[] {
  const files = Array.isArray(list?.files) ? list.files : [];
  return files.map(asRecord).filter((file) => file !== undefined);
}
