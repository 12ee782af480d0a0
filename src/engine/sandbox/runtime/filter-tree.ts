import {
  architectureOffset,
  architectures,
  evaluate,
  type Instruction,
  ifAtLeast,
  ifEqual,
  instruction,
  jump,
  loadAbsolute,
  maxCall,
  numberOffset,
  toReturn,
} from "./filter-program.ts";

/** The result of all calls from this number up to the next range; `undefined`: the original filter has to decide. */
interface Range {
  first: number;
  result: number | undefined;
}

/** The kernel's `BPF_MAXINSNS`. */
const maxInstructions = 4096;
/** The maximum distance of a conditional jump. */
const maxDistance = 255;

/**
 * Returns a filter with the same results in fewer steps: it searches for the call's number in a binary tree. When a process gets
 * a filter, the kernel first evaluates it for each possible call. With libseccomp's linear comparisons that is a tenth of a
 * container's start.
 */
export function withSearchTree(filter: readonly Instruction[]): Instruction[] {
  const trees = architectures.flatMap((architecture) => {
    const ranges = rangesOf(filter, architecture);
    // The filter treats all calls alike: it is not for this architecture.
    if (ranges.length <= 2) return [];
    const search = [instruction(loadAbsolute, numberOffset), ...searchTree(ranges)];
    return [instruction(ifEqual, architecture, 1, 0), instruction(jump, search.length), ...search];
  });
  const before = [instruction(loadAbsolute, architectureOffset), ...trees];
  const whole = [...before.map((each, at) => (each === toFilter ? jumpOver(before, at) : each)), ...filter];
  return whole.length > maxInstructions ? [...filter] : whole;
}

function rangesOf(filter: readonly Instruction[], architecture: number): Range[] {
  const ranges: Range[] = [];
  for (let first = 0; first <= maxCall; first++) {
    const result = first === maxCall ? undefined : evaluate(filter, architecture, first, undefined);
    if (first === 0 || ranges.at(-1)?.result !== result) ranges.push({ first, result });
  }
  return ranges;
}

/** A placeholder for a jump to the filter, until the filter's position is known. */
const toFilter = instruction(jump, 0);

function jumpOver(before: readonly Instruction[], at: number): Instruction {
  return instruction(jump, before.length - (at + 1));
}

function searchTree(ranges: readonly Range[]): Instruction[] {
  const half = ranges.length >> 1;
  const middle = ranges[half];
  if (middle === undefined || half === 0) {
    const result = ranges[0]?.result;
    return [result === undefined ? toFilter : instruction(toReturn, result)];
  }
  const [below, above] = [searchTree(ranges.slice(0, half)), searchTree(ranges.slice(half))];
  const branch =
    below.length <= maxDistance
      ? [instruction(ifAtLeast, middle.first, below.length, 0)]
      : [instruction(ifAtLeast, middle.first, 0, 1), instruction(jump, below.length)];
  return [...branch, ...below, ...above];
}
