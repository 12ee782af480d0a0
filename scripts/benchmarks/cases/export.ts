import { mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "../../../test/support/registry.ts";
import type { Bench, Row } from "../bench.ts";
import { importBase, makeBuildah } from "../buildah.ts";
import { alternate, run } from "../measure.ts";

const layers = 20;
/** The size of all layers together. */
const imageBytes = 2 ** 30;
const fileBytes = 50 * 1024;

/** Compares the export of an image of 1 GiB in 20 layers to an `oci-archive` with `buildah push`. */
export async function measureExport(bench: Bench): Promise<Row[]> {
  const buildah = await makeBuildah(bench);
  const directory = await makeLargeImage(bench);
  const bough = bench.build("", "engine").env ?? {};
  const exportTo = (place: string) => ({
    words: [bench.bough, "--local", "-q", "images", "export", "large:1", place],
    env: bough,
  });
  await run(exportTo(`oci:${directory}/layout:1`));
  await run(buildah.load(`oci:${directory}/layout:1`, "large:1"));
  rmSync(join(directory, "layout"), { recursive: true });
  const archive = join(directory, "archive.tar");
  // Neither must replace a file, which takes additional time.
  const time = (command: Parameters<typeof run>[0]) => async () => {
    rmSync(archive, { force: true });
    return (await run(command)).milliseconds;
  };
  const toArchive = exportTo(`oci-archive:${archive}:1`);
  const [own = 0, other = 0] = await alternate(
    Math.min(3, bench.times),
    time(toArchive),
    time(buildah.push("large:1", `oci-archive:${archive}:1`)),
  );
  rmSync(archive);
  const { peakBytes } = await run(toArchive, { watches: true });
  rmSync(archive);
  const name = "export of 1 GiB, 20 layers";
  return [
    {
      case: name,
      bough: `${(own / 1000).toFixed(2)} s`,
      against: `${(other / 1000).toFixed(2)} s, buildah push`,
      figure: other / own,
      unit: "times as fast",
      goal: { atLeast: 1.5 },
    },
    {
      case: name,
      bough: "resident memory",
      against: "",
      figure: peakBytes / 2 ** 20,
      unit: "MiB",
      goal: { atMost: 250 },
    },
  ];
}

/** Measures a push of that image to a registry on loopback that already has it. */
export async function measureUnchangedPush(bench: Bench): Promise<Row[]> {
  await makeLargeImage(bench);
  const registry = await Registry.start();
  try {
    const push = {
      words: [bench.bough, "--local", "-q", "push", "large:1", `${registry.host}/large:1`],
      env: bench.build("", "engine").env ?? {},
    };
    await run(push);
    const [again = 0] = await alternate(bench.times, async () => (await run(push)).milliseconds);
    return [
      {
        case: "push, nothing has changed",
        bough: `${again.toFixed(0)} ms`,
        against: "",
        figure: again / 1000,
        unit: "s",
        goal: { atMost: 0.5 },
      },
    ];
  } finally {
    await registry.stop();
  }
}

let made: Promise<string> | undefined;

/** Makes `large:1` on bough's engine. Returns a directory to work in. */
function makeLargeImage(bench: Bench): Promise<string> {
  made ??= make(bench);
  return made;
}

/** Fills the image with pieces of an executable: machine code, tables and texts, like most of a usual image. */
async function make(bench: Bench): Promise<string> {
  await importBase(bench);
  const [directory, context] = [bench.directory("large-image"), bench.directory("large-context")];
  const content = readFileSync(bench.bough);
  const files = Math.floor(imageBytes / layers / fileBytes);
  let dockerfile = "FROM base:1\n";
  for (let layer = 0; layer < layers; layer++) {
    mkdirSync(join(context, `d${layer}`));
    const start = Math.floor((layer / layers) * (content.byteLength - files * fileBytes));
    for (let file = 0; file < files; file++) {
      const at = start + file * fileBytes;
      writeFileSync(join(context, `d${layer}/f${file}`), content.subarray(at, at + fileBytes));
    }
    dockerfile += `COPY d${layer} /d${layer}\nRUN true ${layer}\n`;
  }
  writeFileSync(join(context, "Dockerfile"), dockerfile);
  await run(bench.build(context, "engine", "--no-default-excludes", "--tag", "large:1"));
  rmSync(context, { recursive: true });
  return directory;
}
