import { appendFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { type Bench, type Row, runFresh } from "../bench.ts";
import { writeDockerfile, writeManyFiles } from "../contexts.ts";
import { alternate, run } from "../measure.ts";

/** One round trip. A line to another continent has one of this length. */
const roundTrip = 100;

/**
 * Measures builds on a service 100 ms away that answers at once, in round trips. A connection's handshake takes one, too, as on
 * a real line; TLS takes another one.
 */
export async function measureFarBuilds(bench: Bench): Promise<Row[]> {
  const service = await bench.putFarAway(await bench.startService(), roundTrip);
  const context = bench.directory("far-builds");
  writeManyFiles(context, { count: 200, bytes: 4096 });
  writeDockerfile(context, 7);
  const build = bench.build(context, service, "--tag", "app:1");
  let changes = 0;
  const change = async () => appendFileSync(join(context, "d0/f0"), String(++changes));
  const [first = 0, changed = 0, cached = 0] = await alternate(
    bench.times,
    async () => {
      await service.reset();
      return (await runFresh(build)).milliseconds;
    },
    async () => {
      await change();
      return (await run(build)).milliseconds;
    },
    async () => (await run(build)).milliseconds,
  );
  return [
    row("7 RUN, 200 files, first", first, 24),
    row("7 RUN, 200 files, one changed", changed, 19),
    row("7 RUN, 200 files, cached, with a tag", cached, 4),
  ];
}

/** Measures the upload of many small files, each of which takes a request. */
export async function measureFarFiles(bench: Bench): Promise<Row[]> {
  const [context, secureContext] = [bench.directory("far-files"), bench.directory("far-secure-files")];
  writeManyFiles(context, { count: 3000, bytes: 512 });
  writeDockerfile(context, 1);
  writeDockerfile(secureContext, 1);
  const plain = await bench.putFarAway(await bench.startService(), roundTrip);
  const certificate = makeCertificate(bench.directory("far-certificate"));
  const secure = await bench.putFarAway(await bench.startService("--tls", certificate), roundTrip);
  const build = bench.build(secureContext, secure);
  const trusting = { ...build, env: { ...build.env, NODE_EXTRA_CA_CERTS: join(certificate, "cert.pem") } };
  let round = 0;
  const [one = 0, two = 0] = await alternate(
    bench.times,
    async () => {
      await plain.reset();
      return (await runFresh(bench.build(context, plain))).milliseconds;
    },
    async () => {
      await secure.reset();
      // A build without files, in which bough learns which protocol the service chooses.
      rmSync(join(secureContext, "files"), { recursive: true, force: true });
      await runFresh(trusting);
      writeManyFiles(secureContext, { count: 3000, bytes: 512, word: `round ${++round}`, below: "files" });
      return (await run(trusting)).milliseconds;
    },
  );
  return [row("3,000 small files, HTTP/1.1", one, 46), row("3,000 small files, HTTP/2", two, 20)];
}

/** Measures commands that take their time: bough adds to each what the line takes to tell of its end. */
export async function measureFarCommands(bench: Bench): Promise<Row[]> {
  const [count, seconds] = [20, 2];
  const near = await bench.startService("--seconds", String(seconds));
  const service = await bench.putFarAway(near, roundTrip);
  const context = bench.directory("far-commands");
  writeDockerfile(context, count, false);
  const { milliseconds } = await runFresh(bench.build(context, service));
  return [
    {
      case: `${count} RUN of ${seconds} s, a service ${roundTrip} ms away`,
      bough: `${(milliseconds / 1000).toFixed(1)} s`,
      against: `${count * seconds} s, the commands`,
      figure: milliseconds / (count * seconds * 1000),
      unit: "times",
      // Each command starts half a round trip after the end of the one before was told, which took another half: 1.05.
      goal: { atMost: 1.07 },
    },
  ];
}

/** Measures whether a large file uses the line's bandwidth. */
export async function measureFarLargeFile(bench: Bench): Promise<Row[]> {
  const [bytes, megabits] = [100e6, 100];
  const service = await bench.putFarAway(await bench.startService(), roundTrip, megabits);
  const context = bench.directory("far-large");
  writeManyFiles(context, { count: 1, bytes });
  writeDockerfile(context, 1);
  const { milliseconds } = await runFresh(bench.build(context, service));
  const line = (bytes * 8) / (megabits * 1e6);
  return [
    {
      case: `100 MB in one file, a line of ${megabits} Mbit/s, ${roundTrip} ms away`,
      bough: `${(milliseconds / 1000).toFixed(1)} s`,
      against: `${line} s, the line`,
      figure: milliseconds / 1000 / line,
      unit: "times",
      goal: { atMost: 1.1 },
    },
  ];
}

function row(name: string, milliseconds: number, atMost: number): Row {
  return {
    case: `${name}, a service ${roundTrip} ms away`,
    bough: `${(milliseconds / 1000).toFixed(1)} s`,
    against: "",
    figure: milliseconds / roundTrip,
    unit: "round trips",
    goal: { atMost },
  };
}

function makeCertificate(directory: string): string {
  const words = [
    "openssl",
    "req",
    "-x509",
    "-newkey",
    "rsa:2048",
    "-nodes",
    "-days",
    "2",
    "-subj",
    "/CN=127.0.0.1",
  ];
  const files = ["-keyout", join(directory, "key.pem"), "-out", join(directory, "cert.pem")];
  const made = Bun.spawnSync([...words, "-addext", "subjectAltName=IP:127.0.0.1", ...files]);
  if (!made.success) throw new Error(`openssl: ${made.stderr}`);
  return directory;
}
