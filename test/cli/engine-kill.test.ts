/**
 * SIGKILL at random moments of repeated builds on the embedded engine. Everything that was reported as done is there
 * afterwards, nothing else is left behind, and a finished layer is never built again.
 */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";
import { lastingProcesses } from "../support/processes.ts";
import { runs, spreadRandom } from "../support/random.ts";

/** `KILLS` sets the number of kills, `KILL_SEED` their moments; `FAST_CHECK_TIMES` multiplies the default number. */
const kills = Number(process.env.KILLS ?? runs(8));

const slowly = (...words: string[]) => words.map((word) => `RUN sleep 0.02; echo ${word} $ROUND >> /log`);
const begin = ["ARG ROUND", "RUN echo one $ROUND > /log", "COPY data /data"];
const oneStage = [
  ...["FROM busybox:1", ...begin, ...slowly("two", "three", "four")],
  "RUN rm -rf /data && cat /log",
];
const severalStages = [
  ...["FROM busybox:1 AS one", ...begin, ...slowly("two")],
  ...["FROM busybox:1 AS other", "ARG ROUND", ...slowly("other")],
  // The first step is the same as that of the stage above, and is run once for both.
  ...["FROM busybox:1 AS same", "ARG ROUND", ...slowly("other", "more")],
  ...["FROM one", "COPY --from=other /log /copied/other", "COPY --from=same / /copied/same/"],
  "RUN cat /log /copied/other /copied/same/log && cmp /bin/busybox /copied/same/bin/busybox",
];

test.each<[string, string[], string[]]>([
  ["a build", oneStage, []],
  ["a build of several stages", severalStages, ["--docker", "--jobs", "3"]],
])(
  `${kills} kills of %s at random instants`,
  async (_, lines, options) => {
    const seed = Number(process.env.KILL_SEED ?? 1);
    const random = spreadRandom(seed);
    const home = temporaryDirectory();
    const context = temporaryDirectory();
    const environment = { BOUGH_HOME: home };
    const layout = await makeBusyboxLayout(temporaryDirectory());
    writeFiles(context, {
      Dockerfile: lines.join("\n"),
      "data/file": "x".repeat(1_000_000),
    });
    const bough = (...words: string[]) =>
      runBough(["--local", ...words], { workingDirectory: context, environment });
    expect((await bough("images", "import", layout, "--tag", "busybox:1")).exitCode).toBe(0);

    let round = 0;
    let killed = 0;
    const finished = new Set<string>();
    /** Milliseconds of the first build, which is not killed and has nothing cached. */
    let fullMilliseconds = 0;
    const tags: string[] = [];
    while (killed < kills) {
      const child = Bun.spawn(
        [
          ...[compileBough(), "--local", "build", ...options],
          ...["--build-arg", `ROUND=${round}`, "--tag", `app:${round}`],
        ],
        {
          cwd: context,
          env: { PATH: process.env.PATH ?? "", ...environment },
          stdout: "ignore",
          stderr: "pipe",
        },
      );
      const started = performance.now();
      const timer =
        fullMilliseconds === 0
          ? undefined
          : setTimeout(() => child.kill("SIGKILL"), random() * 1.2 * fullMilliseconds);
      const output = await new Response(child.stderr).text();
      await child.exited;
      clearTimeout(timer);
      const spawned = [...output.matchAll(/RUN spawned op=(\S+) (RUN .*)/g)].map(
        ([, operation = "", title = ""]) => ({ operation, title }),
      );
      const rebuilt = spawned.filter(({ title }) => finished.has(title));
      expect({ seed, killed, rebuilt }).toEqual({ seed, killed, rebuilt: [] });
      if (output.includes("[INFO] tagged ")) tags.push(`app:${round}`);
      if (child.signalCode === "SIGKILL") killed++;
      else {
        expect({ seed, killed, exitCode: child.exitCode, output }).toMatchObject({ exitCode: 0 });
        fullMilliseconds ||= performance.now() - started;
      }
      if (child.signalCode === "SIGKILL") {
        const layers = operationsOfLayers(home);
        for (const { operation, title } of spawned) if (layers.has(operation)) finished.add(title);
      } else {
        finished.clear();
        round++;
      }
    }

    process.stderr.write(`seed ${seed}: ${killed} kills, ${round} builds to their end\n`);
    const last = await bough("build", ...options, "--build-arg", `ROUND=${round}`, "--tag", "app:last");
    expect({ seed, exitCode: last.exitCode, stderr: last.stderr }).toMatchObject({ exitCode: 0 });
    const images: { tag: string | null }[] = JSON.parse((await bough("-f", "json", "images")).stdout);
    const remainingTags = new Set(images.map(({ tag }) => tag));
    expect(tags.filter((tag) => !remainingTags.has(tag))).toEqual([]);
    for (const database of ["sessions/embedded.db", "engine/engine.db"])
      expect(integrityOf(join(home, database))).toEqual(["ok"]);
    expect(await leftovers(home)).toEqual({ mounts: [], processes: [], containers: [] });
  },
  60_000 + kills * 2000,
);

/** Operations whose images are stored as layers: those that a build has reported as done, or could have. */
function operationsOfLayers(home: string): Set<string | null> {
  const store = openStore(join(home, "sessions", "embedded.db"), systemClock);
  try {
    const keys = store.sessions.list("build:").map(({ key }) => key);
    return new Set(
      keys.flatMap((key) => (store.sessions.history(key) ?? []).map(({ operation }) => operation)),
    );
  } finally {
    store.close();
  }
}

function integrityOf(path: string): unknown[] {
  const database = new Database(path);
  try {
    return database.query("PRAGMA integrity_check").values().flat();
  } finally {
    database.close();
  }
}

async function leftovers(home: string) {
  const mounts = readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.includes(home));
  return {
    mounts,
    processes: await lastingProcesses(home),
    containers: readdirSync(join(home, "engine", "containers")),
  };
}
