/** Normalizes services of compose files, so that they can be merged, and merges them. */
import { posix } from "node:path";
import { below, type FileLocation } from "./file-location.ts";
import { isMap, readText, requireArray, requireMap } from "./target.ts";
import { isAddress } from "./target-names.ts";

/** A service, and where it is written. */
export interface Service {
  location: FileLocation;
  body: Record<string, unknown>;
}

/** Fields of `build` that may be a list of `KEY=VALUE`, or a map. */
const pairs = ["args", "labels", "additional_contexts", "extra_hosts", "ssh"];

/** Returns a service with maps in the place of lists of `KEY=VALUE`, and with `build` as a map. */
export function normalizeService(
  body: Record<string, unknown>,
  location: FileLocation,
): Record<string, unknown> {
  const { build, environment, env_file: files, ...rest } = body;
  const others =
    files === undefined || files === null
      ? rest
      : { ...rest, env_file: Array.isArray(files) ? files : [files] };
  const at = below(location, "build");
  const whole = typeof build === "string" ? { context: build } : build;
  const variables =
    environment === undefined || environment === null
      ? {}
      : { environment: toMap(environment, below(location, "environment")) };
  if (whole === undefined || whole === null) return { ...others, ...variables };
  const fields = Object.entries(requireMap(whole, at)).map(([key, value]) => [
    key,
    pairs.includes(key) ? toMap(value, below(at, key), key === "extra_hosts" ? /[=:]/ : /=/) : value,
  ]);
  return { ...others, ...variables, build: Object.fromEntries(fields) };
}

/** Reads a map, or a list of `KEY=VALUE` or `KEY`. A key alone has the value `null`. */
function toMap(value: unknown, location: FileLocation, separator = /=/): Record<string, unknown> {
  if (value === null || value === undefined) return {};
  if (isMap(value)) return value;
  return Object.fromEntries(
    requireArray(value, location).map((each) => {
      const text = readText(each, location);
      const at = text.search(separator);
      return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
    }),
  );
}

export function mergeService(
  before: Record<string, unknown>,
  after: Record<string, unknown>,
): Record<string, unknown> {
  return merge(before, after) as Record<string, unknown>;
}

/** Merges as compose does: maps by key, and lists by appending. The later one of other values wins. */
function merge(before: unknown, after: unknown): unknown {
  if (isMap(before) && isMap(after)) {
    const merged: Record<string, unknown> = { ...before };
    for (const [key, value] of Object.entries(after))
      merged[key] = key in merged ? merge(merged[key], value) : value;
    return merged;
  }
  if (Array.isArray(before) && Array.isArray(after)) {
    const all = [...before, ...after];
    return all.filter((value, index) => all.findIndex((other) => Bun.deepEquals(other, value)) === index);
  }
  return after ?? before;
}

/** Makes the paths of a service relative to the working directory. `isFirst`: false for one that is merged over another. */
export function rebase({ location, body: given }: Service, base: string, isFirst = true): Service {
  const { build, env_file: files } = given;
  const rebased = (path: unknown) => (typeof path === "string" ? joined(base, path) : path);
  const body = Array.isArray(files)
    ? {
        ...given,
        env_file: files.map((file) => (isMap(file) ? { ...file, path: rebased(file.path) } : rebased(file))),
      }
    : given;
  if (!isMap(build)) return { location, body };
  const contexts = isMap(build.additional_contexts) ? build.additional_contexts : {};
  return {
    location,
    body: {
      ...body,
      build: {
        ...build,
        ...((isFirst || build.context !== undefined) && {
          context: joined(base, typeof build.context === "string" ? build.context : "."),
        }),
        ...(build.additional_contexts !== undefined && {
          additional_contexts: Object.fromEntries(
            Object.entries(contexts).map(([name, path]) => [name, rebased(path)]),
          ),
        }),
      },
    },
  };
}

/** Joins a path to its directory. Absolute paths, addresses and names of services stay as they are. */
export function joined(base: string, path: string): string {
  if (posix.isAbsolute(path) || isAddress(path) || /^(service|target|docker-image|oci-layout):/.test(path))
    return path;
  const clean = posix.join(base, path);
  return clean.length > 1 ? clean.replace(/\/$/, "") : clean;
}
