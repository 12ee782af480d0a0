import { readFileSync, rmdirSync } from "node:fs";
import { join, relative } from "node:path";
import type { Clock } from "../../clock.ts";
import { errorCode } from "../../system-error.ts";

/** How long to wait for those who were killed, in milliseconds: they are gone within a few, unless the disk holds them. */
const patience = 5_000;

/**
 * Removes what runc made for a container in the control groups that this process is in (version 1, 2 or both at once), where
 * runc was killed before it could. Who is still in them is killed: runc, killed in the middle of a start, leaves behind a
 * first process that its state does not tell of.
 */
export async function removeControlGroups(id: string, clock: Clock): Promise<void> {
  let left = ownControlGroups().map((directory) => join(directory, id));
  for (let waited = 0; ; waited += 5) {
    left = left.filter((directory) => !removeControlGroup(directory));
    if (left.length === 0 || waited >= patience) return;
    await clock.sleep(5);
  }
}

/** Returns false where it is worth another try. */
function removeControlGroup(directory: string): boolean {
  try {
    rmdirSync(directory);
  } catch (error) {
    // Any other error: none there, or not this process's to remove.
    if (errorCode(error) !== "EBUSY") return true;
    killMembers(directory);
    return false;
  }
  return true;
}

function killMembers(directory: string): void {
  try {
    for (const line of readLines(join(directory, "cgroup.procs"))) {
      const pid = Number(line);
      // The kernel writes 0 for a process that this one's namespace has no number for.
      if (pid > 0) process.kill(pid, "SIGKILL");
    }
  } catch {
    // They ended meanwhile.
  }
}

function ownControlGroups(): string[] {
  const hierarchies = readLines("/proc/self/cgroup").map((line) => {
    const [, controllers = "", ...path] = line.split(":");
    return { controllers, path: path.join(":") };
  });
  return readLines("/proc/self/mountinfo").flatMap((line) => {
    const [before = "", after = ""] = line.split(" - ");
    const [, , , root = "/", mountPoint = ""] = before.split(" ");
    const [type = "", , options = ""] = after.split(" ");
    if (type !== "cgroup" && type !== "cgroup2") return [];
    const isMounted = (controllers: string) =>
      type === "cgroup2"
        ? controllers === ""
        : controllers !== "" && options.split(",").includes(firstOf(controllers));
    return hierarchies
      .filter(({ controllers }) => isMounted(controllers))
      .map(({ path }) => join(mountPoint, relative(root, path)));
  });
}

/** `name=systemd` and `cpu,cpuacct` are mounted with these options, in this order or another. */
function firstOf(controllers: string): string {
  return controllers.split(",")[0] ?? "";
}

function readLines(path: string): string[] {
  return readFileSync(path, "utf8")
    .split("\n")
    .filter((line) => line !== "");
}
