/**
 * The compiled system call filter, for crun to load as it is. Compiling it for each container takes as long as everything else
 * that crun does.
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

/** Returns the filter for commands, made from the one that crun's library has compiled. */
export function improveFilter(compiled: Uint8Array): Uint8Array {
  return encodeFilter(withSearchTree(withoutNewerCalls(decodeFilter(compiled))));
}

/**
 * Adds a rule before all others: calls newer than all that the filter allows fail with ENOSYS instead of EPERM. A C library that
 * tries a new call then falls back to an old one. runc adds the same rule.
 */
function withoutNewerCalls(instructions: readonly Instruction[]): Instruction[] {
  const newest = architectures.flatMap((architecture) => {
    const call = newestCall(instructions, architecture);
    return call === undefined ? [] : [{ architecture, call }];
  });
  // After the rules come two instructions: a jump over the last one, and the refusal.
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

/** Returns the highest call number that the filter treats unlike unknown calls; `undefined`: it is not for this architecture. */
function newestCall(instructions: readonly Instruction[], architecture: number): number | undefined {
  const unknown = evaluate(instructions, architecture, firstOwnCall - 1, 0);
  for (let number = maxCall; number >= 0; number--)
    if (evaluate(instructions, architecture, number, 0) !== unknown) return number;
  return undefined;
}
