import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Registry } from "../../../test/support/registry.ts";
import type { Bench, Row } from "../bench.ts";
import { importBase } from "../buildah.ts";
import { flatRow, growthRow, measurePoint } from "../growth.ts";
import { type Command, run } from "../measure.ts";

/** Each build adds so many images to the home. */
const imagesOfBuild = 400;
const buildCounts = [1, 3, 8];
const targetCounts = [10, 40, 200];

/** Measures commands that look at all images, in a home of 400 to 3,200. */
export async function measureGrowingHome(bench: Bench): Promise<Row[]> {
  const home = { BOUGH_HOME: join(bench.directory("growing-home"), "home") };
  const layout = await importBase(bench);
  const command = (...words: string[]): Command => ({ words: [bench.bough, "--local", ...words], env: home });
  await run(command("images", "import", layout, "--tag", "base:1"));
  const commands: Record<string, string[]> = {
    "bough images": ["images"],
    "bough images --all": ["images", "--all"],
    "engine df": ["engine", "df"],
    "engine prune, only said": ["engine", "prune"],
  };
  const points = new Map(
    Object.keys(commands).map((name) => [name, [] as Awaited<ReturnType<typeof measurePoint>>[]]),
  );
  let built = 0;
  for (const builds of buildCounts) {
    for (; built < builds; built++) {
      const context = bench.directory(`growing-home-${built}`);
      writeFileSync(join(context, "file"), `${built}\n`);
      const copies = Array.from({ length: imagesOfBuild }, (_, index) => `COPY file /${index}`);
      writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${copies.join("\n")}\n`);
      await run(command("build", "--docker", context));
    }
    for (const [name, words] of Object.entries(commands)) {
      // The first one measures the new layers, the others only read the result.
      await run(command(...words));
      points
        .get(name)
        ?.push(await measurePoint(builds * imagesOfBuild, bench.times, () => command(...words)));
    }
  }
  const version = await run({ words: [bench.bough, "--version"] });
  const floor = { program: "bough --version", seconds: version.processorSeconds };
  return [...points].map(([name, of]) =>
    flatRow({ name, things: "images", points: of, floor, atMost: name.endsWith("--all") ? 0.2 : 0.1 }),
  );
}

/** Measures 10 to 200 targets of `bough bake` with one cache in a registry, which all of them write. */
export async function measureGrowingTargets(bench: Bench): Promise<Row[]> {
  const registry = await Registry.start();
  bench.atEnd(() => registry.stop());
  await importBase(bench);
  const { BOUGH_HOME = "" } = bench.build("", "engine").env ?? {};
  const points = [];
  let without = 0;
  for (const count of targetCounts) {
    const context = bench.directory(`growing-targets-${count}`);
    writeFileSync(join(context, "Dockerfile"), "FROM base:1\nARG N\nRUN echo $N > /made\n");
    const names = Array.from({ length: count }, (_, index) => `t${index}`);
    const bakeFile = (cache: object) => {
      const target = (name: string) => [name, { context: ".", args: { N: name }, ...cache }];
      return JSON.stringify({
        group: { default: { targets: names } },
        target: Object.fromEntries(names.map(target)),
      });
    };
    const cacheOf = (time: number) => [
      `type=registry,ref=${registry.host}/targets:${count}-${time},mode=max`,
    ];
    const bake = (text: string): Command => {
      writeFileSync(join(context, "docker-bake.json"), text);
      const words = [bench.bough, "--local", "bake", "--no-cache", "--tls-verify=false"];
      return { words, cwd: context, env: { BOUGH_HOME } };
    };
    points.push(
      await measurePoint(count, Math.min(3, bench.times), (time) =>
        bake(bakeFile({ "cache-to": cacheOf(time) })),
      ),
    );
    without = (await run(bake(bakeFile({})))).processorSeconds;
  }
  const floor = { program: "without a cache", seconds: without };
  return [growthRow({ name: "bake with one cache", things: "targets", points, floor })];
}
