import { readFileSync } from "node:fs";

const setting = "vm.memfd_noexec";

/**
 * Explains a runtime's error by the kernel's setting that forbids running files in memory (Linux 6.3 and later): runc restarts
 * itself from such a copy. `undefined` if the setting is off, or the error is of another kind.
 */
export function explainMemoryFiles(error: string): string | undefined {
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
