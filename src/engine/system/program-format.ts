/** Finds how the kernel executes a file, by its first bytes: binfmt_script, binfmt_elf and binfmt_misc of Linux. */
import { closeSync, openSync, readSync } from "node:fs";
import { hasOtherFormats, runsElf } from "./emulation.ts";

type ProgramFormat =
  /** A program for this machine. `interpreter` is the path of its dynamic loader. */
  | { kind: "native"; interpreter?: string }
  /** A script: a text that begins with `#!`. */
  | { kind: "script"; interpreter: string }
  /** A file that the kernel refuses with ENOEXEC. */
  | { kind: "unsupported" }
  /** A file about which the kernel's decision can't be predicted. */
  | { kind: "unknown" };

/** The bytes that the kernel looks at (BINPRM_BUF_SIZE). */
const headBytes = 256;

export function readProgramFormat(path: string): ProgramFormat {
  let descriptor: number;
  try {
    descriptor = openSync(path, "r");
  } catch {
    return { kind: "unknown" };
  }
  try {
    const read = (position: number, length: number) => {
      const bytes = Buffer.alloc(length);
      return bytes.subarray(0, readSync(descriptor, bytes, 0, length, position));
    };
    const head = read(0, headBytes);
    if (head.subarray(0, 2).toString("latin1") === "#!") return scriptFormat(head);
    if (head.subarray(0, 4).toString("latin1") === "\x7fELF") return elfFormat(head, read);
    return { kind: mayBeInterpreted(head) ? "unknown" : "unsupported" };
  } catch {
    return { kind: "unknown" };
  } finally {
    closeSync(descriptor);
  }
}

/** Returns true if the kernel may have an interpreter for a file of another format; for a text only if its list of interpreters can be read. */
function mayBeInterpreted(head: Buffer): boolean {
  if (head.length === 0) return false;
  return hasOtherFormats() ?? head.includes(0);
}

function scriptFormat(head: Buffer): ProgramFormat {
  const text = head.subarray(2).toString("latin1");
  const end = text.search(/[\n\0]/);
  // A longer line is cut off, by rules that changed between versions of the kernel.
  if (end === -1 && head.length === headBytes) return { kind: "unknown" };
  const [, interpreter] = /^[ \t]*([^ \t]+)/.exec(end === -1 ? text : text.slice(0, end)) ?? [];
  return interpreter === undefined
    ? { kind: "unsupported" }
    : { kind: "script", interpreter: Buffer.from(interpreter, "latin1").toString() };
}

/** `EI_CLASS` and `EI_DATA` of elf.h. */
const [class64, littleEndian] = [2, 1];
/** `PT_INTERP` of elf.h. */
const loaderSegment = 3;
const maxPathBytes = 4096;

function elfFormat(head: Buffer, read: (position: number, length: number) => Buffer): ProgramFormat {
  if (head.length < 64) return { kind: "unsupported" };
  const runs = runsElf(head);
  if (runs === "no") return { kind: "unsupported" };
  if (runs !== "natively" || head[4] !== class64 || head[5] !== littleEndian) return { kind: "unknown" };
  const [start, size, count] = [
    Number(head.readBigUInt64LE(32)),
    head.readUInt16LE(54),
    head.readUInt16LE(56),
  ];
  if (size !== 56 || count === 0) return { kind: "unsupported" };
  const headers = read(start, size * count);
  for (let at = 0; at + size <= headers.length; at += size) {
    if (headers.readUInt32LE(at) !== loaderSegment) continue;
    const [offset, length] = [
      Number(headers.readBigUInt64LE(at + 8)),
      Number(headers.readBigUInt64LE(at + 32)),
    ];
    if (length > maxPathBytes) return { kind: "unsupported" };
    const path = read(offset, length);
    const end = path.indexOf(0);
    return { kind: "native", interpreter: path.subarray(0, end === -1 ? path.length : end).toString() };
  }
  return { kind: "native" };
}
