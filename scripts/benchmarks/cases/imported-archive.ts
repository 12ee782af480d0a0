import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { diskUsage } from "../../../src/engine/system/disk.ts";
import { archiveOf, dockerFiles } from "../../../test/support/image-bytes.ts";
import { Registry } from "../../../test/support/registry.ts";
import type { Bench, Row } from "../bench.ts";
import { alternate, type Command, median, run } from "../measure.ts";

const layerBytes = 250_000_000;
const fileBytes = 35_000;
const compressOnce = join(import.meta.dir, "../compress-once.ts");

/** Measures an import from an archive of `docker save`, what it keeps, and the first push of the image. */
export async function measureImportedArchive(bench: Bench): Promise<Row[]> {
  const directory = bench.directory("imported-archive");
  const { layer, archive } = makeArchive(directory, readFileSync(bench.bough));
  let count = 0;
  let home = "";
  const bough = (...words: string[]): Command => ({
    words: [bench.bough, "--local", "-q", ...words],
    env: { BOUGH_HOME: home },
  });
  const seconds = new Map<string, number[]>();
  const timed = (name: string, commandOf: () => Command) => async () => {
    const { processorSeconds } = await run(commandOf());
    seconds.set(name, [...(seconds.get(name) ?? []), processorSeconds]);
    return processorSeconds;
  };
  const registries: Registry[] = [];
  try {
    await alternate(
      Math.min(3, bench.times),
      timed("import", () => {
        home = join(directory, `home-${count++}`);
        return bough("images", "import", `docker-archive:${archive}`, "--tag", "app:1");
      }),
      timed("tar", () => {
        const target = join(directory, `tree-${count}`);
        mkdirSync(target);
        return { words: ["tar", "--extract", `--directory=${target}`, `--file=${layer}`] };
      }),
      async () => {
        // One that has nothing yet.
        registries.push(await Registry.start());
        return 0;
      },
      timed("push", () => bough("push", "app:1", `${registries.at(-1)?.host}/app:1`)),
      timed("compress", () => ({ words: [process.execPath, compressOnce, layer] })),
    );
  } finally {
    for (const registry of registries) await registry.stop();
  }
  const [own, tar, push, compress] = ["import", "tar", "push", "compress"].map((name) =>
    median(seconds.get(name) ?? []),
  ) as [number, number, number, number];
  const kept = diskUsage(join(home, "engine"));
  rmSync(directory, { recursive: true });
  return [
    compare("import of an archive of 250 MB", own, `${tar.toFixed(2)} s, tar --extract`, own / tar, 4),
    {
      case: "import of an archive of 250 MB",
      bough: `${(kept / 1e6).toFixed(0)} MB on the disk`,
      against: `${layerBytes / 1e6} MB, its files`,
      figure: kept / layerBytes,
      unit: "times",
      goal: { atMost: 1.02 },
    },
    compare(
      "first push of an imported archive",
      push,
      `${compress.toFixed(2)} s, gzip and SHA-256 of its layer`,
      push / compress,
      1.2,
    ),
  ];
}

function compare(name: string, seconds: number, against: string, figure: number, atMost: number): Row {
  const bough = `${seconds.toFixed(2)} s of processor time`;
  return { case: name, bough, against, figure, unit: "times", goal: { atMost } };
}

/** Makes an image of one layer: pieces of an executable, which are machine code, tables and texts, like most of a usual image. */
function makeArchive(directory: string, content: Uint8Array): { layer: string; archive: string } {
  const tree = join(directory, "tree");
  const starts = content.byteLength - fileBytes;
  for (let file = 0; file * fileBytes < layerBytes; file++) {
    const place = join(tree, `usr/d${file % 100}`);
    mkdirSync(place, { recursive: true });
    // Steps that share no divisor with the executable's size: pieces overlap, but none begins where another does.
    const at = (file * 1_000_003) % starts;
    writeFileSync(join(place, `f${file}`), content.subarray(at, at + fileBytes));
  }
  const [layer, archive] = [join(directory, "layer.tar"), join(directory, "archive.tar")];
  const { success, stderr } = Bun.spawnSync([
    ...["tar", "--create", "--sort=name", `--directory=${tree}`, `--file=${layer}`, "."],
  ]);
  if (!success) throw new Error(`tar: ${stderr}`);
  rmSync(tree, { recursive: true });
  writeFileSync(archive, archiveOf(dockerFiles({ layers: [new Uint8Array(readFileSync(layer))] })));
  return { layer, archive };
}
