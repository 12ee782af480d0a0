/** Groups files that are in several layers by the instructions that made them, and finds where their images begin to differ. */
import type { LargeFile } from "./read-layer.ts";
import type { SharedFiles } from "./shared-files.ts";

/** A line of an image's history. */
export interface HistoryStep {
  instruction: string;
  /** The number of the layer that has its files. */
  layer: number | undefined;
  /** True if the image was imported with it. */
  isBase: boolean;
}

export interface ComparedImage {
  name: string;
  steps: readonly HistoryStep[];
}

/**
 * The reason why the files are in several layers: `moved` if one instruction made all of them after steps that differ, `changed` if only
 * its own result differs, `bases` if the images have different bases, `rewritten` if most images have the files twice, `different` if
 * several instructions made them.
 */
type DuplicateKind = "moved" | "changed" | "bases" | "rewritten" | "different";

export interface DuplicateFinding {
  kind: DuplicateKind;
  /** The instructions of the layers, each once. */
  instructions: readonly string[];
  /** The names of the images with one of the layers. */
  images: readonly string[];
  /** The number of layers that have the files. */
  layers: number;
  files: number;
  /** The size of one copy of all files. */
  bytes: number;
  /** The size of all copies but one on this machine's disk. */
  diskBytes: number;
  /** The size of all copies but one in a registry, which stores identical archives once, before compression. */
  registryBytes: number;
  /** The first steps that differ between the images, each once. */
  before: readonly string[];
  /** The largest first. */
  largest: readonly Pick<LargeFile, "path" | "size">[];
}

const maxLargest = 3;

interface ComparedLayers {
  images: readonly ComparedImage[];
  shared: readonly SharedFiles[];
  /** Returns the number of different archives of layers. */
  archivesOf(layers: readonly number[]): number;
  /** Returns the largest of these files. */
  largestOf(files: SharedFiles): readonly LargeFile[];
}

/** Returns a finding for each set of instructions, the largest waste first. */
export function findDuplicates({
  images,
  shared,
  archivesOf,
  largestOf,
}: ComparedLayers): DuplicateFinding[] {
  const linesOf = instructionsByLayer(images);
  const usersOf = imagesByLayer(images);
  const groups = Map.groupBy(shared, ({ layers }) =>
    JSON.stringify([isRewritten(layers, usersOf), commonInstructions(layers, linesOf).toSorted()]),
  );
  const findings = [...groups.values()].map((group): DuplicateFinding => {
    const layers = [...new Set(group.flatMap((each) => each.layers))];
    const largest = group.flatMap(largestOf).sort((a, b) => b.size - a.size);
    const instructions = commonInstructions(group[0]?.layers ?? [], linesOf);
    const affected = imagesWith(layers, images, usersOf);
    const { before, ...place } = locateDuplicates(affected, instructions, isRewritten(layers, usersOf));
    return {
      ...place,
      layers: layers.length,
      files: sum(group.map(({ files }) => files)),
      bytes: sum(group.map(({ bytes }) => bytes)),
      diskBytes: sum(group.map((each) => each.bytes * (each.layers.length - 1))),
      registryBytes: sum(group.map((each) => each.bytes * (archivesOf(each.layers) - 1))),
      before,
      largest: largest.slice(0, maxLargest).map(({ path, size }) => ({ path, size })),
    };
  });
  return findings.sort((one, other) => other.diskBytes - one.diskBytes);
}

/** Returns the instructions of each layer's files, in their order. */
function instructionsByLayer(images: readonly ComparedImage[]): Map<number, readonly string[]> {
  const lines = new Map<number, readonly string[]>();
  for (const { steps } of images) {
    const own = Map.groupBy(steps, ({ layer }) => layer);
    for (const [layer, made] of own)
      if (layer !== undefined && !lines.has(layer))
        lines.set(
          layer,
          made.map(({ instruction }) => instruction),
        );
  }
  return lines;
}

/**
 * Returns the last instruction that all layers have; without one, the last one of each layer. A layer has several instructions if files
 * were copied before its RUN.
 */
function commonInstructions(
  layers: readonly number[],
  linesOf: ReadonlyMap<number, readonly string[]>,
): string[] {
  const all = layers.map((layer) => linesOf.get(layer) ?? []);
  const common = all[0]?.findLast((line) => all.every((lines) => lines.includes(line)));
  if (common !== undefined) return [common];
  return [...new Set(all.map((lines) => lines.at(-1) ?? ""))];
}

/** Returns the numbers of the images that have a layer, in ascending order. */
type ImagesOf = (layer: number) => ReadonlySet<number>;

function imagesByLayer(images: readonly ComparedImage[]): ImagesOf {
  const users = new Map<number, Set<number>>();
  for (const [image, { steps }] of images.entries())
    for (const { layer } of steps)
      if (layer !== undefined) users.getOrInsertComputed(layer, () => new Set()).add(image);
  return (layer) => users.get(layer) ?? new Set();
}

/**
 * True if at least half of the images with one of the layers have several. The layer with the most images, which may be a base of all of
 * them, is only counted, since it can be in many sets of layers.
 */
function isRewritten(layers: readonly number[], usersOf: ImagesOf): boolean {
  const users = layers.map(usersOf);
  const most = users.reduce((one, other) => (other.size > one.size ? other : one), new Set());
  const counts = new Map<number, number>();
  for (const each of users)
    if (each !== most) for (const image of each) counts.set(image, (counts.get(image) ?? 0) + 1);
  let [all, several] = [most.size, 0];
  for (const [image, count] of counts) {
    const hasMost = most.has(image);
    if (!hasMost) all += 1;
    if (hasMost || count > 1) several += 1;
  }
  return several * 2 >= all;
}

/** Returns the images with one of the layers, in their order. */
function imagesWith(
  layers: readonly number[],
  images: readonly ComparedImage[],
  usersOf: ImagesOf,
): ComparedImage[] {
  const numbers = new Set(layers.flatMap((layer) => [...usersOf(layer)]));
  return [...numbers].sort((one, other) => one - other).flatMap((number) => images[number] ?? []);
}

/** @param affected the images with one of the layers */
function locateDuplicates(
  affected: readonly ComparedImage[],
  instructions: readonly string[],
  isRewritten: boolean,
): Pick<DuplicateFinding, "kind" | "instructions" | "images" | "before"> {
  const shared = { instructions, images: affected.map(({ name }) => name) };
  if (isRewritten) return { kind: "rewritten", ...shared, before: [] };
  const at = commonSteps(affected.map(({ steps }) => steps));
  const differing = affected.flatMap(({ steps }) => steps[at] ?? []);
  if (differing.some(({ isBase }) => isBase)) return { kind: "bases", ...shared, before: [] };
  const before = [...new Set(differing.map(({ instruction }) => instruction))];
  if (instructions.length > 1) return { kind: "different", ...shared, before };
  // One of the images may have the instruction in the right position already.
  const others = before.filter((line) => line !== instructions[0]);
  return { kind: others.length === 0 ? "changed" : "moved", ...shared, before: others };
}

/** Returns the number of leading steps that all images have in common. */
function commonSteps(all: readonly (readonly HistoryStep[])[]): number {
  const [first = [], ...others] = all;
  const at = first.findIndex((step, index) =>
    others.some((steps) => {
      const other = steps[index];
      return other === undefined || other.instruction !== step.instruction || other.layer !== step.layer;
    }),
  );
  return at < 0 ? first.length : at;
}

function sum(numbers: readonly number[]): number {
  return numbers.reduce((total, each) => total + each, 0);
}
