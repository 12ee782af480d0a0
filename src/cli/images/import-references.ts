/** The arguments of `bough images import`: which images to import, and the tags that they get. */
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

export interface ImportReference {
  url: string;
  /** What is shown for the URL, if that is a file of bough's own. */
  shown?: string | undefined;
  tags: readonly string[];
  /** An archive or a layout, which may hold several images, each with its own names. */
  archive: { kind: NamingKind; path: string } | undefined;
  /**
   * Where the tags come from. One of the path's last part is no name that somebody has given the image: it stays with another image that
   * has it.
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

/** Throws for the path of a file or directory that exists, without the kind that says how to read it. */
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
 * Makes relative paths absolute. `oci:layout` means the directory of that name if it exists, as for skopeo; else the image `oci`
 * with that tag. `oci-archive:` and `docker-archive:` never start an image name, and no tag has a slash: both always mean paths.
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
 * Returns a reference for each image of an archive or a layout without a given name, tagged with its own names, as `docker load`
 * does. A remote service can't read it, and says so.
 */
export async function expandArchive(
  reference: ImportReference,
  { runtime, globals, log }: Surroundings,
): Promise<ImportReference[]> {
  const { url, archive } = reference;
  if (archive === undefined || !isEmbedded(runtime, globals)) return [reference];
  const path = resolve(runtime.workingDirectory, archive.path);
  const { readImageNames } = await import("../../engine/import/image-names.ts");
  // If it can't be read, the import reports why.
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

/** Returns the reference of an archive that came from standard input. The name of its file is not a tag. */
export function asStandardInput(reference: ImportReference, shown: string): ImportReference {
  return { ...reference, shown, ...(reference.tagsFrom === "path" && { tags: [] }) };
}

/** Imports an image and shows how far it is. */
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
