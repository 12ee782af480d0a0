import { readFileSync } from "node:fs";
import { join } from "node:path";
import { startHelper } from "../../../programs/helper.ts";
import { type Environment, findProgram } from "../../system/programs.ts";
import { seccompFilter } from "../seccomp.ts";
import { type ContainerRuntime, type FailedStart, logTo, type RuntimeWords, type Start } from "./runtime.ts";

export function findRunc(environment: Environment): ContainerRuntime {
  const program = findProgram("runc", environment);
  return {
    name: "runc",
    makesGroups: true,
    mounts: [],
    memory: undefined,
    prepare: () => undefined,
    start(layout, { id, directory, bundle }) {
      const files = ["--bundle", bundle, "--pid-file", join(directory, "pid")];
      // The control groups must stay until bough has read which limits the command ran into.
      return [
        program,
        "--root",
        layout.containers,
        ...logTo(join(directory, "log")),
        "run",
        "--keep",
        ...files,
        id,
      ];
    },
    exec(layout, { id, log, process, pid }) {
      const files = ["--process", process, "--pid-file", pid];
      return [program, "--root", layout.containers, ...logTo(log), "exec", ...files, id];
    },
    launch: startHelper,
    filter: (architecture, capabilities) => ({ seccomp: seccompFilter(architecture, capabilities) }),
    words: (start) => new RuncWords(start),
  };
}

/** The beginnings of runc's messages, by its subcommand. */
const prefixes = { run: Buffer.from("runc run failed: "), exec: Buffer.from("exec failed: ") };

class RuncWords implements RuntimeWords {
  readonly #prefix: Buffer;

  constructor({ as }: Pick<Start, "as">) {
    this.#prefix = prefixes[as];
  }

  mayBegin(held: Buffer): boolean {
    const length = Math.min(this.#prefix.length, held.length);
    return held.subarray(0, length).equals(this.#prefix.subarray(0, length));
  }

  explain(error: string): FailedStart {
    const start = error.indexOf('exec: "');
    if (start === -1) {
      const cause = explainMemoryFiles(error);
      const message = error.replace(this.#prefix.toString(), "");
      return { kind: "sandbox", message: cause === undefined ? message : `${message}; ${cause}` };
    }
    const reason = error.slice(start);
    const isMissing = /executable file not found|no such file or directory/.test(reason);
    return { kind: "command", exitCode: isMissing ? 127 : 126, message: reason };
  }

  translate(): undefined {}
}

const setting = "vm.memfd_noexec";

/**
 * Explains a runtime's error by the kernel's setting that forbids running files in memory (Linux 6.3 and later): runc restarts
 * itself from such a copy. `undefined` if the setting is off, or the error is of another kind.
 */
function explainMemoryFiles(error: string): string | undefined {
  const value = readSetting();
  if (value === 0 || !/memfd|cloned|\/proc\/self|not permitted|permission denied/i.test(error))
    return undefined;
  return `${setting} is ${value} on this machine, so runc may not run the copy of itself that it makes in memory: set it to 0 (\`sysctl ${setting}=0\`), or install crun, which runs without`;
}

function readSetting(): number {
  try {
    return Number(readFileSync("/proc/sys/vm/memfd_noexec", "utf8"));
  } catch {
    // An older kernel.
    return 0;
  }
}
