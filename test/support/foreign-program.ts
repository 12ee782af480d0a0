/** Small static programs for several architectures, assembled here: they make system calls, and nothing else. */

export type Architecture = "amd64" | "386" | "arm64";

/** Numbers of system calls, by architecture. */
const numbers = {
  exit: { amd64: 60, "386": 1, arm64: 93 },
  getpid: { amd64: 39, "386": 20, arm64: 172 },
  mkdirat: { amd64: 258, "386": 296, arm64: 34 },
  mount: { amd64: 165, "386": 21, arm64: 40 },
  openat: { amd64: 257, "386": 295, arm64: 56 },
  setns: { amd64: 308, "386": 346, arm64: 268 },
  uname: { amd64: 63, "386": 122, arm64: 160 },
  unshare: { amd64: 272, "386": 310, arm64: 97 },
  write: { amd64: 1, "386": 4, arm64: 64 },
} as const;

/** An argument: a number, or the address of the data with that name. */
export type Call = readonly [name: keyof typeof numbers, ...args: (number | string)[]];

const origin = 0x400000;
const dataAt = 0x2000;
const resultsAt = 0x3000;
/** Room for one `struct utsname`, of fields of 65 bytes each. */
export const utsnameBytes = 6 * 65;

/**
 * Returns an executable that makes the calls one after the other, and keeps each result as 32 bits in the data `results`. `buffer` names
 * some zeros, `data` further bytes.
 */
export function assembleProgram(
  architecture: Architecture,
  calls: readonly Call[],
  data: Readonly<Record<string, string>>,
): Uint8Array {
  const addresses = new Map([
    ["results", origin + resultsAt],
    ["buffer", origin + resultsAt + 0x400],
  ]);
  const image = Buffer.alloc(0x4000);
  let end = dataAt;
  for (const [name, text] of Object.entries(data)) {
    addresses.set(name, origin + end);
    end += image.write(`${text}\0`, end);
  }
  const valueOf = (argument: number | string) =>
    typeof argument === "number" ? argument : (addresses.get(argument) ?? 0);
  const code = calls.flatMap(([name, ...args], index) => {
    const result = origin + resultsAt + 4 * index;
    return assemblers[architecture](numbers[name][architecture], args.map(valueOf), result);
  });
  const headerBytes = architecture === "386" ? 52 + 32 : 64 + 56;
  writeHeader(image, architecture, origin + headerBytes);
  Buffer.from(code).copy(image, headerBytes);
  return image;
}

type Assemble = (number: number, args: readonly number[], result: number) => number[];

const little = (value: number) => [value & 0xff, (value >>> 8) & 0xff, (value >>> 16) & 0xff, value >>> 24];

const assemblers: Readonly<Record<Architecture, Assemble>> = {
  amd64(number, args, result) {
    // mov edi, esi, edx, r10d, r8d; numbers below zero are of 32 bits for these calls.
    const loads = [[0xbf], [0xbe], [0xba], [0x41, 0xba], [0x41, 0xb8]];
    return [
      ...args.flatMap((value, at) => [...(loads[at] ?? []), ...little(value)]),
      ...[0xb8, ...little(number), 0x0f, 0x05],
      ...[0x89, 0x04, 0x25, ...little(result)],
    ];
  },
  "386"(number, args, result) {
    // mov ebx, ecx, edx, esi, edi
    const loads = [0xbb, 0xb9, 0xba, 0xbe, 0xbf];
    return [
      ...args.flatMap((value, at) => [loads[at] ?? 0, ...little(value)]),
      ...[0xb8, ...little(number), 0xcd, 0x80],
      ...[0xa3, ...little(result)],
    ];
  },
  arm64(number, args, result) {
    const move = (register: number, value: number) => [
      ...little((0x52800000 | ((value & 0xffff) << 5) | register) >>> 0),
      ...little((0x72a00000 | (((value >>> 16) & 0xffff) << 5) | register) >>> 0),
    ];
    return [
      ...args.flatMap((value, at) => move(at, value)),
      ...move(8, number),
      ...little(0xd4000001),
      ...move(9, result),
      ...little(0xb9000120),
    ];
  },
};

/** Writes the header of an ELF file with one segment, which has all of the file and may be written and run. */
function writeHeader(image: Buffer, architecture: Architecture, entry: number): void {
  const isSmall = architecture === "386";
  const machine = { amd64: 62, "386": 3, arm64: 183 }[architecture];
  image.set([0x7f, 0x45, 0x4c, 0x46, isSmall ? 1 : 2, 1, 1]);
  image.writeUInt16LE(2, 16);
  image.writeUInt16LE(machine, 18);
  image.writeUInt32LE(1, 20);
  if (isSmall) {
    image.writeUInt32LE(entry, 24);
    image.writeUInt32LE(52, 28);
    image.writeUInt16LE(52, 40);
    image.writeUInt16LE(32, 42);
    image.writeUInt16LE(1, 44);
    for (const [at, value] of [1, 0, origin, origin, image.length, image.length, 7, 0x1000].entries())
      image.writeUInt32LE(value, 52 + 4 * at);
    return;
  }
  image.writeBigUInt64LE(BigInt(entry), 24);
  image.writeBigUInt64LE(64n, 32);
  image.writeUInt16LE(64, 52);
  image.writeUInt16LE(56, 54);
  image.writeUInt16LE(1, 56);
  image.writeUInt32LE(1, 64);
  image.writeUInt32LE(7, 68);
  for (const [at, value] of [0, origin, origin, image.length, image.length, 0x1000].entries())
    image.writeBigUInt64LE(BigInt(value), 72 + 8 * at);
}
