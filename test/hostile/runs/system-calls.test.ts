/** System calls that a RUN must not make. Programs of a few bytes make one each, and exit with the call's error number. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { type SystemCall, tinyProgram } from "../../support/tiny-program.ts";
import { type Attacker, makeAttacker, users } from "../attacker.ts";

const [refused, missing] = [1, 38];
/** 128 plus SIGSYS, the shell's status of a program that the filter killed. */
const killed = 159;
const newUser = 0x10000000;
const childSignal = 17;
const currentDirectory = -100;
const zeros = { zeros: 256 };

/** Calls and the error number that the filter gives them. */
const calls: [name: string, call: SystemCall, errorNumber: number][] = [
  ["a key in the session's keyring", { x64: 248, arm64: 217, args: ["user", "k", "v", 1, -3] }, refused],
  ["root's own keyring", { x64: 250, arm64: 219, args: [0, -4, 1] }, refused],
  ["a request for a key of the machine", { x64: 249, arm64: 218, args: ["user", "k", 0, 0] }, refused],
  ["io_uring_setup", { x64: 425, arm64: 425, args: [1, zeros] }, refused],
  ["io_uring_enter", { x64: 426, arm64: 426, args: [0, 0, 0, 0, 0, 0] }, refused],
  ["io_uring_register", { x64: 427, arm64: 427, args: [0, 0, 0, 0] }, refused],
  ["userfaultfd for user mode only", { x64: 323, arm64: 282, args: [1] }, refused],
  ["a user namespace by unshare", { x64: 272, arm64: 97, args: [newUser] }, refused],
  ["a user namespace by clone", { x64: 56, arm64: 220, args: [newUser + childSignal, 0, 0, 0, 0] }, refused],
  ["clone3, whose flags no filter can read", { x64: 435, arm64: 435, args: [zeros, 88] }, missing],
  ["a mount namespace by unshare", { x64: 272, arm64: 97, args: [0x20000] }, refused],
  ["another process's namespace by setns", { x64: 308, arm64: 268, args: [0, 0] }, refused],
  ["mount", { x64: 165, arm64: 40, args: ["none", "/tmp", "tmpfs", 0, 0] }, refused],
  ["a change of /proc's mount options", { x64: 165, arm64: 40, args: ["", "/proc", "", 0x20, 0] }, refused],
  ["umount of the mask of /proc/kcore", { x64: 166, arm64: 39, args: ["/proc/kcore", 2] }, refused],
  ["fsopen", { x64: 430, arm64: 430, args: ["tmpfs", 0] }, refused],
  ["open_tree", { x64: 428, arm64: 428, args: [currentDirectory, "/", 1] }, refused],
  ["mount_setattr", { x64: 442, arm64: 442, args: [currentDirectory, "/", 0, zeros, 32] }, refused],
  ["pivot_root", { x64: 155, arm64: 41, args: ["/tmp", "/tmp"] }, refused],
  ["bpf", { x64: 321, arm64: 280, args: [0, zeros, 120] }, refused],
  ["perf_event_open", { x64: 298, arm64: 241, args: [zeros, 0, -1, -1, 0] }, refused],
  ["fanotify_init", { x64: 300, arm64: 262, args: [0x200, 0] }, refused],
  ["a file by its handle", { x64: 304, arm64: 265, args: [currentDirectory, zeros, 0] }, refused],
  ["another process's descriptor", { x64: 438, arm64: 438, args: [0, 0, 0] }, refused],
  ["kcmp, which compares kernel addresses", { x64: 312, arm64: 272, args: [1, 1, 0, 0, 0] }, refused],
  ["the kernel's log", { x64: 103, arm64: 116, args: [10, 0, 0] }, refused],
  ["a kernel module", { x64: 175, arm64: 105, args: [zeros, 256, ""] }, refused],
  ["another kernel", { x64: 246, arm64: 104, args: [0, 0, 0, 0] }, refused],
  ["a change of the machine's name", { x64: 170, arm64: 161, args: ["owned", 5] }, refused],
  ["a change of the clock", { x64: 227, arm64: 112, args: [0, zeros] }, refused],
  ["process accounting into a file", { x64: 163, arm64: 89, args: ["/tmp"] }, refused],
  ["swap", { x64: 167, arm64: 224, args: ["/tmp", 0] }, refused],
  ["memory without random addresses", { x64: 135, arm64: 92, args: [0x40000] }, refused],
  ["the kernel's cryptography (AF_ALG)", { x64: 41, arm64: 198, args: [38, 5, 0] }, refused],
  ["the machine's hypervisor (AF_VSOCK)", { x64: 41, arm64: 198, args: [40, 1, 0] }, refused],
  ["a call that is newer than the filter", { x64: 9999, arm64: 9999 }, missing],
  ["NUMA placement", { x64: 238, arm64: 237, args: [0, 0, 0] }, refused],
];

/** Calls by the interface for 32-bit programs of x86-64. */
const by32Bit: typeof calls = [
  ["a key in the session's keyring", { x64: 286, args: ["user", "k", "v", 1, 0xffff_fffd] }, refused],
  ["io_uring_setup", { x64: 425, args: [1, zeros] }, refused],
  ["userfaultfd", { x64: 374, args: [1] }, refused],
  ["a user namespace by unshare", { x64: 310, args: [newUser] }, refused],
  ["a user namespace by clone", { x64: 120, args: [newUser + childSignal, 0, 0, 0, 0] }, refused],
  ["clone3", { x64: 435, args: [zeros, 88] }, missing],
  ["the kernel's log", { x64: 103, args: [10, 0, 0] }, refused],
];

/** Calls by the x32 interface, which are unknown numbers to a filter for x86-64 alone. */
const byX32: typeof calls = [
  ["a user namespace by unshare", { x64: 0x4000_0000 + 272, args: [newUser] }, killed],
  ["ptrace", { x64: 0x4000_0000 + 521, args: [0, 0, 0, 0] }, killed],
];

const rows = [
  ...calls.map(([name, call, errorNumber]) => ({ name, call, errorNumber })),
  ...(process.arch === "x64" ? by32Bit : []).map(([name, call, errorNumber]) => ({
    name: `${name}, as a 32-bit program`,
    call: { ...call, is32Bit: true },
    errorNumber,
  })),
  ...(process.arch === "x64" ? byX32 : []).map(([name, call, errorNumber]) => ({
    name: `${name}, as an x32 program`,
    call,
    errorNumber,
  })),
];

/** The status of a program that the kernel ends by SIGSEGV. */
const segmentationFault = 139;

/** False on a machine whose kernel has no 32-bit system calls: there such a program ends in the same way with and without a sandbox. */
function has32BitCalls(): boolean {
  const directory = temporaryDirectory();
  const program = join(directory, "program");
  // getpid(2)
  writeFileSync(program, tinyProgram([{ x64: 20, is32Bit: true }]));
  chmodSync(program, 0o755);
  return Bun.spawnSync([program]).signalCode !== "SIGSEGV";
}
const endOf32Bit = process.arch !== "x64" || has32BitCalls() ? undefined : segmentationFault;

describe.each(users)("as %s", (who) => {
  let attacker: Attacker;
  let statuses: string[];
  beforeAll(async () => {
    attacker = makeAttacker(who);
    await attacker.importImage("calls:1", {
      prepare(root) {
        mkdirSync(join(root, "calls"));
        for (const [index, { call }] of rows.entries()) {
          const path = join(root, "calls", String(index));
          writeFileSync(path, tinyProgram([call]));
          chmodSync(path, 0o755);
        }
      },
    });
    const each = `for number in $(seq 0 ${rows.length - 1}); do /calls/$number; echo $?; done`;
    statuses = (await attacker.attack("calls:1", each)).stdout.split("\n");
  });
  afterAll(() => attacker.close());

  test.each(rows.map((row, index) => ({ ...row, index })))(
    "refuses $name",
    ({ index, call, errorNumber }) => {
      const expected = (call.is32Bit === true ? endOf32Bit : undefined) ?? errorNumber;
      expect(statuses[index]).toBe(String(expected));
    },
  );
});
