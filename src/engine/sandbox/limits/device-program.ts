/**
 * Denies devices to a control group of version 2. It has no list of devices, as version 1 has; instead, the kernel runs a program
 * at each use of a device (bpf(2), `BPF_PROG_TYPE_CGROUP_DEVICE`).
 */
import { ptr } from "bun:ffi";
import { closeSync, openSync } from "node:fs";
import { BoughError } from "../../../errors.ts";
import { libc } from "../../../programs/libc.ts";

/** One instruction (linux/bpf.h, `struct bpf_insn`). */
interface DeviceInstruction {
  code: number;
  to?: number;
  from?: number;
  /** The distance from a register's address, or the number of instructions to skip. */
  offset?: number;
  operand?: number;
}

const [loadWord, copy, andWith, shiftRight, ifEqual, unlessEqual, exit] = [
  0x61, 0xb7, 0x57, 0x77, 0x15, 0x55, 0x95,
];
const [result, context, type, access, major, minor] = [0, 1, 2, 3, 4, 5];
/** The program's input (`struct bpf_cgroup_dev_ctx`): kind of use (upper half) and device (lower half), and two numbers. */
const offsets = { uses: 0, major: 4, minor: 8 };
const characterDevice = 2;
/** Making a node, without reading or writing. */
const making = 1;
const [refuse, allow] = [0, 1];

/** Returns a program that allows making any device, and opening only these: `c major:minor`, where `*` is any number. */
export function deviceProgram(openDevices: readonly string[]): Uint8Array {
  const numbers = openDevices.map((device) => {
    const [, first, second] = /^c (\d+):(\d+|\*)$/.exec(device) ?? [];
    if (first === undefined || second === undefined) throw new Error(`invalid device rule: ${device}`);
    return { major: Number(first), minor: second === "*" ? undefined : Number(second) };
  });
  const rules = numbers.map((device): DeviceInstruction[] => [
    { code: unlessEqual, to: major, offset: device.minor === undefined ? 2 : 3, operand: device.major },
    ...(device.minor === undefined
      ? []
      : [{ code: unlessEqual, to: minor, offset: 2, operand: device.minor }]),
    ...end(allow),
  ]);
  return encodeProgram([
    { code: loadWord, to: type, from: context, offset: offsets.uses },
    { code: loadWord, to: access, from: context, offset: offsets.uses },
    { code: shiftRight, to: access, operand: 16 },
    { code: andWith, to: type, operand: 0xffff },
    { code: loadWord, to: major, from: context, offset: offsets.major },
    { code: loadWord, to: minor, from: context, offset: offsets.minor },
    { code: unlessEqual, to: access, offset: 2, operand: making },
    ...end(allow),
    { code: ifEqual, to: type, offset: 2, operand: characterDevice },
    ...end(refuse),
    ...rules.flat(),
    ...end(refuse),
  ]);
}

function end(value: number): DeviceInstruction[] {
  return [{ code: copy, to: result, operand: value }, { code: exit }];
}

function encodeProgram(instructions: readonly DeviceInstruction[]): Uint8Array {
  const bytes = Buffer.alloc(8 * instructions.length);
  for (const [index, { code, to = 0, from = 0, offset = 0, operand = 0 }] of instructions.entries()) {
    bytes.writeUInt8(code, 8 * index);
    bytes.writeUInt8(to + 16 * from, 8 * index + 1);
    bytes.writeInt16LE(offset, 8 * index + 2);
    bytes.writeInt32LE(operand, 8 * index + 4);
  }
  return bytes;
}

/** Restricts all processes that are ever in the group of this directory to these devices. Making the group requires root. */
export function restrictDevices(directory: string, openDevices: readonly string[]): void {
  const program = loadedProgram(openDevices);
  if (program === undefined) throw refused(directory);
  const group = openSync(directory, "r");
  try {
    const target = Buffer.alloc(16);
    for (const [index, value] of [group, program, deviceAttachment, allowMultiple].entries())
      target.writeUInt32LE(value, 4 * index);
    if (call(programAttaching, target) < 0) throw refused(directory);
  } finally {
    closeSync(group);
  }
}

/** Descriptors of programs by the devices they allow. The kernel is slow to check one, and all groups have the same. */
const loadedPrograms = new Map<string, number>();

function loadedProgram(openDevices: readonly string[]): number | undefined {
  const key = openDevices.join();
  const program = loadedPrograms.get(key) ?? loadProgram(deviceProgram(openDevices));
  if (program !== undefined) loadedPrograms.set(key, program);
  return program;
}

/** Returns a close-on-exec descriptor of the program; `undefined` if the kernel refuses it. */
export function loadProgram(instructions: Uint8Array): number | undefined {
  const [licenseAt, instructionsAt] = [48, 56];
  // One buffer for everything: the call keeps it alive, but would not keep other buffers that it only has the addresses of.
  const memory = new ArrayBuffer(instructionsAt + instructions.length);
  const start = ptr(memory);
  const attributes = Buffer.from(memory);
  attributes.writeUInt32LE(deviceProgramType, 0);
  attributes.writeUInt32LE(instructions.length / 8, 4);
  attributes.writeBigUInt64LE(BigInt(start + instructionsAt), 8);
  attributes.writeBigUInt64LE(BigInt(start + licenseAt), 16);
  attributes.write("GPL\0", licenseAt);
  attributes.set(instructions, instructionsAt);
  for (let attempt = 1; attempt <= maxAttempts; attempt++) {
    const program = call(programLoading, attributes, licenseAt);
    if (program >= 0) return program;
  }
  return undefined;
}

/** A signal, such as that of a terminal's new size, makes the kernel give up checking a program. */
const maxAttempts = 5;

function refused(directory: string): BoughError {
  return new BoughError(`the kernel cannot restrict the devices of the control group ${directory}`, {
    hint: "This needs Linux 4.15 or later with CONFIG_CGROUP_BPF, and the permission to call bpf(2).",
  });
}

const bpf = process.arch === "arm64" ? 280 : 321;
const [programLoading, programAttaching] = [5, 8];
const [deviceProgramType, deviceAttachment] = [15, 6];
/** `BPF_F_ALLOW_MULTI`: programs of the groups above, such as systemd's, apply as well. */
const allowMultiple = 2;

function call(command: number, attributes: Buffer, length = attributes.length): number {
  return Number(libc().syscall(bpf, command, attributes, length));
}
