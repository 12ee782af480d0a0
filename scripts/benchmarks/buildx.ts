import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Bench } from "./bench.ts";
import { run, treeSeconds } from "./measure.ts";

/** A Docker with buildx, whose builds can use caches in registries. */
export interface Buildx {
  /** Returns the milliseconds of a build of a Dockerfile without a context. */
  build(dockerfile: string, ...options: string[]): Promise<number>;
  /** Returns the time of a bake of a file, and the processor time of the daemon and its children meanwhile. */
  bake(file: string, ...options: string[]): Promise<{ milliseconds: number; processorSeconds: number }>;
  /** Removes all images and caches. */
  empty(): Promise<void>;
}

/** Runs a program in another root directory, with its mounts in a namespace of its own and a directory of this machine at /mnt. */
const inRoot = `
root=$1 directory=$2; shift 2
mount --make-rprivate / && mount --bind "$root" "$root"
for each in proc sys dev; do mount --rbind "/$each" "$root/$each"; done
mount --bind "$directory" "$root/mnt"
exec chroot "$root" "$@"`;

/**
 * Starts the Docker of a root directory, with containerd's image store, which its caches in registries need. Returns `undefined`
 * if BENCH_DOCKER_ROOT names none. It ends with the benchmarks.
 */
export async function startBuildx(bench: Bench): Promise<Buildx | undefined> {
  const root = process.env.BENCH_DOCKER_ROOT;
  if (root === undefined) return undefined;
  const directory = bench.directory("buildx");
  const context = join(directory, "context");
  mkdirSync(context);
  const settings = { features: { "containerd-snapshotter": true } };
  writeFileSync(join(directory, "daemon.json"), JSON.stringify(settings));
  const words = (...command: string[]) => [
    ...["unshare", "--mount", "sh", "-c", inRoot, "sh", root, directory],
    ...[
      "env",
      "PATH=/usr/sbin:/usr/bin:/sbin:/bin",
      "HOME=/mnt",
      "DOCKER_HOST=unix:///mnt/socket",
      ...command,
    ],
  ];
  const docker = (...command: string[]) => run({ words: words("docker", ...command) });
  const places = ["--config-file=/mnt/daemon.json", "--data-root=/mnt/data", "--exec-root=/mnt/run"];
  const network = ["--iptables=false", "--ip6tables=false", "--bridge=none"];
  const log = Bun.file(join(directory, "log"));
  const daemon = Bun.spawn(
    words("dockerd", ...places, ...network, "--pidfile=/mnt/pid", "--host=unix:///mnt/socket"),
    // In a session of its own, as what is measured beside it.
    { stdin: "ignore", stdout: log, stderr: log, detached: true },
  );
  bench.atEnd(async () => {
    daemon.kill("SIGTERM");
    await daemon.exited;
  });
  for (let attempt = 0; !(await docker("version").catch(() => undefined)); attempt++) {
    if (daemon.exitCode !== null || attempt === 60)
      throw new Error(`dockerd does not start:\n${await log.text()}`);
    await Bun.sleep(1000);
  }
  return {
    async build(dockerfile, ...options) {
      writeFileSync(join(context, "Dockerfile"), dockerfile);
      return (await docker("buildx", "build", "--network=host", ...options, "/mnt/context")).milliseconds;
    },
    async bake(file, ...options) {
      writeFileSync(join(context, "docker-bake.json"), file);
      const before = treeSeconds(daemon.pid);
      const { milliseconds, processorSeconds } = await run({
        words: words("docker", "buildx", "bake", "--file=/mnt/context/docker-bake.json", ...options),
      });
      return { milliseconds, processorSeconds: processorSeconds + treeSeconds(daemon.pid) - before };
    },
    async empty() {
      await docker("image", "prune", "--all", "--force");
      await docker("buildx", "prune", "--all", "--force");
    },
  };
}
