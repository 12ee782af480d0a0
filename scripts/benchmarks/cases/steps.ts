import { cpSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { seccompFilter } from "../../../src/engine/sandbox/seccomp.ts";
import { machineArchitecture } from "../../../src/image/platform.ts";
import { type Bench, type Row, runFresh } from "../bench.ts";
import { importBase, makeBuildah } from "../buildah.ts";
import { writeDockerfile } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

const serialClient = join(import.meta.dir, "../serial-client.ts");
const runs = 20;

/** Measures RUNs that take no time, so that bough's own time remains. */
export async function measureRemoteSteps(bench: Bench): Promise<Row[]> {
  const rows: Row[] = [];
  for (const kind of ["events", "polling"]) {
    const service = await bench.startService(...(kind === "polling" ? ["--polling"] : []));
    const context = bench.directory(`steps-${kind}`);
    writeDockerfile(context, runs, false);
    const [bough = 0] = await alternate(
      bench.times,
      async () => (await runFresh(bench.build(context, service))).milliseconds,
    );
    const serial = await run({ words: [process.execPath, serialClient, service.url, context] });
    rows.push({
      case: `20 RUN, over ${kind}`,
      bough: `${bough.toFixed(0)} ms`,
      against: `${serial.milliseconds.toFixed(0)} ms, serial client`,
      figure: bough / runs,
      unit: "ms a step",
      goal: { atMost: 8 },
    });
  }
  return rows;
}

/** Compares RUNs of `true` on the engine with buildah, and with the time of the container alone. */
export async function measureEngineSteps(bench: Bench): Promise<Row[]> {
  const buildah = await makeBuildah(bench);
  const context = bench.directory("engine-steps");
  const lines = Array.from({ length: runs }, (_, index) => `RUN true ${index}`);
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\n${lines.join("\n")}\n`);
  const none = bench.directory("engine-none");
  writeFileSync(join(none, "Dockerfile"), "FROM base:1\n");
  const bundle = await makeBundle(bench);
  const time = (command: Parameters<typeof run>[0]) => async () => (await run(command)).milliseconds;
  const [bough = 0, other = 0, nothing = 0, bare = 0] = await alternate(
    Math.max(3, Math.ceil(bench.times / 2)),
    time(bench.build(context, "engine", "--no-cache")),
    time(buildah.build(context, "--no-cache")),
    time(bench.build(none, "engine", "--no-cache")),
    async () => {
      const names = Array.from({ length: runs }, () => `bench-${crypto.randomUUID()}`);
      let total = 0;
      for (const name of names)
        total += (await run({ words: ["runc", "run", "--bundle", bundle, name] })).milliseconds;
      return total / runs;
    },
  );
  const [cached = 0, otherCached = 0] = await alternate(
    bench.times,
    time(bench.build(context, "engine")),
    time(buildah.build(context)),
  );
  const one = (bough - nothing) / runs;
  return [
    {
      case: "20 RUN true on the engine",
      bough: `${bough.toFixed(0)} ms`,
      against: `${other.toFixed(0)} ms, buildah`,
      figure: other / bough,
      unit: "times as fast",
      goal: { atLeast: 10 },
    },
    {
      case: "one RUN true on the engine",
      bough: `${one.toFixed(0)} ms`,
      against: `${bare.toFixed(0)} ms, runc run`,
      figure: one / bare,
      unit: "times",
      goal: { atMost: 1.3 },
    },
    {
      case: "20 RUN true, cached",
      bough: `${cached.toFixed(0)} ms`,
      against: `${otherCached.toFixed(0)} ms, buildah`,
      figure: cached / otherCached,
      unit: "of buildah's time",
      goal: { atMost: 0.25 },
    },
  ];
}

const lines = 3_000_000;

/** Compares a RUN with much output with the same through a pipe. Time of a processor, which other load changes little. */
export async function measureEngineOutput(bench: Bench): Promise<Row[]> {
  const context = bench.directory("engine-output");
  const command = `seq 1 ${lines}`;
  writeFileSync(join(context, "Dockerfile"), `FROM base:1\nRUN ${command}\n`);
  const build = bench.build(context, "engine", "--no-cache");
  await importBase(bench);
  const [bough = 0, pipe = 0] = await alternate(
    Math.max(3, Math.ceil(bench.times / 2)),
    async () => {
      const { processorSeconds, stdout, stderr } = await run(build);
      if (!`${stdout}${stderr}`.includes(`${lines}`)) throw new Error("the output is incomplete");
      return processorSeconds;
    },
    async () => {
      const words = ["/bin/busybox", "sh", "-c", `busybox ${command} | busybox cat`];
      return (await run({ words })).processorSeconds;
    },
  );
  return [
    {
      case: `RUN ${command} on the engine`,
      bough: `${bough.toFixed(2)} s of a processor`,
      against: `${pipe.toFixed(2)} s, a pipe`,
      figure: bough / pipe,
      unit: "times",
      goal: { atMost: 3 },
    },
  ];
}

/** Makes a bundle with runc's default configuration, bough's seccomp filter, and a static `true` as the root file system. */
export async function makeBundle(bench: Bench): Promise<string> {
  const bundle = bench.directory("bundle");
  mkdirSync(join(bundle, "rootfs/bin"), { recursive: true });
  cpSync("/bin/busybox", join(bundle, "rootfs/bin/true"));
  await run({ words: ["runc", "spec", "--bundle", bundle] });
  const path = join(bundle, "config.json");
  const config = JSON.parse(readFileSync(path, "utf8"));
  config.process.args = ["/bin/true"];
  config.process.terminal = false;
  config.linux.seccomp = seccompFilter(machineArchitecture(), config.process.capabilities.bounding);
  writeFileSync(path, JSON.stringify(config));
  return bundle;
}
