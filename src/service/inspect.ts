/** Looking into an image without starting anything: `GET /v1/inspect/{uuid}/...`. */

import type { Answer } from "./answer.ts";
import { asRecord, asText, type JsonRecord } from "./json.ts";
import type { ImageInspector, PathType } from "./service.ts";
import type { Transport } from "./transport.ts";

const noSuchRoute = [405, 501];
/** 404: there is no such path, or no such route. The others: the path is of another type. */
const noSuchThing = [400, 404, 409, 422];

export function createInspector(transport: Transport): ImageInspector {
  let isServed: Promise<boolean> | undefined;

  function ask(image: string, route: "list" | "download", path: string): Promise<Answer> {
    return transport.call({
      method: "GET",
      path: `/v1/inspect/${encodeURIComponent(image)}/${route}`,
      query: { path },
      repeatable: true,
      handles: [...noSuchRoute, ...noSuchThing],
      ...(route === "download" ? { expects: "bytes" } : {}),
    });
  }

  /** Tells a path that is missing from a route that is missing: every image has a root. */
  function hasRoutes(image: string): Promise<boolean> {
    isServed ??= ask(image, "list", "/").then(({ status }) => status === 200);
    return isServed;
  }

  return {
    async pathType(image, path) {
      const { status, body } = await ask(image, "list", path);
      if (status === 200) return typeInList(body, path);
      if (noSuchRoute.includes(status) || !(await hasRoutes(image))) return "unknowable";
      return status === 404 ? undefined : "file";
    },

    async readFile(image, path) {
      const { status, body } = await ask(image, "download", path);
      if (status === 200) return body instanceof Uint8Array ? body : new Uint8Array();
      return noSuchRoute.includes(status) || !(await hasRoutes(image)) ? "unknowable" : undefined;
    },
  };
}

/** A directory's list holds what is in it; that of anything else holds the thing itself. */
function typeInList(body: unknown, path: string): PathType {
  const files = asRecord(body)?.files;
  const only = Array.isArray(files) && files.length === 1 ? asRecord(files[0]) : undefined;
  return only !== undefined && asText(only.path) === path && only.is_dir !== true
    ? typeOf(only)
    : "directory";
}

function typeOf(file: JsonRecord): PathType {
  if (file.is_symlink === true) return "symlink";
  return file.is_regular === true ? "file" : "other";
}
