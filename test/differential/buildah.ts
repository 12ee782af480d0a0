import { mkdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Builder, BuildRequest } from "./builder.ts";
import { readTree } from "./tree.ts";

/** Each process of buildah runs from a copy of the program in memory, and sometimes fails to seal that copy. */
const copyFault = "sealing memfd copy: Device or resource busy";

/** Runs buildah on its own storage. For a user other than root, buildah makes a user namespace itself. */
export function makeBuildah(directory: string): Builder {
  mkdirSync(directory, { recursive: true });
  const storageRoot = join(directory, "root");
  const runRoot = join(directory, "run");
  const storage = [`--root=${storageRoot}`, `--runroot=${runRoot}`];
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: directory,
    STORAGE_DRIVER: "overlay",
    BUILDAH_ISOLATION: "chroot",
    // Otherwise its many short processes would spend a sixth of their time on garbage collection.
    GOGC: "400",
  };
  const start = (command: readonly string[]) =>
    Bun.spawn([...command], { env: environment, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  /** The prefix with which other programs enter buildah's user namespace, if it has one, to use that storage. */
  const enter = process.getuid?.() === 0 ? [] : ["buildah", ...storage, "unshare"];

  const run = async (command: readonly string[], mayRepeat = true): Promise<string> => {
    const child = start(command);
    const [stdout, stderr] = await Promise.all([
      new Response(child.stdout).text(),
      new Response(child.stderr).text(),
    ]);
    if ((await child.exited) === 0) return stdout.trim();
    if (mayRepeat && stderr.includes(copyFault)) return run(command, false);
    throw new Error(`${command.join(" ")}\n${stdout}${stderr}`);
  };
  const buildah = (...words: string[]) => run(["buildah", ...storage, ...words]);

  return {
    async importBase(source, name) {
      const destination = `containers-storage:[overlay@${storageRoot}+${runRoot}]docker.io/library/${name}`;
      await run([...enter, "skopeo", "copy", "--quiet", source, destination]);
    },

    async build({ context, buildArgs, ...request }: BuildRequest) {
      const output = await buildah(
        "bud",
        "--layers=false",
        "--pull-never",
        "--quiet",
        ...ownLimits(),
        `--file=${request.dockerfile}`,
        ...(request.ignoreFile === undefined ? [] : [`--ignorefile=${request.ignoreFile}`]),
        ...Object.entries(buildArgs).map(([key, value]) => `--build-arg=${key}=${value}`),
        context,
      );
      return output.split("\n").at(-1) ?? "";
    },

    async readImage(image) {
      const script = [
        'container=$(buildah "$1" "$2" from --pull-never "$3")',
        'root=$(buildah "$1" "$2" mount "$container")',
        "tar --create --format=posix --numeric-owner --xattrs '--xattrs-include=*' \\",
        "  '--xattrs-exclude=*.overlay.*' --directory=\"$root\" .",
        'buildah "$1" "$2" rm "$container" > /dev/null',
      ].join("\n");
      const child = start([...enter, "sh", "-ec", script, "sh", ...storage, image]);
      const [tree, stderr] = await Promise.all([readTree(child.stdout), new Response(child.stderr).text()]);
      if ((await child.exited) !== 0) throw new Error(`reading buildah's image ${image}: ${stderr}`);
      return tree;
    },

    async close() {
      // Each command releases its mounts itself.
    },
  };
}

/**
 * This process's limits, as options: buildah from 1.36 on raises its own, which containers forbid. Earlier ones lower theirs to 32768
 * processes first, and may not go above that again.
 */
function ownLimits(): string[] {
  const limits = readFileSync("/proc/self/limits", "utf8");
  const option = (name: string, title: string, most = Infinity) => {
    const [, ...both] = new RegExp(`^${title} +(\\w+) +(\\w+)`, "m").exec(limits) ?? [];
    const numbers = both.map((limit) => Math.min(limit === "unlimited" ? Infinity : Number(limit), most));
    return `--ulimit=${name}=${numbers.map((limit) => (limit === Infinity ? "-1" : limit)).join(":")}`;
  };
  return [option("nofile", "Max open files"), option("nproc", "Max processes", 32_768)];
}
