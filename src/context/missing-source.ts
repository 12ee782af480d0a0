import { BoughError } from "../errors.ts";
import { nearest } from "../suggest.ts";
import { displayPath } from "./display-path.ts";
import type { FileSystem } from "./file-system.ts";
import type { Resolution } from "./resolve-path.ts";

/** The error for a source that is not there: names the nearest that is, or the link that leads nowhere. */
export function missingSource(
  source: string,
  resolution: Extract<Resolution, { kind: "missing" }>,
  root: string,
  files: FileSystem,
): BoughError {
  const link = resolution.links.at(-1);
  if (link !== undefined) return danglingLink(source, link, root, files);
  const name = nearest(resolution.name, namesIn(`${root}/${resolution.directory}`, files));
  const path = name === undefined || resolution.directory === "" ? name : `${resolution.directory}/${name}`;
  return new BoughError(`no such file or directory in the build context: ${displayPath(source)}`, {
    hint:
      path === undefined
        ? "Sources count from the context directory, not from the Dockerfile's."
        : `Did you mean ${displayPath(path)}?`,
  });
}

function danglingLink(source: string, link: string, root: string, files: FileSystem): BoughError {
  const target = displayPath(files.readLink(`${root}/${link}`));
  const through = link === source ? "" : `${displayPath(source)}: `;
  return new BoughError(
    `${through}the symbolic link ${displayPath(link)} points to ${target}, which is not in the build context`,
    { hint: "An absolute link counts from the context root. Copy what it points to into the context." },
  );
}

function namesIn(directory: string, files: FileSystem): readonly string[] {
  try {
    return files.readDirectory(directory);
  } catch {
    // Only a suggestion is lost.
    return [];
  }
}
