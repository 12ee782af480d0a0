import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeBusyboxLayout } from "../../../test/support/busybox-image.ts";
import { type Bench, type Row, requestsRow } from "../bench.ts";
import { importBase, makeBuildah } from "../buildah.ts";
import { alternate, type Command, run } from "../measure.ts";

/** Compares five cached stages with one cached stage of as many RUNs. */
export async function measureCachedStages(bench: Bench): Promise<Row[]> {
  const file = join(bench.directory("stage-file"), "large");
  writeFileSync(file, "what is copied");
  const service = await bench.startService("--image-file", file);
  const five = bench.directory("cached-stages");
  const one = bench.directory("cached-stage");
  const runs = (stage: number) => [1, 2, 3, 4].map((each) => `RUN step ${stage} ${each}`);
  const indexes = [0, 1, 2, 3, 4];
  const stages = indexes.flatMap((stage) => [
    `FROM base:1 AS stage${stage}`,
    ...(stage === 0 ? [] : [`COPY --from=stage${stage - 1} /large /from${stage}`]),
    ...runs(stage),
  ]);
  writeFileSync(join(five, "Dockerfile"), stages.join("\n"));
  writeFileSync(join(one, "Dockerfile"), ["FROM base:1", ...indexes.flatMap(runs)].join("\n"));
  const build = bench.build(five, service, "--docker", "--tag", "app");
  const other = bench.build(one, service, "--docker", "--tag", "app");
  for (const each of [build, other]) await run(each);
  const time = (command: Command) => async () => (await run(command)).milliseconds;
  const [bough = 0, reference = 0] = await alternate(bench.times * 2, time(build), time(other));
  await service.reset();
  await run(build);
  const { requests } = await service.stats();
  const name = "cached, five stages, 20 RUN";
  return [
    {
      case: name,
      bough: `${bough.toFixed(1)} ms`,
      against: `${reference.toFixed(1)} ms, one stage`,
      figure: bough / reference,
      unit: "times",
      goal: { atMost: 1.5 },
    },
    requestsRow(name, requests, { against: "FROM's image, the tag", atMost: 2 }),
  ];
}

/** Compares four stages that sleep, and one that needs them all, with one stage that sleeps. */
export async function measureStagesAtOnce(bench: Bench): Promise<Row[]> {
  await importBase(bench);
  const write = (name: string, count: number) => {
    const context = bench.directory(name);
    const indexes = Array.from({ length: count }, (_, index) => index);
    const stages = indexes.map((index) => `FROM base:1 AS stage${index}\nRUN sleep 3; echo ${index}\n`);
    const copies = indexes.map((index) => `COPY --from=stage${index} /etc/passwd /${index}\n`);
    writeFileSync(join(context, "Dockerfile"), `${stages.join("")}FROM base:1\n${copies.join("")}`);
    return bench.build(context, "engine", "--docker", "--jobs", "4", "--no-cache");
  };
  const [four, one] = [write("four-stages", 4), write("one-stage", 1)];
  const [bough = 0, reference = 0] = await alternate(
    Math.min(3, bench.times),
    async () => (await run(four)).milliseconds,
    async () => (await run(one)).milliseconds,
  );
  return [
    {
      case: "four stages of 3 s at once",
      bough: `${(bough / 1000).toFixed(2)} s`,
      against: `${(reference / 1000).toFixed(2)} s, one of them`,
      figure: bough / reference,
      unit: "times",
      goal: { atMost: 1.2 },
    },
  ];
}

/** Compares a build for two platforms, whose stages are all cross-compiled, with the build for one. */
export async function measurePlatforms(bench: Bench): Promise<Row[]> {
  const context = bench.directory("platforms");
  await makeBusyboxLayout(join(context, "layout"), { architectures: ["amd64", "arm64"] });
  const count = "i=0; while [ $i -lt 1000000 ]; do i=$((i+1)); done";
  const lines = [
    `FROM --platform=$BUILDPLATFORM base AS build\nRUN ${count}; echo $i > /common`,
    `FROM --platform=$BUILDPLATFORM base AS other\nRUN ${count}; echo $i > /common`,
    "FROM base\nCOPY --from=build /common /a\nCOPY --from=other /common /b\nCMD cat /a",
  ];
  writeFileSync(join(context, "Dockerfile"), lines.join("\n"));
  const layout = `base=oci-layout://${join(context, "layout")}`;
  const words = ["--docker", "--no-cache", "--build-context", layout, "--platform"];
  const time = (platforms: string) => {
    const build = bench.build(context, "engine", ...words, platforms);
    return async () => (await run(build)).milliseconds;
  };
  const both = time("linux/amd64,linux/arm64");
  await both();
  const [bough = 0, reference = 0] = await alternate(bench.times, both, time("linux/amd64"));
  return [
    {
      case: "two platforms, cross-compiled",
      bough: `${(bough / 1000).toFixed(2)} s`,
      against: `${(reference / 1000).toFixed(2)} s, one of them`,
      figure: bough / reference,
      unit: "times",
      goal: { atMost: 1.2 },
    },
  ];
}

/** Compares `COPY --from` of 40,000 files on the engine with buildah: the time of a build minus that of the next, cached one. */
export async function measureCopiedTree(bench: Bench): Promise<Row[]> {
  const buildah = await makeBuildah(bench);
  const context = bench.directory("copied-tree");
  const makeTree =
    "mkdir /tree; cd /tree; for d in $(seq 400); do mkdir $d; for f in $(seq 100); do echo $d $f > $d/$f; done; done";
  let destination = 0;
  const copyTime = (command: Command) => async () => {
    const lines = [
      "FROM base:1 AS tree",
      `RUN ${makeTree}`,
      "FROM base:1",
      `COPY --from=tree /tree /to${++destination}`,
    ];
    writeFileSync(join(context, "Dockerfile"), `${lines.join("\n")}\n`);
    const copying = (await run(command)).milliseconds;
    return copying - (await run(command)).milliseconds;
  };
  const ours = bench.build(context, "engine", "--docker");
  const theirs = buildah.build(context);
  // The stage comes from the cache from now on.
  for (const command of [ours, theirs]) await copyTime(command)();
  const [bough = 0, other = 0] = await alternate(Math.min(3, bench.times), copyTime(ours), copyTime(theirs));
  return [
    {
      case: "COPY --from of 40,000 files",
      bough: `${bough.toFixed(0)} ms, engine`,
      against: `${other.toFixed(0)} ms, buildah`,
      figure: other / bough,
      unit: "times as fast",
      goal: { atLeast: 10 },
    },
  ];
}
