import { closeSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isNativePlatform, machineArchitecture } from "../../image/platform.ts";
import { tryToExecute } from "../../programs/helper.ts";
import { openMemoryFile } from "../../programs/libc.ts";

/** The kernel's list of the interpreters of programs that it does not run itself: https://docs.kernel.org/admin-guide/binfmt-misc.html */
const binfmtDirectory = "/proc/sys/fs/binfmt_misc";
/** The types of file systems that the kernel supports at present; a module may add one later. */
const filesystemsFile = "/proc/filesystems";

/** `e_machine` of programs of an architecture, in the names of OCI. */
const elfMachines: Readonly<Record<string, number>> = {
  "386": 3,
  mips64le: 8,
  ppc64le: 21,
  s390x: 22,
  arm: 40,
  amd64: 62,
  arm64: 183,
  riscv64: 243,
  loong64: 258,
};

/** Architectures whose programs most machines of another architecture run without an interpreter. */
const compatible: Readonly<Record<string, readonly string[]>> = { amd64: ["386"], arm64: ["arm"] };

/**
 * Returns why this machine can't run programs for a platform, and what to do about it; `undefined` if it can, or if that is unknown: in
 * containers the kernel's list is often not mounted.
 */
export function unrunnableReason(
  platform: string | undefined,
  directory = binfmtDirectory,
  filesystems = filesystemsFile,
): string | undefined {
  if (platform === undefined || isNativePlatform(platform)) return undefined;
  const [, architecture = ""] = platform.split("/");
  if (compatible[machineArchitecture()]?.includes(architecture)) return undefined;
  const interpreters = readInterpreters(directory, filesystems);
  const machine = elfMachines[architecture];
  if (interpreters === undefined || machine === undefined) return undefined;
  const found = interpreters.find((each) => each.machine === machine);
  if (found === undefined)
    return "this machine does not run programs for it: install qemu-user-static (and binfmt-support), or start its service binfmt-support";
  if (!found.isOpenedEarly)
    return `its interpreter ${found.name} is registered without the flag F, so no container has it: install qemu-user-static of Debian 11 or newer`;
  return undefined;
}

/** Returns the other platforms whose programs this machine runs through an interpreter; `undefined` if that is unknown. */
export function emulatedPlatforms(
  directory = binfmtDirectory,
  filesystems = filesystemsFile,
): string[] | undefined {
  const interpreters = readInterpreters(directory, filesystems);
  if (interpreters === undefined) return undefined;
  const machines = new Set(interpreters.flatMap((each) => (each.isOpenedEarly ? [each.machine] : [])));
  return Object.entries(elfMachines)
    .filter(([architecture, machine]) => architecture !== machineArchitecture() && machines.has(machine))
    .map(([architecture]) => `linux/${architecture}`)
    .sort();
}

/** Returns how the kernel runs programs whose files begin with this ELF header; `undefined` if that is unknown. */
export function runsElf(header: Buffer): "natively" | "otherwise" | "no" | undefined {
  const isLittle = header[5] === littleEndian;
  const machine = isLittle ? header.readUInt16LE(18) : header.readUInt16BE(18);
  const own = machineArchitecture();
  if (elfMachines[own] === machine) return "natively";
  if (compatible[own]?.some((architecture) => elfMachines[architecture] === machine)) return undefined;
  const interpreters = readInterpreters(binfmtDirectory, filesystemsFile);
  if (interpreters?.some((each) => each.machine === machine)) return "otherwise";
  return tryHeader(header);
}

/** `EI_DATA` of elf.h, and the size of the header. */
const littleEndian = 1;
const headerBytes = 64;

/** Has the kernel execute a program that consists of this header: it refuses one for which it has no interpreter. */
function tryHeader(header: Buffer): "otherwise" | "no" | undefined {
  const descriptor = openMemoryFile("program");
  if (descriptor === undefined) return undefined;
  try {
    writeFileSync(descriptor, header.subarray(0, headerBytes));
    const refusal = tryToExecute(`/proc/self/fd/${descriptor}`);
    return refusal === undefined ? "otherwise" : refusal === "ENOEXEC" ? "no" : undefined;
  } finally {
    closeSync(descriptor);
  }
}

/** Returns true if the kernel has interpreters of formats other than scripts and ELF; `undefined` if that is unknown. */
export function hasOtherFormats(): boolean | undefined {
  return readInterpreters(binfmtDirectory, filesystemsFile)?.some(({ machine }) => machine === undefined);
}

interface Interpreter {
  name: string;
  /** `e_machine` of the programs that it is for; `undefined` if they are not in ELF. */
  machine: number | undefined;
  /** True with the flag F: the kernel has the interpreter open, so it need not be in the container. */
  isOpenedEarly: boolean;
}

/** Reads the kernel's list; returns `undefined` if it is not mounted here. */
function readInterpreters(directory: string, filesystems: string): Interpreter[] | undefined {
  try {
    // Without the module that has the list, no interpreter can be registered.
    if (!existsSync(join(directory, "status")))
      return /\bbinfmt_misc$/m.test(readFileSync(filesystems, "utf8")) ? undefined : [];
    const names = readdirSync(directory);
    // If the list is disabled, the kernel uses none of the interpreters.
    if (readFileSync(join(directory, "status"), "utf8").startsWith("disabled")) return [];
    return names.flatMap((name) => {
      // These two are not interpreters. `register` can't be read.
      if (name === "register" || name === "status") return [];
      const text = readFileSync(join(directory, name), "utf8");
      const [, magic = ""] = /^magic ([0-9a-f]+)$/m.exec(text) ?? [];
      const bytes = Buffer.from(magic, "hex");
      if (!text.startsWith("enabled\n")) return [];
      const isElf = bytes.length >= 20 && bytes.readUInt32BE(0) === 0x7f454c46;
      const machine = () => (bytes[5] === 2 ? bytes.readUInt16BE(18) : bytes.readUInt16LE(18));
      return [{ name, machine: isElf ? machine() : undefined, isOpenedEarly: /^flags: .*F/m.test(text) }];
    });
  } catch {
    return undefined;
  }
}
