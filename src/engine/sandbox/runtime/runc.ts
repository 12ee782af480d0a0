import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Environment } from "../../../home-directory.ts";
import { startHelper } from "../../../programs/helper.ts";
import { findProgram } from "../../system/programs.ts";
import { seccompFilter } from "../seccomp.ts";
import { type ContainerRuntime, logArguments } from "./runtime.ts";

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
        ...logArguments(join(directory, "log")),
        "run",
        "--keep",
        ...files,
        id,
      ];
    },
    exec(layout, { id, log, process, pid }) {
      const files = ["--process", process, "--pid-file", pid];
      return [program, "--root", layout.containers, ...logArguments(log), "exec", ...files, id];
    },
    launch: startHelper,
    filter: (architecture, capabilities) => ({ seccomp: seccompFilter(architecture, capabilities) }),
    onlyCreates: false,
    likelyProblem: explainMemoryFiles,
  };
}

const setting = "vm.memfd_noexec";

/** Returns the kernel's setting that forbids running files in memory (Linux 6.3 and later): runc restarts itself from such a copy. */
function explainMemoryFiles(): string | undefined {
  const value = readSetting();
  if (value === 0) return undefined;
  return `${setting} is ${value} on this machine, so runc may not run the copy of itself that it makes in memory: set it to 0 (\`sysctl ${setting}=0\`), or install crun, which runs without`;
}

function readSetting(): number {
  try {
    return Number(readFileSync("/proc/sys/vm/memfd_noexec", "utf8"));
  } catch {
    // An older kernel does not have the setting.
    return 0;
  }
}
