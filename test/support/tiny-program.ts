/** Executables of a few hundred bytes that make given system calls, without a libc that would change them. */

export type Argument = number | bigint | string | { zeros: number };

export interface SystemCall {
  /** The number on x86-64, and on arm64. */
  x64: number;
  arm64?: number;
  /** Up to six; text and zeros are passed by address. */
  args?: readonly Argument[];
  /** The call is made by `int 0x80`, as in 32-bit programs, and has their number. */
  is32Bit?: boolean;
  /** The expected error number, 0 for none. With another result the program exits with `unexpected` plus the call's index. */
  expects?: number;
}

/** Exit codes below this one are error numbers. */
export const unexpected = 150;

/**
 * Returns an ELF file for this machine that makes the calls in sequence. It exits with the last call's error number, or 0 if that
 * succeeded.
 */
export function tinyProgram(calls: readonly SystemCall[]): Uint8Array {
  const isArm = process.arch === "arm64";
  const data: Uint8Array[] = [];
  let dataSize = 0;
  const place = (bytes: Uint8Array) => {
    const address = dataStart + dataSize;
    data.push(bytes);
    dataSize += bytes.length;
    return address;
  };
  const values = calls.map(({ args = [] }) =>
    args.map((argument) => {
      if (typeof argument === "number" || typeof argument === "bigint") return BigInt(argument);
      const bytes =
        typeof argument === "string" ? Buffer.from(`${argument}\0`) : new Uint8Array(argument.zeros);
      return BigInt(place(bytes));
    }),
  );
  const code = calls.flatMap((call, index) => [
    ...encode(call, values[index] ?? [], isArm),
    ...(call.expects === undefined ? [] : (isArm ? armExpect : x64Expect)(call.expects, unexpected + index)),
  ]);
  code.push(...(isArm ? armExit : x64Exit));
  if (code.length > maxCode) throw new Error("too many calls for one program");
  const body = Buffer.concat([Buffer.from(code), new Uint8Array(maxCode - code.length), ...data]);
  return Buffer.concat([headers(isArm, headerSize + body.length), body]);
}

/** Returns an ELF file for this machine that does nothing but name its dynamic loader. */
export function programWithLoader(loader: string): Uint8Array {
  const path = Buffer.from(`${loader}\0`);
  const header = Buffer.from(headers(process.arch === "arm64", path.length));
  header.writeUInt32LE(loaderSegment, 64);
  header.writeBigUInt64LE(BigInt(headerSize), 72);
  return Buffer.concat([header, path]);
}

/** `PT_INTERP` of elf.h. */
const loaderSegment = 3;
const base = 0x400000;
const headerSize = 64 + 56;
const maxCode = 16 * 1024;
const dataStart = base + headerSize + maxCode;

function encode(call: SystemCall, args: readonly bigint[], isArm: boolean): number[] {
  if (isArm) {
    if (call.arm64 === undefined) throw new Error("a system call that arm64 lacks");
    return [
      ...args.flatMap((value, register) => setArm(register, value)),
      ...setArm(8, BigInt(call.arm64)),
      ...svc,
    ];
  }
  const registers = call.is32Bit === true ? x86Registers : x64Registers;
  const set = args.flatMap((value, index) => [...(registers[index] ?? []), ...littleEndian(value, 8)]);
  return [
    ...set,
    0x48,
    0xb8,
    ...littleEndian(BigInt(call.x64), 8),
    ...(call.is32Bit === true ? int80 : syscall),
  ];
}

/** `mov register, imm64` without the value: rdi, rsi, rdx, r10, r8, r9. */
const x64Registers = [
  [0x48, 0xbf],
  [0x48, 0xbe],
  [0x48, 0xba],
  [0x49, 0xba],
  [0x49, 0xb8],
  [0x49, 0xb9],
];
/** rbx, rcx, rdx, rsi, rdi, rbp. */
const x86Registers = [
  [0x48, 0xbb],
  [0x48, 0xb9],
  [0x48, 0xba],
  [0x48, 0xbe],
  [0x48, 0xbf],
  [0x48, 0xbd],
];
const syscall = [0x0f, 0x05];
const int80 = [0xcd, 0x80];
// movsxd rdi, eax; neg rdi; test rdi, rdi; jns over; xor edi, edi; over: mov eax, 60 (exit); syscall
const x64Exit = [
  ...[0x48, 0x63, 0xf8, 0x48, 0xf7, 0xdf, 0x48, 0x85, 0xff, 0x79, 0x02, 0x31, 0xff],
  ...[0xb8, 60, 0, 0, 0, ...syscall],
];

/** Continues if the call had this result, else exits with the exit code. */
function x64Expect(errorNumber: number, exitCode: number): number[] {
  // mov edi, exitCode; mov eax, 60 (exit); syscall
  const end = [0xbf, ...littleEndian(BigInt(exitCode), 4), 0xb8, 60, 0, 0, 0, ...syscall];
  // test rax, rax; jns over, or cmp rax, -errorNumber; je over
  return errorNumber === 0
    ? [0x48, 0x85, 0xc0, 0x79, end.length, ...end]
    : [0x48, 0x3d, ...littleEndian(BigInt(-errorNumber), 4), 0x74, end.length, ...end];
}

const svc = word(0xd4000001);
// neg x0, x0; cmp x0, #0; csel x0, x0, xzr, ge; mov x8, #93 (exit); svc #0
const armExit = [...word(0xcb0003e0), ...word(0xf100001f), ...word(0x9a9fa000), ...setArm(8, 93n), ...svc];

function armExpect(errorNumber: number, exitCode: number): number[] {
  const end = [...setArm(0, BigInt(exitCode)), ...setArm(8, 93n), ...svc];
  const over = (end.length / 4 + 1) * 32;
  // cmp x0, #0; b.ge over, or cmn x0, #errorNumber; b.eq over
  return errorNumber === 0
    ? [...word(0xf100001f), ...word(0x5400000a + over), ...end]
    : [...word(0xb100001f + errorNumber * 1024), ...word(0x54000000 + over), ...end];
}

/** movz, and a movk for each of the three upper quarters. */
function setArm(register: number, value: bigint): number[] {
  return [0, 1, 2, 3].flatMap((quarter) => {
    const bits = Number((BigInt.asUintN(64, value) >> BigInt(16 * quarter)) & 0xffffn);
    return word((quarter === 0 ? 0xd2800000 : 0xf2800000) + quarter * 0x200000 + bits * 32 + register);
  });
}

function word(value: number): number[] {
  return littleEndian(BigInt(value), 4);
}

function littleEndian(value: bigint, size: number): number[] {
  return Array.from({ length: size }, (_, index) =>
    Number((BigInt.asUintN(64, value) >> BigInt(8 * index)) & 0xffn),
  );
}

/** Returns an ELF header and one segment: the whole file, readable, writable and executable. */
function headers(isArm: boolean, size: number): Uint8Array {
  const header = Buffer.alloc(headerSize);
  header.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
  header.writeUInt16LE(2, 16);
  header.writeUInt16LE(isArm ? 183 : 62, 18);
  header.writeUInt32LE(1, 20);
  header.writeBigUInt64LE(BigInt(base + headerSize), 24);
  header.writeBigUInt64LE(64n, 32);
  for (const [value, offset] of [
    [64, 52],
    [56, 54],
    [1, 56],
  ] as const)
    header.writeUInt16LE(value, offset);
  header.writeUInt32LE(1, 64);
  header.writeUInt32LE(7, 68);
  for (const offset of [80, 88]) header.writeBigUInt64LE(BigInt(base), offset);
  for (const offset of [96, 104]) header.writeBigUInt64LE(BigInt(size), offset);
  header.writeBigUInt64LE(0x1000n, 112);
  return header;
}
