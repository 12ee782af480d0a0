/**
 * The filter of system calls as the kernel takes it: crun hands over what it is given, and so needs not compile it for each
 * container, which takes as long as all else that it does.
 */
import {
  architectureOffset,
  architectures,
  decodeFilter,
  encodeFilter,
  evaluate,
  type Instruction,
  ifAtLeast,
  ifEqual,
  ifGreater,
  instruction,
  jump,
  loadAbsolute,
  maxCall,
  numberOffset,
  toReturn,
} from "./filter-program.ts";
import { withSearchTree } from "./filter-tree.ts";

const firstOwnCall = 0xf0000;
const failWith = 0x0005_0000;
const notImplemented = failWith + 38;

/** Returns the filter that commands get, of what crun's library has compiled. */
export function improveFilter(compiled: Uint8Array): Uint8Array {
  return encodeFilter(withSearchTree(withoutNewerCalls(decodeFilter(compiled))));
}

/**
 * Returns the filter with one more rule before all others: calls that are newer than all that it allows are missing, not
 * forbidden. A C library that tries a new one goes on with an old one then. runc does the same with what it compiles.
 */
function withoutNewerCalls(instructions: readonly Instruction[]): Instruction[] {
  const newest = architectures.flatMap((architecture) => {
    const call = newestCall(instructions, architecture);
    return call === undefined ? [] : [{ architecture, call }];
  });
  // After the rules: a jump over the last instruction, and that one.
  const [end, refusal] = [1 + 4 * newest.length + 2, 1 + 4 * newest.length + 1];
  const rules = newest.flatMap(({ architecture, call }, index) => {
    const at = 1 + 4 * index;
    return [
      instruction(ifEqual, architecture, 0, 3),
      instruction(loadAbsolute, numberOffset),
      instruction(ifAtLeast, firstOwnCall, end - (at + 3), 0),
      instruction(ifGreater, call, refusal - (at + 4), end - (at + 4)),
    ];
  });
  return [
    instruction(loadAbsolute, architectureOffset),
    ...rules,
    instruction(jump, 1),
    instruction(toReturn, notImplemented),
    ...instructions,
  ];
}

/** The highest number of a call that is not treated as those are that the filter does not know; `undefined`: not its architecture. */
function newestCall(instructions: readonly Instruction[], architecture: number): number | undefined {
  const unknown = evaluate(instructions, architecture, firstOwnCall - 1, 0);
  for (let number = maxCall; number >= 0; number--)
    if (evaluate(instructions, architecture, number, 0) !== unknown) return number;
  return undefined;
}
