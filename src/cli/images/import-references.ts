/** Parses the arguments of `bough images import` into images to import and their tags. */
import { existsSync, statSync } from "node:fs";
import { join, resolve } from "node:path";
import { localPath } from "../../context/file-system/file-system.ts";
import type { NamingKind } from "../../engine/import/image-names.ts";
import { messageOf, usageError } from "../../errors.ts";
import { isWrittenAsPath } from "../../paths/local-path.ts";
import type { Service } from "../../service/client.ts";
import { type LocalReference, parseReference, parseTag, withLatest } from "../../service/images/reference.ts";
import type { ImageImport } from "../../service/service.ts";
import { isDockerName } from "../../service/wire/image.ts";
import { startImportProgress } from "../../terminal/import-progress.ts";
import type { Surroundings } from "../command-line/command.ts";
import { watchedTerminal } from "../process/runtime.ts";
import { isEmbedded } from "../service/choice.ts";

/** An image to import. */
export interface ImportReference {
  url: string;
  /** The text to show instead of the URL of a temporary file. */
  shown?: string | undefined;
  tags: readonly string[];
  /** An archive or a layout, which may hold several images, each with its own names. */
  archive: { kind: NamingKind; path: string } | undefined;
  /**
   * The origin of the tags. A tag made of the last part of a path is not a name that a user chose, so it is not taken from another image.
   */
  tagsFrom: "option" | "name" | "path";
}

export function readReferences(
  { positionals, tagOption }: { positionals: readonly string[]; tagOption: string | undefined },
  workingDirectory: string,
): ImportReference[] {
  const given = positionals.map((text) => resolveRelativePath(text, workingDirectory));
  if (tagOption !== undefined && given.length > 1) {
    throw usageError(
      "--tag cannot be used with several images",
      "Import them one by one, or without --tag: each then gets the tag of its reference.",
    );
  }
  return given.map((text) => {
    requireKind(text, workingDirectory);
    const reference = parseReference(text);
    if (reference.kind === "registry" || reference.kind === "local") {
      const { url, tag } = reference;
      if (tagOption !== undefined)
        return { url, tags: [parseTag(tagOption)], tagsFrom: "option", archive: undefined };
      const tags = tag === undefined ? [] : [tag];
      if (reference.kind === "registry") return { url, tags, tagsFrom: "name", archive: undefined };
      const { transport, suffix } = reference;
      const isNamed = transport === "docker-archive" || /[/:]/.test(suffix.slice(1));
      return {
        ...{ url, tags, tagsFrom: suffix !== "" && isNamed ? "name" : "path" },
        archive: suffix === "" ? unnamedArchive(reference) : undefined,
      };
    }
    throw usageError(`${text} names an image that is already stored: there is nothing to import`);
  });
}

/** Throws for the path of an existing file or directory without a transport such as `oci:`. */
function requireKind(text: string, workingDirectory: string): void {
  const path = resolve(workingDirectory, text);
  const isPath = isWrittenAsPath(text);
  if (!(isPath || /\.(tar(\.\w+)?|tgz)$/.test(text)) || /^[a-z-]{2,}:/.test(text) || !existsSync(path))
    return;
  const place = isPath ? text : `./${text}`;
  const isDirectory = statSync(path).isDirectory();
  throw usageError(
    `${text} is a ${isDirectory ? "directory" : "file"}, not the name of an image`,
    isDirectory
      ? `Give its kind: oci:${place} for an OCI layout, dir:${place} for a directory of skopeo.`
      : `Give its kind: docker-archive:${place} for one of docker save, oci-archive:${place} for an OCI archive. Of a packed root file system, FROM scratch and ADD ${text} / make an image.`,
  );
}

/**
 * Makes relative paths absolute. As in skopeo, `oci:layout` means the directory of that name if it exists, else the image `oci` with
 * that tag. A path always follows `oci-archive:` and `docker-archive:`, and also a transport before a text with a slash, as tags have none.
 */
function resolveRelativePath(text: string, workingDirectory: string): string {
  const [, transport, rest = ""] = /^((?:oci|oci-archive|docker-archive|dir):)([^/.:].*)/s.exec(text) ?? [];
  if (transport === undefined || isWrittenAsPath(rest)) return text;
  const [path = ""] = rest.split(":", 1);
  const isArchive = transport.endsWith("-archive:");
  const isPath = isArchive || localPath(path).includes("/");
  if (!isPath && !existsSync(join(workingDirectory, path))) return text;
  return `${transport}${join(workingDirectory, rest)}`;
}

function unnamedArchive({ transport, path }: LocalReference): ImportReference["archive"] {
  const kind = (["docker-archive", "oci-archive", "oci"] as const).find((each) => each === transport);
  return kind && { kind, path };
}

/**
 * Replaces a reference to an archive or a layout without a name by a reference for each image in it, tagged with its own names, as
 * `docker load` does. A remote service can't read local files, and reports that.
 */
export async function expandArchive(
  reference: ImportReference,
  { runtime, globals, log }: Surroundings,
): Promise<ImportReference[]> {
  const { url, archive } = reference;
  if (archive === undefined || !isEmbedded(runtime, globals)) return [reference];
  const path = resolve(runtime.workingDirectory, archive.path);
  const { readImageNames } = await import("../../engine/import/image-names.ts");
  // If the archive can't be read, the import reports the reason.
  const images = await readImageNames(archive.kind, path, runtime.signal).catch((error: unknown) => {
    runtime.signal.throwIfAborted();
    log.debug(`the names in ${path}: ${messageOf(error)}`);
    return [];
  });
  if (images.length === 0) return [reference];
  return images.map((image) => ({
    ...reference,
    tagsFrom: "name",
    url: image.reference === undefined ? url : `${url}:${image.reference}`,
    tags: image.names.flatMap((name) => {
      const tag = withLatest(name);
      if (isDockerName(tag)) return tag;
      log.warn(`${name} in ${path} is not a valid tag here`);
      return [];
    }),
  }));
}

/** Returns the reference to an archive from standard input, whose temporary file's name must not become a tag. */
export function asStandardInput(reference: ImportReference, shown: string): ImportReference {
  return { ...reference, shown, ...(reference.tagsFrom === "path" && { tags: [] }) };
}

/** Imports an image, and shows its progress. */
export async function importWithProgress(
  request: ImageImport & Pick<ImportReference, "shown">,
  service: Service,
  { runtime, globals, log }: Surroundings,
): Promise<string> {
  const { shown: _, ...asked } = request;
  const progress = startImportProgress({
    url: request.shown ?? request.url,
    clock: runtime.clock,
    log,
    terminal: watchedTerminal(runtime, globals),
  });
  try {
    const image = await service.importImage({ ...asked, onProgress: progress.message });
    progress.end("imported");
    return image;
  } catch (error) {
    progress.end("failed");
    throw error;
  }
}
