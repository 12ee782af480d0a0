/** A file in a list of `GET /v1/inspect/{uuid}/list`. */
import { posix } from "node:path";
import { asText, type JsonRecord } from "../http/json.ts";
import type { PathType } from "./image-file.ts";

/** Some services list names, some whole paths. */
export function fileName({ path }: JsonRecord): string {
  return posix.basename(asText(path) ?? "");
}

export function fileType(file: JsonRecord): PathType {
  if (file.is_symlink === true) return "symlink";
  if (file.is_dir === true) return "directory";
  return file.is_regular === true ? "file" : "other";
}
