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

/** Calls from this number on, up to the next range's, have this result; `undefined`: the filter itself has to say. */
interface Range {
  first: number;
  result: number | undefined;
}

/** The kernel's `BPF_MAXINSNS`. */
const maxInstructions = 4096;
/** How far a condition can jump. */
const maxDistance = 255;

/**
 * Returns a filter with the same results, which it comes to in a few steps: by a search for the call's number. Before a process has a
 * filter, the kernel tries it with each call there is; where numbers are compared one after the other, as libseccomp has it, that
 * is a tenth of what a container takes to start.
 */
export function withSearchTree(filter: readonly Instruction[]): Instruction[] {
  const trees = architectures.flatMap((architecture) => {
    const ranges = rangesOf(filter, architecture);
    // The filter treats all calls of it alike: it is not for this architecture.
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

/** What stands for a jump to the filter until its place is known. */
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
