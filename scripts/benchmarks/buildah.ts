import { join } from "node:path";
import { makeBusyboxLayout } from "../../test/support/busybox-image.ts";
import type { Bench } from "./bench.ts";
import { type Command, run } from "./measure.ts";

interface Buildah {
  build(context: string, ...words: string[]): Command;
  /** Copies an image into buildah's storage. */
  load(source: string, name: string): Command;
  push(name: string, destination: string): Command;
}

let made: Promise<Buildah> | undefined;

/** Makes a storage for buildah, and bough's engine, both with the same base image `base:1`. */
export function makeBuildah(bench: Bench): Promise<Buildah> {
  made ??= make(bench);
  return made;
}

let imported: Promise<string> | undefined;

/** Imports `base:1` on bough's engine. Returns the image's layout. */
export function importBase(bench: Bench): Promise<string> {
  imported ??= importLayout(bench);
  return imported;
}

async function importLayout(bench: Bench): Promise<string> {
  const layout = await makeBusyboxLayout(join(bench.directory("base"), "layout"));
  const env = bench.build("", "engine").env ?? {};
  await run({ words: [bench.bough, "--local", "images", "import", layout, "--tag", "base:1"], env });
  return layout;
}

async function make(bench: Bench): Promise<Buildah> {
  const directory = bench.directory("buildah");
  const layout = await importBase(bench);
  const [root, runRoot] = [join(directory, "root"), join(directory, "run")];
  const env = { STORAGE_DRIVER: "overlay", BUILDAH_ISOLATION: "chroot", HOME: directory };
  const load = (source: string, name: string): Command => {
    const destination = `containers-storage:[overlay@${root}+${runRoot}]docker.io/library/${name}`;
    return { words: ["skopeo", "copy", "--quiet", source, destination], env };
  };
  await run(load(layout, "base:1"));
  const storage = [`--root=${root}`, `--runroot=${runRoot}`];
  return {
    load,
    push: (name, destination) => ({
      words: ["buildah", ...storage, "push", "--quiet", name, destination],
      env,
    }),
    build: (context, ...words) => ({
      words: ["buildah", ...storage, "bud", "--layers", "--pull-never", "--quiet", ...words, context],
      env,
    }),
  };
}
