import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { digestOf, ociFiles, writeRawFiles } from "../../../test/support/image-bytes.ts";
import { Registry } from "../../../test/support/registry.ts";
import type { Bench, Row } from "../bench.ts";
import { alternate, type Command, run } from "../measure.ts";

const layers = 8;
/** The size of a layer: half of it in small files, half in a large one. */
const layerBytes = 450e6 / layers;
const fileBytes = 20_000;

/** Compares the import of 450 MB in 8 layers from a registry on loopback with `buildah pull`, and with that of a second image on it. */
export async function measureImport(bench: Bench): Promise<Row[]> {
  const directory = bench.directory("import");
  const registry = await Registry.start();
  try {
    await pushImages(bench, directory, registry);
    let count = 0;
    // Homes are removed only at the end: a file system that has just removed thousands of files makes new ones more slowly.
    const next = () => join(directory, `home-${count++}`);
    const importInto = (home: string, name: string): Command => ({
      words: [bench.bough, "--local", "-q", "images", "import", `docker://${registry.host}/${name}`],
      env: { BOUGH_HOME: home },
    });
    const pull = (home: string): Command => ({
      words: [
        ...["buildah", `--root=${home}/root`, `--runroot=${home}/run`],
        ...["pull", "--quiet", "--tls-verify=false", `docker://${registry.host}/large:1`],
      ],
      env: { STORAGE_DRIVER: "overlay", HOME: home },
    });
    const time = async (command: Command) => (await run(command)).milliseconds;
    let home = "";
    const [own = 0, other = 0, second = 0] = await alternate(
      Math.min(3, bench.times),
      () => {
        home = next();
        return time(importInto(home, "large:1"));
      },
      () => time(pull(next())),
      () => time(importInto(home, "large:2")),
    );
    const { peakBytes } = await run(importInto(next(), "large:1"), { watches: true });
    const name = "import of 450 MB, 8 layers";
    return [
      {
        case: name,
        bough: `${(own / 1000).toFixed(2)} s`,
        against: `${(other / 1000).toFixed(2)} s, buildah pull`,
        figure: other / own,
        unit: "times as fast",
        goal: { atLeast: 2 },
      },
      {
        case: name,
        bough: "resident memory",
        against: "",
        figure: peakBytes / 2 ** 20,
        unit: "MiB",
        goal: { atMost: 150 },
      },
      {
        case: "second image on that base",
        bough: `${(second / 1000).toFixed(2)} s`,
        against: `${(own / 1000).toFixed(2)} s, the first`,
        figure: second / own,
        unit: "of the first one's time",
        goal: { atMost: 0.2 },
      },
    ];
  } finally {
    await registry.stop();
  }
}

/** Pushes `large:1`, and `large:2` with an additional small layer. */
async function pushImages(bench: Bench, directory: string, registry: Registry): Promise<void> {
  const content = readFileSync(bench.bough);
  const work = join(directory, "layer");
  const packed: Uint8Array[] = [];
  const diffIds: string[] = [];
  for (let layer = 0; layer <= layers; layer++) {
    mkdirSync(work);
    writeLayer(work, layer, content, layer < layers ? layerBytes : 100_000);
    const tar = Bun.spawnSync(["tar", "--create", "--sort=name", `--directory=${work}`, "."]).stdout;
    diffIds.push(digestOf(tar));
    packed.push(Bun.gzipSync(new Uint8Array(tar)));
    rmSync(work, { recursive: true });
  }
  for (const [tag, count] of [layers, layers + 1].entries()) {
    const image = { layers: packed.slice(0, count), diffIds: diffIds.slice(0, count) };
    const layout = writeRawFiles(join(directory, `layout-${tag}`), ociFiles(image));
    registry.push(`oci:${layout}:latest`, `large:${tag + 1}`);
    rmSync(layout, { recursive: true });
  }
}

/** Fills a layer with pieces of an executable: machine code, tables and texts, like most of a usual image. */
function writeLayer(directory: string, layer: number, content: Uint8Array, bytes: number): void {
  const half = Math.floor(bytes / 2);
  const start = Math.floor((layer / (layers + 1)) * (content.byteLength - half));
  const piece = content.subarray(start, start + half);
  writeFileSync(join(directory, `large-${layer}`), piece);
  for (let at = 0, file = 0; at < half; at += fileBytes, file++) {
    const place = join(directory, `usr/d${layer}/${file % 50}`);
    mkdirSync(place, { recursive: true });
    writeFileSync(join(place, `f${file}`), piece.subarray(at, at + fileBytes));
  }
}
