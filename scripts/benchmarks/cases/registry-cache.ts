import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeBusyboxLayout } from "../../../test/support/busybox-image.ts";
import { Registry } from "../../../test/support/registry.ts";
import { type Bench, type Row, requestsRow } from "../bench.ts";
import { type Buildx, startBuildx } from "../buildx.ts";
import { alternate, run } from "../measure.ts";

const stages = [0, 1, 2, 3, 4];
const steps = [0, 1, 2, 3];
const name = "registry cache, 450 MB, 20 RUN";
/** The size of each RUN's layer, of bytes that can't be compressed: 450 MB in all. */
const layerBytes = 22_500_000;

/** Measures builds that begin in an empty home and find their steps in a registry, and how much longer a build takes that writes there. */
export async function measureRegistryCache(bench: Bench): Promise<Row[]> {
  const registry = await Registry.start();
  bench.atEnd(() => registry.stop());
  registry.push(await makeBusyboxLayout(join(bench.directory("registry-cache-base"), "layout")), "base:1");
  const context = bench.directory("registry-cache");
  const dockerfile = dockerfileOf(`${registry.host}/base:1`);
  const write = (text: string) => writeFileSync(join(context, "Dockerfile"), text);
  write(dockerfile);
  const cache = `type=registry,ref=${registry.host}/cache:main`;
  const [from, to] = [`--cache-from=${cache}`, `--cache-to=${cache},mode=max`];
  const build = (home: string, ...words: string[]) => ({
    words: [bench.bough, "--local", "build", context, "--docker", ...words],
    env: { BOUGH_HOME: join(bench.directory("registry-cache-homes"), home) },
  });
  const writing = build("warm", from, to);
  const cold = build("cold", from);
  const runCold = async () => {
    rmSync(cold.env.BOUGH_HOME, { recursive: true, force: true });
    const before = registry.sentBytes();
    const { milliseconds, stderr } = await run(cold);
    return { milliseconds, stderr, bytes: registry.sentBytes() - before };
  };

  await run(writing);
  // Each build makes other bytes, so all of them are sent.
  const without = async () => (await run(build("warm", "--no-cache"))).milliseconds;
  const withCache = async () => (await run(build("warm", "--no-cache", to))).milliseconds;
  const [plainTime = 0, writeTime = 0] = await alternate(bench.times, without, withCache);
  await run(writing);
  await run(writing);
  const known = registry.requests().length;
  await run(writing);
  const requests = registry.requests().slice(known);

  const [milliseconds = 0] = await alternate(bench.times, async () => (await runCold()).milliseconds);
  const cached = await runCold();
  if (/ spawned op=/.test(cached.stderr)) throw new Error(`the cache is not used:\n${cached.stderr}`);

  const changedText = `${dockerfile.trimEnd()}; echo changed\n`;
  const buildx = await startBuildx(bench);
  const compared =
    buildx === undefined
      ? []
      : await compareWithBuildx(bench, buildx, {
          dockerfiles: { "all cached": dockerfile, "the last RUN changed": changedText },
          cache: `type=registry,ref=${registry.host}/buildx:main`,
          async build(text) {
            write(text);
            return (await runCold()).milliseconds;
          },
        });
  write(changedText);
  const changed = await runCold();
  const ran = changed.stderr.match(/ spawned op=/g)?.length;
  if (ran !== 1) throw new Error(`${ran} steps were run:\n${changed.stderr}`);
  const belowBytes = (steps.length - 1) * layerBytes;

  return [
    {
      case: `${name}, all cached`,
      bough: `${milliseconds.toFixed(0)} ms, empty home`,
      against: "",
      figure: milliseconds,
      unit: "ms",
      goal: { atMost: 300 },
    },
    {
      case: `${name}, all cached`,
      bough: "received",
      against: "",
      figure: cached.bytes / 1024,
      unit: "KiB",
      goal: { atMost: 64 },
    },
    {
      case: `${name}, the last RUN changed`,
      bough: `${(changed.bytes / 1e6).toFixed(1)} MB received`,
      against: `${(belowBytes / 1e6).toFixed(1)} MB, the RUNs below it`,
      // With the base, which has a megabyte.
      figure: changed.bytes / belowBytes,
      unit: "times",
      goal: { atMost: 1.05 },
    },
    requestsRow(`${name}, written unchanged`, countRequests(requests), { against: "", atMost: 5 }),
    {
      case: `${name}, written`,
      bough: `${(writeTime / 1000).toFixed(1)} s`,
      against: `${(plainTime / 1000).toFixed(1)} s, without writing`,
      figure: writeTime / plainTime,
      unit: "times",
      goal: { atMost: 1.3 },
    },
    ...compared,
  ];
}

/** Compares builds on empty machines, each with the cache that its own builder has written. */
async function compareWithBuildx(
  { times }: Bench,
  buildx: Buildx,
  {
    dockerfiles,
    cache,
    build,
  }: {
    dockerfiles: Readonly<Record<string, string>>;
    cache: string;
    build(dockerfile: string): Promise<number>;
  },
): Promise<Row[]> {
  const [first = ""] = Object.values(dockerfiles);
  await buildx.build(first, `--cache-to=${cache},mode=max`);
  const rows: Row[] = [];
  for (const [what, dockerfile] of Object.entries(dockerfiles)) {
    const theirs = async () => {
      await buildx.empty();
      return buildx.build(dockerfile, "--tag=built:1", `--cache-from=${cache}`);
    };
    const [ours = 0, docker = 0] = await alternate(times, () => build(dockerfile), theirs);
    rows.push({
      case: `${name}, ${what}`,
      bough: `${ours.toFixed(0)} ms, empty home`,
      against: `${docker.toFixed(0)} ms, docker buildx`,
      figure: docker / ours,
      unit: "times as fast",
      goal: { atLeast: 2 },
    });
  }
  return rows;
}

function countRequests(requests: readonly string[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const request of requests) {
    const call = request.replace(/sha256:[0-9a-f]+/, "DIGEST");
    counts[call] = (counts[call] ?? 0) + 1;
  }
  return counts;
}

/** Returns stages of which each is needed by the last one. */
function dockerfileOf(base: string): string {
  const lines = stages.flatMap((stage) => [
    `FROM ${base} AS stage${stage}`,
    ...(stage < stages.length - 1
      ? []
      : stages.slice(0, -1).map((other) => `COPY --from=stage${other} /done${other} /from${other}`)),
    ...steps.map(
      (step) =>
        `RUN head -c ${layerBytes} /dev/urandom > /made${stage}-${step}; echo ${step} > /done${stage}`,
    ),
  ]);
  return `${lines.join("\n")}\n`;
}
