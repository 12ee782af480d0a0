import type { ResultFormat } from "../support/kept-results.ts";
import { readTar, type TarEntry } from "../support/tar.ts";

/** The entries of a root file system by absolute path, each as one line with all attributes that matter. */
export type Tree = ReadonlyMap<string, TreeEntry>;

export interface TreeEntry {
  /** Such as `file 0644 0:0 12 bytes sha256:...`. */
  line: string;
  /** The beginning of a file, to show different contents. */
  beginning: Uint8Array;
  /** The modification time, in whole seconds since the epoch. */
  modified: number | undefined;
}

export async function readTree(archive: AsyncIterable<Uint8Array>): Promise<Tree> {
  const entries = new Map<string, TarEntry>();
  for await (const entry of readTar(archive)) entries.set(absolutePath(entry.name), entry);
  const groups = linkGroups(entries);
  return new Map(
    [...entries].map(([path, entry]) => {
      const original = entry.type === "hardlink" ? entries.get(absolutePath(entry.target)) : entry;
      if (original === undefined) throw new Error(`${path} is a link to ${entry.target}, which is not there`);
      const others = groups.get(absolutePath(entry.type === "hardlink" ? entry.target : entry.name));
      const { beginning, modified } = original;
      return [path, { line: describe(original, others ?? []), beginning, modified }];
    }),
  );
}

/** What of a tree is not the same in a base image; without a line, the base's entry is not in the tree. */
type PackedTree = [base: string, changes: [path: string, line?: string, modified?: number | null][]];

/** The stored form of trees without the beginnings of files: changes of the base image, by its name, that has the fewest. */
export function treeFormat(bases: () => Readonly<Record<string, Tree>>): ResultFormat<Tree, PackedTree> {
  return {
    pack(tree) {
      const packed = Object.entries({ ...bases(), [nothing]: new Map() }).map(
        ([name, base]): PackedTree => [name, changesOf(tree, base)],
      );
      return packed.reduce((one, other) => (other[1].length < one[1].length ? other : one));
    },
    unpack([name, changes]) {
      const base = name === nothing ? new Map() : bases()[name];
      if (base === undefined) throw new Error(`no base image ${name}`);
      const tree = new Map(base);
      for (const [path, line, modified] of changes) {
        if (line === undefined) tree.delete(path);
        else tree.set(path, { line, beginning: new Uint8Array(), modified: modified ?? undefined });
      }
      return tree;
    },
  };
}

const nothing = "scratch";

function changesOf(tree: Tree, base: Tree): PackedTree[1] {
  const isKept = (path: string) => {
    const [one, other] = [tree.get(path), base.get(path)];
    return one?.line === other?.line && one?.modified === other?.modified;
  };
  const paths = [...new Set([...base.keys(), ...tree.keys()])].filter((path) => !isKept(path)).sort();
  return paths.map((path) => {
    const entry = tree.get(path);
    return entry === undefined ? [path] : [path, entry.line, entry.modified ?? null];
  });
}

/** Returns the sorted paths of each file that has several, by the path of its content in the archive. */
function linkGroups(entries: ReadonlyMap<string, TarEntry>): Map<string, string[]> {
  const groups = new Map<string, string[]>();
  for (const [path, { type, target }] of entries) {
    if (type !== "hardlink") continue;
    const original = absolutePath(target);
    groups.set(original, [...(groups.get(original) ?? [original]), path].sort());
  }
  return groups;
}

function describe(entry: TarEntry, links: readonly string[]): string {
  const mode = entry.mode.toString(8).padStart(4, "0");
  const attributes = [...entry.attributes].sort().map(([name, value]) => `${name}=${value}`);
  return [
    entry.type,
    mode,
    `${entry.uid}:${entry.gid}`,
    ...specifics(entry),
    ...attributes,
    ...linkNote(links),
  ].join(" ");
}

function specifics(entry: TarEntry): string[] {
  switch (entry.type) {
    case "file":
      return [`${entry.size} bytes`, `sha256:${entry.sha256.slice(0, 16)}`];
    case "symlink":
      return ["->", JSON.stringify(entry.target)];
    case "character-device":
    case "block-device":
      return [entry.device];
    default:
      return [];
  }
}

function linkNote(links: readonly string[]): string[] {
  return links.length === 0 ? [] : [`one file as ${links.map((link) => JSON.stringify(link)).join(" and ")}`];
}

function absolutePath(name: string): string {
  return `/${name.replace(/^(\.?\/)+|^\.$/, "").replace(/\/+$/, "")}`;
}
