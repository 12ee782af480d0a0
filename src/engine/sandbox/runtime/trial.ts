/** Tries crun: it creates a container as every command has one, but does not start it. */
import { chmodSync, closeSync, mkdirSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "../../../errors.ts";
import { ProcessInput } from "../process-input.ts";
import { runInSandbox } from "../sandbox.ts";
import type { PlacedMounts, SandboxHost, SandboxRequest } from "../sandbox-request.ts";
import { Crun, type CrunSettings } from "./crun.ts";

/** The system call filter as crun has compiled it, or why crun can't be used. */
export type TrialResult = { filter: string } | { problem: string };

const maxTrialSeconds = 20;

/** Makes a container on an image's layers, and keeps nothing of it. Rejects only if the signal is aborted. */
export async function tryCrun(
  host: SandboxHost,
  crun: Omit<CrunSettings, "filter">,
  layers: SandboxRequest["layers"],
  signal: AbortSignal,
): Promise<TrialResult> {
  const id = `${host.layout.owner}.${crypto.randomUUID()}`;
  const directory = join(host.layout.scratch, id);
  using opened = new DisposableStack();
  // The directory is in memory, which stays as long as it is open.
  let states = -1;
  mkdirSync(directory);
  try {
    const { exitCode } = await runInSandbox(host, {
      runtime: new Crun({ ...crun, filter: undefined, onlyCreates: true }),
      id,
      directory,
      layers,
      async fill(upper) {
        // crun looks for the program. This one has no content, since nothing runs it.
        writeFileSync(join(upper, "trial"), "");
        chmodSync(join(upper, "trial"), 0o755);
      },
      mounts: {
        inNamespace: [],
        memory: undefined,
        async fillMemory(machine) {
          states = openSync(join(machine, crun.state), "r");
          opened.defer(() => closeSync(states));
        },
        place: noMounts,
      },
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
      stdin: { bytes: new Uint8Array(), close: true },
      input: new ProcessInput(),
      timeoutSeconds: maxTrialSeconds,
      limits: { memory: 64 * 1024 ** 2, processes: 16, cpus: undefined, layerBytes: undefined },
      onStart: () => {},
      onOutput: () => {},
      isCancelled: () => false,
      onKill: () => {},
      onEnd: async () => {},
      signal,
    });
    if (exitCode !== 0) return { problem: `it exited with code ${exitCode}` };
    return { filter: readFileSync(`/proc/self/fd/${states}/${id}/seccomp.bpf`, "base64") };
  } catch (error) {
    signal.throwIfAborted();
    return { problem: messageOf(error) };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

function noMounts(root: string): PlacedMounts {
  return { mounts: [], locate: (names) => join(root, ...names), requireStable() {} };
}
