import { type Fields, readString, refuse } from "./fields.ts";

/** Reads the address of a store of blobs. A server takes only registries: a path would be one on its own machine. */
export function readStoreAddress(body: Fields, { isServer }: { isServer: boolean }): string {
  const source = readString(body, "source");
  const isDirectory = /^dir:\/[^\0]*$/.test(source);
  if (!isDirectory && !/^docker:\/\/[\w.:[\]-]+(\/[\w.-]+)+$/.test(source))
    return refuse("source", "must be docker://HOST/NAME or dir:/PATH");
  if (isDirectory && isServer) return refuse("source", "must be docker://HOST/NAME on a server");
  return source;
}
