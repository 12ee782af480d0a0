import { randomBytes } from "node:crypto";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeBusyboxLayout } from "../../../test/support/busybox-image.ts";
import { Registry } from "../../../test/support/registry.ts";
import type { Bench, Row } from "../bench.ts";
import { startBuildx } from "../buildx.ts";
import { alternate, median, run } from "../measure.ts";

const count = 100;
const baseBytes = 30_000_000;

/** Compares a bake of many targets on one base, built from nothing and pushed to a registry, with the same of `docker buildx bake`. */
export async function measurePushedTargets(bench: Bench): Promise<Row[]> {
  const buildx = await startBuildx(bench);
  if (buildx === undefined) return [];
  const registry = await Registry.start();
  bench.atEnd(() => registry.stop());
  const prepare = (root: string) => writeFileSync(join(root, "large"), randomBytes(baseBytes));
  const layout = join(bench.directory("pushed-targets-base"), "layout");
  registry.push(await makeBusyboxLayout(layout, { prepare }), "base:1");
  const directory = bench.directory("pushed-targets");
  const home = join(bench.directory("pushed-targets-home"), "home");
  let bakes = 0;
  /** Each bake pushes to repositories of its own: none has anything yet. */
  const bakeFile = () => {
    bakes += 1;
    const names = Array.from({ length: count }, (_, index) => `t${index}`);
    const target = (name: string) => ({
      "dockerfile-inline": dockerfileOf(`${registry.host}/base:1`),
      args: { N: name },
      tags: [`${registry.host}/bake${bakes}/${name}:1`],
      network: "none",
      attest: ["type=provenance,disabled=true"],
    });
    return JSON.stringify({
      group: { default: { targets: names } },
      target: Object.fromEntries(names.map((name) => [name, target(name)])),
    });
  };
  const processor: { bough: number[]; docker: number[] } = { bough: [], docker: [] };
  const ours = async () => {
    rmSync(home, { recursive: true, force: true });
    writeFileSync(join(directory, "docker-bake.json"), bakeFile());
    const words = [bench.bough, "--local", "bake", "--push"];
    const { milliseconds, processorSeconds } = await run({
      words,
      cwd: directory,
      env: { BOUGH_HOME: home },
    });
    processor.bough.push(processorSeconds);
    return milliseconds;
  };
  const theirs = async () => {
    await buildx.empty();
    const { milliseconds, processorSeconds } = await buildx.bake(bakeFile(), "--push");
    processor.docker.push(processorSeconds);
    return milliseconds;
  };
  const [bough = 0, docker = 0] = await alternate(Math.min(3, bench.times), ours, theirs);
  const name = `bake of ${count} targets, from nothing, pushed`;
  const [own, other] = [median(processor.bough), median(processor.docker)];
  return [
    {
      case: name,
      bough: `${(bough / 1000).toFixed(1)} s`,
      against: `${(docker / 1000).toFixed(1)} s, docker buildx bake`,
      figure: docker / bough,
      unit: "times as fast",
      goal: { atLeast: 2 },
    },
    {
      case: name,
      bough: `${own.toFixed(1)} s of processor time`,
      against: `${other.toFixed(1)} s, docker buildx bake`,
      figure: own / other,
      unit: "times",
      goal: { atMost: 1 },
    },
  ];
}

/** Returns three steps that all targets share, and two of each. */
function dockerfileOf(base: string): string {
  const lines = [`FROM ${base}`, ...[1, 2, 3].map((step) => `RUN head -c 100000 /large > /shared${step}`)];
  return `${[...lines, "ARG N", ...[1, 2].map((step) => `RUN echo $N > /own${step}`)].join("\n")}\n`;
}
