/** Compares limits of `bough run` and `build` with those of `docker run`. Debian's Docker (20.10) has no such options for BuildKit. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { dockerVersions } from "../support/docker.ts";
import { writeFiles } from "../support/files.ts";
import { asItIs, digestOfImage, keepResults } from "../support/kept-results.ts";
import { makeBases } from "./bases.ts";
import { dockerOnDemand } from "./docker-on-demand.ts";

const directory = temporaryDirectory("bough-limits-");
const environment = { BOUGH_HOME: join(directory, "home") };
let bases: Record<string, string>;
const docker = dockerOnDemand(join(directory, "docker"), () => bases);
const kept = keepResults({ test: import.meta.path, versions: dockerVersions });

beforeAll(async () => {
  bases = await makeBases(directory);
  const { "busybox:1": source = "" } = bases;
  const imported = await bough(directory, "images", "import", source, "--tag", "busybox:1");
  expect(imported).toMatchObject({ exitCode: 0 });
}, 120_000);

afterAll(async () => {
  await docker.close();
  rmSync(directory, { recursive: true, force: true });
}, 180_000);

const bough = (workingDirectory: string, ...words: string[]) =>
  runBough(["--local", ...words], { workingDirectory, environment });

const shm = "df -k /dev/shm | awk 'END { print $2 }'; stat -c %a /dev/shm";

test.each<[string[], string]>([
  [[], shm],
  [["--shm-size=1g"], shm],
  [["--shm-size=3000000"], shm],
  [["--shm-size=0.5m"], shm],
  [["--ulimit=nofile=100:200", "--ulimit=core=0"], "ulimit -Sn; ulimit -Hn; ulimit -Sc; ulimit -Hc"],
  [["--ulimit=nofile=300", "--ulimit=nofile=400"], "ulimit -Sn; ulimit -Hn"],
  [["--ulimit=stack=1000000:-1", "--ulimit=cpu=-1"], "ulimit -Ss; ulimit -Hs; ulimit -St"],
  [["--ulimit=fsize=100000000", "--ulimit=memlock=65536"], "ulimit -Sf; ulimit -Hf; ulimit -Sl"],
])(
  "%j",
  async (options, look) => {
    const run = await bough(directory, "run", "-D", ...options, "busybox:1", "sh", "-c", look);
    expect(run).toMatchObject({ exitCode: 0, stderr: "" });
    const context = temporaryDirectory();
    writeFiles(context, { Dockerfile: `FROM busybox:1\nRUN (${look}) > /seen\n` });
    const build = await bough(context, "build", "-q", "--docker", ".", ...options);
    const built = await bough(directory, "cat", `${build.stdout.trim()}:/seen`);
    const words = ["busybox:1", "sh", "-c", look];
    const [first = "", ...rest] = [...options, ...words];
    const runDocker = async () => (await docker.get()).run(first, ...rest);
    await kept.check(
      { inputs: [options, look], bases: Object.values(bases).map(digestOfImage) },
      asItIs<string>(),
      runDocker,
      (output) => expect({ run: run.stdout, built: built.stdout }).toEqual({ run: output, built: output }),
    );
  },
  180_000,
);
