/** The image with all that the engine needs, of this machine's own packages, as `scripts/image --engine` makes one of Debian's. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { dependenciesOf } from "../../scripts/packaging/debian-packages.ts";
import { engineFiles, enginePackages, unneeded } from "../../scripts/packaging/engine-files.ts";
import { runProgram } from "../../scripts/packaging/run-program.ts";
import { writeTar } from "../../scripts/packaging/tar.ts";
import { topics } from "../../src/cli/help/topics.ts";
import type { Docker } from "./docker.ts";

export const engineImage = "bough:engine";

/** Makes the image, without bough itself, in a directory for its files, and gives it to docker. */
export async function importEngineImage(docker: Docker, directory: string): Promise<void> {
  const archive = join(directory, "root.tar");
  writeFileSync(archive, writeTar(engineFiles([installedFiles(directory)]), new Date(0)));
  const settings = ["USER 65532:65532", "ENV HOME=/home/bough", "VOLUME /home/bough", "WORKDIR /work"];
  const words = ["import", ...settings.flatMap((setting) => ["--change", setting]), archive, engineImage];
  const { exitCode, stderr } = await docker.client(words);
  if (exitCode !== 0) throw new Error(stderr);
}

/** Returns the flags of `docker run` in the manual's table, by the names of its rows. */
export function containerRows(): Map<string, string> {
  const rows = (topics.ci?.markdown ?? "").matchAll(/^\| (\S+) \| `(--[^`]*)` \|/gm);
  return new Map(Array.from(rows, ([, name = "", flags = ""]) => [name, flags]));
}

/** Files of installed packages, as one package: what the image is made of, and what that depends on. */
function installedFiles(place: string) {
  const names = new Set(enginePackages);
  for (const name of names) {
    const control = runProgram(["dpkg-query", "--status", name]);
    for (const needed of dependenciesOf(control)) if (!unneeded.has(needed)) names.add(needed);
  }
  const directory = join(place, "files");
  // /lib64 is a link to it.
  mkdirSync(join(directory, "usr/lib64"), { recursive: true });
  const list = runProgram(["dpkg-query", "--listfiles", ...names]);
  writeFileSync(join(place, "list"), list.replace(/^(?!\/).*\n/gm, ""));
  const copy = 'tar -c -C / --no-recursion --ignore-failed-read -T "$1/list" 2>&- | tar -x -p -C "$1/files"';
  runProgram(["sh", "-c", copy, "sh", place]);
  return { name: "ca-certificates", version: "1", control: "", directory };
}
