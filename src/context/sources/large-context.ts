import { escapeGlob } from "../patterns/glob.ts";
import type { SourceMatch } from "./entry-list.ts";

/** The reason why a context is large, and how to leave that out. */
export interface LargeContext {
  files: number;
  bytes: number;
  /** Up to five paths, the largest first. Tiny ones are left out. */
  largest: readonly LargePath[];
}

interface LargePath {
  /** Relative to the context root. */
  path: string;
  /** The line for an ignore file that leaves it out. */
  rule: string;
  files: number;
  bytes: number;
}

const manyBytes = 200_000_000;
const manyFiles = 20_000;
const maxNamed = 5;
/** The minimum share of the largest path: anything smaller is not worth a rule. */
const minShare = 0.01;
/** The share from which the largest child is named instead of its directory. */
const mainShare = 0.8;

/**
 * Returns what makes directories and patterns larger than anybody is likely to want in an image; `undefined` if nothing does.
 * Files that the Dockerfile names one by one are wanted, however large.
 */
export function findLargeContext(matches: readonly SourceMatch[]): LargeContext | undefined {
  let count = 0;
  let bytes = 0;
  const isNamed = ({ entries, source }: SourceMatch) => {
    const first = entries.at(0);
    return first?.contextPath === source && first.type === "file";
  };
  for (const match of matches) {
    if (isNamed(match)) continue;
    count += match.entries.files;
    bytes += match.entries.bytes;
  }
  if (bytes <= manyBytes && count <= manyFiles) return undefined;
  const unnamed = matches.filter((match) => !isNamed(match));
  const weigh = bytes > manyBytes ? (node: Node) => node.bytes : (node: Node) => node.files;
  const sourceDirectories = matches.flatMap(({ entries, isDirectory }) => {
    const first = entries.at(0);
    return isDirectory && first?.type === "directory" ? [first.contextPath] : [];
  });
  const largest = below(buildTree(unnamed), sourceDirectories)
    .map((node) => descend(node, weigh))
    .sort((a, b) => weigh(b) - weigh(a))
    .filter((node, _, [first = node]) => weigh(node) >= minShare * weigh(first))
    .slice(0, maxNamed)
    .map((node) => ({ path: node.path, rule: ruleFor(node), files: node.files, bytes: node.bytes }));
  return { files: count, bytes, largest };
}

interface Node extends Omit<LargePath, "rule"> {
  /** The contents of a directory. */
  below?: { directories: Map<string, Node>; largestFiles: LargeFile[] };
}

interface LargeFile {
  contextPath: string;
  size: number;
}

/** Builds a tree of all directories with the totals below them. Keeps only those files that can be among the largest paths. */
function buildTree(matches: readonly SourceMatch[]): Node {
  const root = directoryAt("");
  /** The directory of the previous file, with all directories above it, and its path. */
  let chain = [root];
  let last = "";
  /** The files of that directory that are not counted yet, as neighbours usually share a directory. */
  let [files, bytes] = [0, 0];
  const count = () => {
    for (const node of chain) {
      node.files += files;
      node.bytes += bytes;
    }
    [files, bytes] = [0, 0];
  };
  for (const { entries } of matches) {
    entries.forEachFile((directory, name, size) => {
      if (directory !== last) {
        count();
        last = directory;
        chain = chainTo(root, directory === "" ? "" : `${directory}/`);
      }
      files += 1;
      bytes += size;
      keepLargest(chain.at(-1)?.below?.largestFiles ?? [], directory, name, size);
    });
  }
  count();
  return root;
}

/** Returns the directories on the way to one, and makes missing ones. `prefix`: its path with a slash. */
function chainTo(root: Node, prefix: string): Node[] {
  let node = root;
  const chain = [root];
  for (let slash = prefix.indexOf("/"); slash >= 0; slash = prefix.indexOf("/", slash + 1)) {
    const path = prefix.slice(0, slash);
    let child = node.below?.directories.get(path);
    if (child === undefined) {
      child = directoryAt(path);
      node.below?.directories.set(path, child);
    }
    node = child;
    chain.push(node);
  }
  return chain;
}

function directoryAt(path: string): Node {
  return { path, files: 0, bytes: 0, below: { directories: new Map(), largestFiles: [] } };
}

function keepLargest(largest: LargeFile[], directory: string, name: string, size: number): void {
  if (largest.length === maxNamed && size <= (largest.at(-1)?.size ?? 0)) return;
  largest.push({ contextPath: directory === "" ? name : `${directory}/${name}`, size });
  largest.sort((a, b) => b.size - a.size).splice(maxNamed);
}

function childrenOf({ below }: Node): Node[] {
  if (below === undefined) return [];
  const files = below.largestFiles.map(({ contextPath, size }) => ({
    path: contextPath,
    files: 1,
    bytes: size,
  }));
  return [...below.directories.values(), ...files];
}

/** Returns the nodes directly in the source directories, which are wanted as a whole. */
function below(node: Node, sourceDirectories: readonly string[]): Node[] {
  const isSource = (path: string) => path === node.path || path.startsWith(`${node.path}/`);
  const isOpen = node.path === "" || sourceDirectories.some(isSource);
  return isOpen ? childrenOf(node).flatMap((child) => below(child, sourceDirectories)) : [node];
}

function descend(node: Node, weigh: (node: Node) => number): Node {
  const heaviest = childrenOf(node).reduce<Node | undefined>(
    (best, child) => (best === undefined || weigh(child) > weigh(best) ? child : best),
    undefined,
  );
  return heaviest !== undefined && weigh(heaviest) >= mainShare * weigh(node)
    ? descend(heaviest, weigh)
    : node;
}

/** Returns the ignore rule for a path. `?` replaces control characters and white space at its ends, which a rule can't contain. */
function ruleFor({ path, below }: Node): string {
  const pattern = escapeGlob(path)
    .replace(/^\s|\s$|[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, "?")
    .replace(/^[#!]/, "\\$&");
  return below !== undefined ? `${pattern}/` : pattern;
}
