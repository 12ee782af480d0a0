/** The paths of a build's outputs: what can be known of them before the build, so that a mistake does not cost a build. */
import {
  accessSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmdirSync,
  rmSync,
  type Stats,
  statSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { displayPath } from "../../context/file-system/display-path.ts";
import { BoughError, messageOf } from "../../errors.ts";
import { compressions } from "../../image/compression.ts";
import { containerdNameAnnotation, nameAnnotation } from "../../image/oci-layout.ts";
import { renameOver } from "../../paths/rename-over.ts";
import type { Values } from "../command-line/arguments.ts";
import type { ArgumentDefinitions } from "../command-line/definitions.ts";
import { oneOf } from "../command-line/option-values.ts";
import { cannotWrite } from "../process/write-error.ts";
import {
  credentialsDefinition,
  digestFileDefinition,
  registryOptions,
} from "../service/registry-definitions.ts";
import type { OutputDestination } from "./destination.ts";

/** Throws a BoughError of kind `usage` if an output can't be written. Writes nothing. */
export function requirePlaces(destinations: readonly OutputDestination[]): void {
  for (const destination of destinations) {
    try {
      requirePlace(destination);
    } catch (error) {
      if (!(error instanceof BoughError)) throw error;
      const { hint = "Name another place with dest=PATH.", cause } = error;
      throw new BoughError(`--output: ${messageOf(error)}`, { kind: "usage", hint, cause });
    }
  }
}

/** Makes the missing directories above an output, as docker buildx build does. */
export function makeParents(destination: OutputDestination): void {
  if (!("path" in destination) || destination.path === undefined) return;
  try {
    mkdirSync(dirname(destination.path), { recursive: true });
  } catch (error) {
    throw cannotWrite(destination.path, error);
  }
}

function requirePlace(destination: OutputDestination): void {
  switch (destination.kind) {
    case "registry":
    case "daemon":
      return;
    case "oci-archive":
    case "docker-archive":
    case "tar":
      if (destination.path !== undefined) requireWritableAbove(filePlace(destination.path));
      return;
    case "oci": {
      const index = join(destination.path, "index.json");
      if (existsSync(index)) {
        readManifests(index);
        requireWritable(destination.path, destination.path);
        return;
      }
      requireEmpty(destination.path);
      requireWritableAbove(destination.path);
      return;
    }
    case "dir":
    case "rootfs":
      requireEmpty(destination.path);
      requireWritableAbove(destination.path);
      return;
    case "local":
      requireLocalPlace(destination.path);
  }
}

function requireLocalPlace(path: string): void {
  const stats = attempt(path, () => statSync(path, { throwIfNoEntry: false }));
  if (stats?.isDirectory() === false)
    throw new BoughError(`cannot write the directory ${displayPath(path)}: it is a file`);
  if (stats === undefined) requireWritableAbove(path);
  else requireWritable(path, path);
}

/** Throws if nothing can be made in the nearest directory that exists above a path. */
function requireWritableAbove(path: string): void {
  let above = dirname(path);
  // A dangling link exists, too: no directory can be made in its place.
  while (attempt(path, () => lstatSync(above, { throwIfNoEntry: false })) === undefined)
    above = dirname(above);
  requireWritable(above, path);
}

/** Throws if `directory` is not one in which files can be made. */
function requireWritable(directory: string, path: string): void {
  // With the dot, the system refuses a file.
  attempt(path, () => accessSync(`${directory}/.`, constants.W_OK));
}

function attempt<Result>(path: string, action: () => Result): Result {
  try {
    return action();
  } catch (error) {
    throw cannotWrite(path, error);
  }
}

/** Options of all commands that write images. */
export const exportOptions: ArgumentDefinitions = {
  "digest-file": digestFileDefinition,
  compression: {
    type: "string",
    completes: compressions,
    valueHint: "gzip|zstd|none",
    description: "How layers are compressed (default: gzip)",
  },
  "rewrite-timestamp": {
    type: "boolean",
    description: "Also limit the files' times to SOURCE_DATE_EPOCH",
  },
  insecure: { type: "boolean", description: "The same as --tls-verify=false" },
  ...registryOptions,
  creds: credentialsDefinition,
};

export function readCompression(values: Values) {
  return oneOf(values.text("compression") ?? "gzip", compressions, "--compression");
}

/** Reads the images that the index of an OCI layout lists. Throws a BoughError if it is not an index. */
export function readManifests(path: string): object[] {
  try {
    const { manifests } = JSON.parse(readFileSync(path, "utf8")) as { manifests?: unknown };
    if (Array.isArray(manifests) && manifests.every((each) => typeof each === "object" && each !== null))
      return manifests as object[];
  } catch (error) {
    throw new BoughError(`${path} cannot be read: is its directory an OCI image layout?`, { cause: error });
  }
  throw new BoughError(`${path} lists no images: its directory is not an OCI image layout`);
}

/** True for an image of an index that a new one with these annotations replaces: one of the same name. */
export function isReplacedBy(manifest: object, annotations: Readonly<Record<string, unknown>>): boolean {
  const { annotations: own = {} } = manifest as { annotations?: Record<string, unknown> };
  // Several repositories may have the same tag, which is all that skopeo knows.
  const areWhole =
    own[containerdNameAnnotation] !== undefined && annotations[containerdNameAnnotation] !== undefined;
  const key = areWhole ? containerdNameAnnotation : nameAnnotation;
  return own[key] === annotations[key];
}

/** Has a file written at a temporary path, and gives it its name when it is complete. */
export async function writeWholeFile<T>(path: string, write: (temporary: string) => Promise<T>): Promise<T> {
  const place = filePlace(path);
  // Only who writes files needs the C library.
  const { openTemporaryFile } = await import("../../image/temporary-file.ts");
  try {
    using file = openTemporaryFile(dirname(place));
    const result = await write(file.path);
    file.keep(place);
    return result;
  } catch (error) {
    throw writeError(place, error);
  }
}

/** Does the same for a directory, which must be new or empty. */
export async function writeWholeDirectory<T>(
  path: string,
  write: (temporary: string) => Promise<T>,
): Promise<T> {
  requireEmpty(path);
  const temporary = join(dirname(path), `.bough-${crypto.randomUUID()}`);
  try {
    mkdirSync(temporary);
    const result = await write(temporary);
    if (lstatSync(path, { throwIfNoEntry: false }) !== undefined) rmdirSync(path);
    renameOver(temporary, path);
    return result;
  } catch (error) {
    rmSync(temporary, { recursive: true, force: true });
    throw writeError(path, error);
  }
}

/** Returns the path of the file that `writeWholeFile` replaces. Throws a BoughError if something else than a file is there. */
function filePlace(path: string): string {
  const stats = statsOf(path, statSync);
  if (stats?.isDirectory() === true)
    throw new BoughError(`cannot write the file ${displayPath(path)}: it is a directory`);
  // The file would replace a device or a pipe.
  if (stats?.isFile() === false) {
    throw new BoughError(`${displayPath(path)} is not a regular file`, {
      hint: "Write - for standard output, as in tar:-.",
    });
  }
  // Replaces the target of a link, not the link.
  return stats === undefined ? path : realpathSync(path);
}

function writeError(path: string, error: unknown): unknown {
  return error instanceof Error && "code" in error ? cannotWrite(path, error) : error;
}

/** Throws a BoughError if `writeWholeDirectory` can't write there. */
function requireEmpty(path: string): void {
  const stats = statsOf(path, lstatSync);
  if (stats === undefined || (stats.isDirectory() && readdirSync(path).length === 0)) return;
  throw new BoughError(`${displayPath(path)} already exists and is not an empty directory`, {
    hint: "Remove it, or name another place.",
  });
}

function statsOf(path: string, look: typeof lstatSync): Stats | undefined {
  try {
    return look(path, { throwIfNoEntry: false });
  } catch (error) {
    throw cannotWrite(path, error);
  }
}
