import { join } from "node:path";
import { makeBusyboxLayout } from "../../test/support/busybox-image.ts";
import type { Bench } from "./bench.ts";
import { type Command, run } from "./measure.ts";

export interface Buildah {
  build(context: string, ...words: string[]): Command;
}

let made: Promise<Buildah> | undefined;

/** buildah on a storage of its own, and bough's engine: both with the same base image `base:1`. */
export function makeBuildah(bench: Bench): Promise<Buildah> {
  made ??= make(bench);
  return made;
}

let imported: Promise<string> | undefined;

/** `base:1` on bough's engine; answers the image's layout. */
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
  const destination = `containers-storage:[overlay@${root}+${runRoot}]docker.io/library/base:1`;
  await run({ words: ["skopeo", "copy", "--quiet", layout, destination], env });
  const storage = [`--root=${root}`, `--runroot=${runRoot}`];
  return {
    build: (context, ...words) => ({
      words: ["buildah", ...storage, "bud", "--layers", "--pull-never", "--quiet", ...words, context],
      env,
    }),
  };
}
