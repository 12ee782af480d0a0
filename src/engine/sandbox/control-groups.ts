import { readFileSync, rmdirSync } from "node:fs";
import { join, relative } from "node:path";

/**
 * Removes what runc made for a container in the control groups that this process is in (version 1, 2 or both at once), where
 * runc was killed before it could.
 */
export function removeControlGroups(id: string): void {
  for (const directory of ownControlGroups()) {
    try {
      rmdirSync(join(directory, id));
    } catch {
      // None there, or not this process's to remove.
    }
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
