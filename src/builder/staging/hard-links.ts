import { quote } from "../../programs/quote.ts";
import type { InstanceFile } from "../../service/wire/file.ts";
import { parentDirectories } from "../state/path-in-image.ts";
import type { Staged, StagedFile } from "../state/staged.ts";

/** A staged file with several paths. */
export interface LinkedFile {
  file: StagedFile;
  /** Absolute. */
  paths: readonly string[];
}

/** Returns the staged files that have more than one path. */
export function findLinkedFiles(staged: Staged): LinkedFile[] {
  const files = new Map<symbol, { file: StagedFile; paths: string[] }>();
  for (const [path, file] of staged) {
    if (file.type !== "file" || file.inode === undefined) continue;
    const linked = files.get(file.inode);
    if (linked === undefined) files.set(file.inode, { file, paths: [path] });
    else if (linked.file.sha256 === file.sha256) linked.paths.push(path);
  }
  return [...files.values().filter(({ paths }) => paths.length > 1)];
}

/** Returns true if a file may have several paths. Takes less time than `findLinkedFiles`; most contexts have no such file. */
export function hasLinkedFiles(staged: Staged): boolean {
  return staged.values().some((entry) => entry.type === "file" && entry.inode !== undefined);
}

/**
 * Returns a function for the files of a request: it returns the further paths of a file for its first path, and `undefined` for
 * each of these.
 */
export function findFurtherPaths(
  staged: Staged,
): (path: string, file: StagedFile) => readonly string[] | undefined {
  const linked = new Map<symbol | undefined, { first: string | undefined; further: ReadonlySet<string> }>();
  if (hasLinkedFiles(staged))
    for (const { file, paths } of findLinkedFiles(staged))
      linked.set(file.inode, { first: paths[0], further: new Set(paths.slice(1)) });
  return (path, { inode }) => {
    const paths = inode === undefined ? undefined : linked.get(inode);
    if (paths?.further.has(path) === true) return undefined;
    return paths?.first === path ? [...paths.further] : noPaths;
  };
}

const noPaths: readonly string[] = [];

/** The API has no hard links: each such file is sent under one name, and a script links its paths to it. */
export interface LinkPlacement {
  /** The files that the script needs. */
  originals: Record<string, InstanceFile>;
  /** The other files. */
  files: Record<string, InstanceFile>;
  /** Commands that need a prelude with `directories` and `stop`. */
  script: string;
}

/** `place`: the beginning of the originals' paths, which no image has. */
export function placeLinkedFiles(
  linked: readonly LinkedFile[],
  staged: Record<string, InstanceFile>,
  place: string,
): LinkPlacement {
  if (linked.length === 0) return { originals: {}, files: staged, script: "" };
  const files = { ...staged };
  const originals: Record<string, InstanceFile> = {};
  const lines: string[] = [];
  for (const [index, { paths }] of linked.entries()) {
    const [first = ""] = paths;
    const file = files[first];
    if (file === undefined) throw new Error(`no file for ${first}`);
    const original = `${place}.${index}`;
    originals[original] = file;
    for (const path of paths) delete files[path];
    lines.push(`names ${[original, ...paths].map(quote).join(" ")}`);
  }
  const parents = new Set(
    linked.flatMap(({ paths }) => paths.flatMap((path) => parentDirectories(path).at(-1) ?? [])),
  );
  const directories = [...parents].map((path) => `directories ${quote(path)}`);
  return { originals, files, script: [definition, ...directories, ...lines, ""].join("\n") };
}

const definition = `names() {
  file=$1
  shift
  for path; do
    if [ -d "$path" ] && [ ! -L "$path" ]; then
      stop "cannot make the file $path: there is a directory in the image"
    fi
    ln -fn "$file" "$path"
  done
  rm -f "$file"
}`;
