import type { BuildRecord } from "../build-record.ts";

/** The data of a report. */
export interface ReportData {
  record: BuildRecord;
  /** Kept output by step. */
  outputs: ReadonlyMap<number, string>;
  /** The last build of the same thing before it. */
  earlier: BuildRecord | undefined;
  /** `undefined` if the image or its layers are not there. */
  sizes: ImageSizes | undefined;
}

/** What an image consists of. */
export interface ImageSizes {
  bytes: number;
  /** Bytes that later layers hide. */
  hiddenBytes: number;
  /** The lowest first. */
  layers: readonly LayerOfImage[];
  root: DirectorySize;
}

interface LayerOfImage {
  instruction: string;
  isBase: boolean;
  bytes: number;
  hiddenBytes: number;
}

/** A directory, or a large file, with all that the layers have below it. */
export interface DirectorySize {
  name: string;
  bytes: number;
  isDirectory: boolean;
  /** Bytes by the number of the layer. */
  byLayer: ReadonlyMap<number, number>;
  /** The largest first. Small ones are left out. */
  children: readonly DirectorySize[];
}

/** A file of a layer. */
export interface SizedFile {
  /** Absolute. */
  path: string;
  bytes: number;
  /** The number of the layer, from 0. */
  layer: number;
}

const maxChildren = 12;
const maxDepth = 6;
/** The minimum share of a part that is shown. */
const minShare = 0.004;

/** Sums up files by directory. */
export function directorySizes(files: Iterable<SizedFile>): DirectorySize {
  const root = createNode("/", true);
  for (const { path, bytes, layer } of files) {
    let node = root;
    add(node, bytes, layer);
    const names = path.split("/").filter((name) => name !== "");
    for (const [at, name] of names.slice(0, maxDepth).entries()) {
      node = node.children.getOrInsertComputed(name, () => createNode(name, at < names.length - 1));
      add(node, bytes, layer);
    }
  }
  return finish(root, root.bytes * minShare);
}

interface Node {
  name: string;
  bytes: number;
  isDirectory: boolean;
  byLayer: Map<number, number>;
  children: Map<string, Node>;
}

function createNode(name: string, isDirectory: boolean): Node {
  return { name, bytes: 0, isDirectory, byLayer: new Map(), children: new Map() };
}

function add(node: Node, bytes: number, layer: number): void {
  node.bytes += bytes;
  node.byLayer.set(layer, (node.byLayer.get(layer) ?? 0) + bytes);
}

function finish({ children, ...node }: Node, least: number): DirectorySize {
  const large = [...children.values()]
    .filter(({ bytes }) => bytes > 0 && bytes >= least)
    .sort((one, other) => other.bytes - one.bytes || (one.name < other.name ? -1 : 1))
    .slice(0, maxChildren);
  return { ...node, children: large.map((child) => finish(child, least)) };
}
