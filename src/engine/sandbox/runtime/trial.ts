/** Tries crun in real containers, with everything that a command requires of it. */
import { chmodSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../errors.ts";
import { ownHierarchies } from "../limits/hierarchies.ts";
import { groupVersion } from "../limits/own-groups.ts";
import { ProcessInput } from "../process-input.ts";
import { runInSandbox } from "../sandbox.ts";
import type { LiveSandbox, PlacedMounts, SandboxHost, SandboxRequest } from "../sandbox-request.ts";
import { improveFilter } from "./compiled-filter.ts";
import type { Crun } from "./crun.ts";
import { type SystemCall, tinyProgram, unexpected } from "./tiny-program.ts";

/** The compiled system call filter, or why crun can't be used. */
export type TrialResult = { filter: string } | { problem: string };

const currentDirectory = -100;
const [refused, readOnly, missing] = [1, 30, 38];
const writing = 1;
/** A character device that everybody may read and write. */
const device = 0o020666;
/** The machine's memory: 1:1. */
const memoryDevice = 0x101;

/** Files that would give a command more devices or processes, by the version of control groups. */
const groupFiles = { 1: "/sys/fs/cgroup/devices/devices.allow", 2: "/sys/fs/cgroup/cgroup.procs" };

/** The calls of one program, each with its expected result. */
const calls = (): (SystemCall & { name: string; isForRoot?: boolean })[] => [
  {
    name: "a forbidden system call",
    ...{ x64: 250, arm64: 219, args: [0, -4, 1], expects: refused },
  },
  { name: "an unknown system call", x64: 9999, arm64: 9999, expects: missing },
  {
    name: "creating a device",
    ...{ x64: 259, arm64: 33, args: [currentDirectory, "/memory", device, memoryDevice], expects: 0 },
    isForRoot: true,
  },
  {
    name: "opening a device of the machine",
    ...{ x64: 257, arm64: 56, args: [currentDirectory, "/memory", 0], expects: refused },
    isForRoot: true,
  },
  {
    name: "changing its own control group",
    ...{ x64: 257, arm64: 56, args: [currentDirectory, groupFiles[groupVersion(ownHierarchies())], writing] },
    expects: readOnly,
    isForRoot: true,
  },
  {
    name: "opening an allowed device",
    x64: 257,
    arm64: 56,
    args: [currentDirectory, "/dev/null", writing],
    expects: 0,
  },
  { name: "an allowed system call", x64: 39, arm64: 172, expects: 0 },
];

const maxTrialSeconds = 20;

/** Runs programs of a few bytes on an image's layers, and keeps nothing of them. Rejects only if the signal is aborted. */
export async function tryCrun(
  host: SandboxHost,
  crun: Omit<Crun, "filter">,
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
): Promise<TrialResult> {
  try {
    let compiled: Uint8Array | undefined;
    // It waits for input, so that it still runs when its filter is read.
    const waiting = [{ x64: 0, arm64: 63, args: [0, { zeros: 8 }, 8] }];
    const looked = await run(host, { ...crun, filter: undefined }, layers, signal, waiting, (live) => {
      compiled = readFileSync(`/proc/${live.pid}/root${crun.state}/${live.id}/seccomp.bpf`);
    });
    if (looked !== 0 || compiled === undefined) return { problem: `it exited with code ${looked}` };
    const filter = Buffer.from(improveFilter(compiled)).toString("base64");
    const tried = calls().filter(({ isForRoot = false }) => !(isForRoot && host.inUserNamespace));
    const ended = await run(host, { ...crun, filter }, layers, signal, tried);
    if (ended === 0) return { filter };
    const call = tried[ended - unexpected]?.name;
    return {
      problem:
        call === undefined ? `it exited with code ${ended}` : `${call} has a different result than with runc`,
    };
  } catch (error) {
    signal.throwIfAborted();
    return { problem: messageOf(error) };
  }
}

/** Returns the program's exit code. */
async function run(
  host: SandboxHost,
  runtime: Crun,
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
  calls: readonly SystemCall[],
  look?: (live: LiveSandbox) => void,
): Promise<number> {
  const id = `${host.layout.owner}.${crypto.randomUUID()}`;
  const directory = join(host.layout.scratch, id);
  const input = new ProcessInput();
  mkdirSync(directory);
  try {
    const { exitCode } = await runInSandbox(host, {
      runtime,
      id,
      directory,
      layers,
      async fill(upper) {
        writeFileSync(join(upper, "trial"), tinyProgram(calls));
        chmodSync(join(upper, "trial"), 0o755);
      },
      mounts: { inNamespace: [], memory: undefined, fillMemory: async () => {}, place: noMounts },
      process: () => ({
        args: ["/trial"],
        env: { PATH: "/" },
        cwd: "/",
        uid: 0,
        gid: 0,
        additionalGids: [],
        home: "/",
      }),
      hostname: "trial",
      network: "none",
      extraHosts: [],
      hasReadonlyNetworkFiles: false,
      stdin: { bytes: new Uint8Array(), close: look === undefined },
      input,
      timeoutSeconds: maxTrialSeconds,
      limits: { memory: 64 * 1024 ** 2, processes: 16, cpus: undefined, layerBytes: undefined },
      onStart(live) {
        look?.(live);
        if (look !== undefined) input.write({ bytes: new Uint8Array(), close: true });
      },
      onOutput: () => {},
      isCancelled: () => false,
      onKill: () => {},
      onEnd: async () => {},
      signal,
    });
    return exitCode;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function noMounts(root: string): PlacedMounts {
  return { mounts: [], locate: (names) => join(root, ...names), requireStable() {} };
}
