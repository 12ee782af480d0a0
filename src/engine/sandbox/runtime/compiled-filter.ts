/**
 * The filter of system calls as the kernel takes it: crun hands over what it is given, and so needs not compile it for each
 * container, which takes as long as all else that it does.
 */

/** One instruction of a filter (seccomp(2), `struct sock_filter`): its code, two distances to jump, and its operand. */
interface Instruction {
  code: number;
  ifTrue: number;
  ifFalse: number;
  operand: number;
}

/** `AUDIT_ARCH_` of linux/audit.h: x86-64, x86, arm64, arm. */
const architectures = [0xc000003e, 0x40000003, 0xc00000b7, 0x40000028];
/** Calls have numbers below this one; architectures' own start at 0xf0000 (arm) and 0x40000000 (x32). */
const [maxCall, firstOwnCall] = [1024, 0xf0000];

const [loadAbsolute, jump, ifEqual, ifGreater, ifAtLeast, ifSet, and, toReturn] = [
  0x20, 0x05, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06,
];
/** Where the kernel has a call's number and architecture (`struct seccomp_data`). */
const [numberOffset, architectureOffset] = [0, 4];
const failWith = 0x0005_0000;
const notImplemented = failWith + 38;

/**
 * Returns the filter with one more rule before all others: calls that are newer than all that it allows are missing, not
 * forbidden. A C library that tries a new one goes on with an old one then. runc does the same with what it compiles.
 */
export function withoutNewerCalls(filter: Uint8Array): Uint8Array {
  const instructions = decode(filter);
  const newest = architectures.flatMap((architecture) => {
    const call = newestCall(instructions, architecture);
    return call === undefined ? [] : [{ architecture, call }];
  });
  // After the rules: a jump over the last instruction, and that one.
  const [end, refusal] = [1 + 4 * newest.length + 2, 1 + 4 * newest.length + 1];
  const rules = newest.flatMap(({ architecture, call }, index): Instruction[] => {
    const at = 1 + 4 * index;
    return [
      { code: ifEqual, ifTrue: 0, ifFalse: 3, operand: architecture },
      { code: loadAbsolute, ifTrue: 0, ifFalse: 0, operand: numberOffset },
      { code: ifAtLeast, ifTrue: end - (at + 3), ifFalse: 0, operand: firstOwnCall },
      { code: ifGreater, ifTrue: refusal - (at + 4), ifFalse: end - (at + 4), operand: call },
    ];
  });
  return encode([
    { code: loadAbsolute, ifTrue: 0, ifFalse: 0, operand: architectureOffset },
    ...rules,
    { code: jump, ifTrue: 0, ifFalse: 0, operand: 1 },
    { code: toReturn, ifTrue: 0, ifFalse: 0, operand: notImplemented },
    ...instructions,
  ]);
}

/** What a filter has the kernel do with a call, as the return value of the filter; arguments are 0. */
export function evaluateFilter(filter: Uint8Array, architecture: number, number: number): number {
  return evaluate(decode(filter), architecture, number);
}

/** The highest number of a call that is not treated as those are that the filter does not know; `undefined`: not its architecture. */
function newestCall(instructions: readonly Instruction[], architecture: number): number | undefined {
  const unknown = evaluate(instructions, architecture, firstOwnCall - 1);
  for (let number = maxCall; number >= 0; number--)
    if (evaluate(instructions, architecture, number) !== unknown) return number;
  return undefined;
}

/** Makes no object: a thousand calls are tried for each architecture, by as many instructions. */
function evaluate(instructions: readonly Instruction[], architecture: number, number: number): number {
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const instruction = instructions[at];
    if (instruction === undefined) throw new Error("a filter of system calls ends without a result");
    const { code, ifTrue, ifFalse, operand } = instruction;
    switch (code) {
      case loadAbsolute:
        accumulator = operand === numberOffset ? number : operand === architectureOffset ? architecture : 0;
        break;
      case and:
        accumulator = (accumulator & operand) >>> 0;
        break;
      case jump:
        at += operand;
        break;
      case ifEqual:
        at += accumulator === operand ? ifTrue : ifFalse;
        break;
      case ifGreater:
        at += accumulator > operand ? ifTrue : ifFalse;
        break;
      case ifAtLeast:
        at += accumulator >= operand ? ifTrue : ifFalse;
        break;
      case ifSet:
        at += (accumulator & operand) !== 0 ? ifTrue : ifFalse;
        break;
      case toReturn:
        return operand;
      default:
        throw new Error(`a filter of system calls has the unknown instruction ${code}`);
    }
  }
}

function decode(filter: Uint8Array): Instruction[] {
  const bytes = Buffer.from(filter);
  if (bytes.length === 0 || bytes.length % 8 !== 0) throw new Error("a filter of system calls is cut off");
  return Array.from({ length: bytes.length / 8 }, (_, index) => ({
    code: bytes.readUInt16LE(8 * index),
    ifTrue: bytes.readUInt8(8 * index + 2),
    ifFalse: bytes.readUInt8(8 * index + 3),
    operand: bytes.readUInt32LE(8 * index + 4),
  }));
}

function encode(instructions: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  for (const [index, { code, ifTrue, ifFalse, operand }] of instructions.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.writeUInt8(ifTrue, 8 * index + 2);
    bytes.writeUInt8(ifFalse, 8 * index + 3);
    bytes.writeUInt32LE(operand, 8 * index + 4);
  }
  return bytes;
}
