/** A system call filter in the kernel's form (seccomp(2)): a small program that runs for each call. */

/** One instruction (`struct sock_filter`): its code, two jump distances, and its operand. */
export interface Instruction {
  code: number;
  ifTrue: number;
  ifFalse: number;
  operand: number;
}

/** The codes of linux/bpf_common.h that filters use. */
export const [loadAbsolute, jump, ifEqual, ifGreater, ifAtLeast, ifSet, and, toReturn] = [
  0x20, 0x05, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06,
];
/** Offsets of a call's number and architecture (`struct seccomp_data`). Its arguments follow. */
export const [numberOffset, architectureOffset] = [0, 4];
/** `AUDIT_ARCH_` of linux/audit.h: x86-64, x86, arm64, arm. */
export const architectures = [0xc000003e, 0x40000003, 0xc00000b7, 0x40000028];
/** Call numbers are below this one; architecture-specific ones start at 0xf0000 (arm) and 0x40000000 (x32). */
export const maxCall = 1024;

export function instruction(code: number, operand: number, ifTrue = 0, ifFalse = 0): Instruction {
  return { code, ifTrue, ifFalse, operand };
}

/**
 * Returns a filter's return value for a call. `argument`: the value of all its arguments; if it is missing, a result that depends
 * on an argument is `undefined`. Allocates no objects: a thousand calls are evaluated for each architecture, each by as many
 * instructions.
 */
export function evaluate(
  instructions: readonly Instruction[],
  architecture: number,
  number: number,
  argument: number | undefined,
): number | undefined {
  let accumulator = 0;
  for (let at = 0; ; at++) {
    const next = instructions[at];
    if (next === undefined) throw new Error("a filter of system calls ends without a result");
    const { code, ifTrue, ifFalse, operand } = next;
    switch (code) {
      case loadAbsolute:
        if (operand === numberOffset) accumulator = number;
        else if (operand === architectureOffset) accumulator = architecture;
        else if (argument === undefined) return undefined;
        else accumulator = argument;
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

export function decodeFilter(filter: Uint8Array): Instruction[] {
  const bytes = Buffer.from(filter);
  if (bytes.length === 0 || bytes.length % 8 !== 0) throw new Error("a filter of system calls is cut off");
  return Array.from({ length: bytes.length / 8 }, (_, index) => ({
    code: bytes.readUInt16LE(8 * index),
    ifTrue: bytes.readUInt8(8 * index + 2),
    ifFalse: bytes.readUInt8(8 * index + 3),
    operand: bytes.readUInt32LE(8 * index + 4),
  }));
}

export function encodeFilter(instructions: readonly Instruction[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  for (const [index, { code, ifTrue, ifFalse, operand }] of instructions.entries()) {
    bytes.writeUInt16LE(code, 8 * index);
    bytes.writeUInt8(ifTrue, 8 * index + 2);
    bytes.writeUInt8(ifFalse, 8 * index + 3);
    bytes.writeUInt32LE(operand, 8 * index + 4);
  }
  return bytes;
}
