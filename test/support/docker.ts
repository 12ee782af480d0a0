/**
 * Docker with a separate daemon, with which tests compare trees, configurations and errors. Debian's docker.io includes
 * BuildKit. All of its files are below one directory, which is removed at the end.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { HistoryLine } from "../../src/image/history.ts";
import { readTree, type Tree } from "../differential/tree.ts";

export interface Docker {
  /** Imports `source`, a name for skopeo such as `oci:/layout:tag`, as `name`, as FROM would use it. */
  importBase(source: string, name: string): Promise<void>;
  /** Loads an archive as `docker load` does. */
  load(archive: string): Promise<void>;
  /** Returns the image's id; rejects with Docker's whole output. */
  build(request: DockerBuild): Promise<string>;
  /** The files of the resulting image, without storing it, which takes a fraction of the time. */
  buildTree(request: DockerBuild): Promise<Tree>;
  readImage(image: string): Promise<Tree>;
  /** Pushes a tag to the registry that its name contains. */
  push(tag: string): Promise<void>;
  /** The output of a command in an image; without a command, of the image's own. */
  run(image: string, ...command: string[]): Promise<string>;
  /** docker's command line, and the variables by which it finds the daemon. */
  command: readonly string[];
  environment: Readonly<Record<string, string>>;
  /** Runs docker with these words. */
  client(words: readonly string[]): Promise<Ended>;
  /** The properties of an image, as `docker image inspect` shows them. */
  inspect(image: string): Promise<Inspected>;
  /** The history, the oldest line first. A layer without any change, which Docker keeps, counts as none. */
  history(image: string): Promise<HistoryLine[]>;
  /** Ends the daemon, and containerd with it, unmounts, and removes the directory. */
  close(): Promise<void>;
}

/** How a command has ended. */
export interface Ended {
  exitCode: number;
  stdout: string;
  stderr: string;
}

export interface DockerBuild {
  context: string;
  dockerfile: string;
  target?: string | undefined;
  buildArgs?: Readonly<Record<string, string>>;
  options?: readonly string[];
}

export interface DockerConfig {
  User: string;
  Env: string[] | null;
  Cmd: string[] | null;
  Entrypoint: string[] | null;
  WorkingDir: string;
  Labels: Record<string, string> | null;
  ExposedPorts?: Record<string, unknown>;
  Volumes: Record<string, unknown> | null;
  OnBuild: string[] | null;
  StopSignal?: string;
  Shell?: string[];
}

interface Inspected {
  Author: string;
  Config: DockerConfig;
  RootFS: { Layers?: string[] };
}

interface SavedConfig {
  history?: HistoryLine[];
  rootfs: { diff_ids?: string[] };
}

/** The digest of an empty archive. */
const emptyLayer = "sha256:5f70bf18a086007016e948b04aed3b82103a36bea41755b6cddfaf10ace3c6ef";

/** Commands that print the versions of the programs on which a build by Docker depends. */
export const dockerVersions = ["dockerd", "containerd", "runc", findClient()].map((program) => [
  program,
  "--version",
]);

/** Starts a daemon in `directory`, which it makes. Needs root. */
export async function startDocker(directory: string): Promise<Docker> {
  mkdirSync(directory, { recursive: true });
  const socket = join(directory, "socket");
  const daemon = await startDaemon(directory, socket);
  const environment = {
    PATH: process.env.PATH ?? "",
    HOME: directory,
    DOCKER_CONFIG: directory,
    DOCKER_HOST: `unix://${socket}`,
    DOCKER_BUILDKIT: "1",
  };
  let builds = 0;
  return {
    command: [findClient()],
    environment,

    async importBase(source, name) {
      const to = ["--dest-daemon-host", environment.DOCKER_HOST, source, `docker-daemon:${name}`];
      await run(["skopeo", "copy", "--quiet", ...to], environment);
    },

    async load(archive) {
      await run([findClient(), "load", "--input", archive], environment);
    },

    async build(request) {
      const idFile = join(directory, `image-${builds++}`);
      await run([findClient(), ...buildWords(request, `--iidfile=${idFile}`)], environment);
      return readFileSync(idFile, "utf8").trim();
    },

    async buildTree(request) {
      const archive = join(directory, `tree-${builds++}.tar`);
      await run([findClient(), ...buildWords(request, `--output=type=tar,dest=${archive}`)], environment);
      try {
        return await readTree(Bun.file(archive).stream());
      } finally {
        rmSync(archive);
      }
    },

    async readImage(image) {
      // The container is never started, but an image without a command needs one.
      const made = await call(socket, "POST", "/containers/create", { Image: image, Cmd: ["/none"] });
      const { Id: container } = (await made.json()) as { Id: string };
      const { body } = await call(socket, "GET", `/containers/${container}/export`);
      if (body === null) throw new Error(`docker export of ${image} is empty`);
      const tree = await readTree(body);
      await call(socket, "DELETE", `/containers/${container}`);
      return tree;
    },

    async push(tag) {
      await run([findClient(), "push", "--quiet", tag], environment);
    },

    run: (image, ...command) =>
      run([findClient(), "run", "--rm", "--network=none", image, ...command], environment),

    client: (words) => runToEnd([findClient(), ...words], environment),

    async inspect(image) {
      const answer = await call(socket, "GET", `/images/${image}/json`);
      return (await answer.json()) as Inspected;
    },

    async history(image) {
      // Docker saves no image without layers.
      const shown = await call(socket, "GET", `/images/${image}/json`);
      if (((await shown.json()) as Inspected).RootFS.Layers === undefined) return [];
      const answer = await call(socket, "GET", `/images/${image}/get`);
      const files = await new Bun.Archive(await answer.bytes()).files();
      const read = async (name: string) => JSON.parse((await files.get(name)?.text()) ?? "null");
      const [{ Config }] = (await read("manifest.json")) as [{ Config: string }];
      const { history, rootfs } = (await read(Config)) as SavedConfig;
      const layers = (rootfs.diff_ids ?? []).values();
      const hasLayer = ({ empty_layer }: HistoryLine) =>
        empty_layer !== true && layers.next().value !== emptyLayer;
      return (history ?? []).map((line) => ({ ...line, empty_layer: !hasLayer(line) }));
    },

    async close() {
      await daemon.stop();
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

function buildWords(request: DockerBuild, output: string): string[] {
  const { context, dockerfile, target, buildArgs = {}, options = [] } = request;
  return [
    ...["build", "--network=host", "--progress=plain", output, `--file=${dockerfile}`],
    ...(target === undefined ? [] : [`--target=${target}`]),
    ...options,
    ...Object.entries(buildArgs).map(([name, value]) => `--build-arg=${name}=${value}`),
    context,
  ];
}

/** Debian's client, if it exists. Another one in PATH may lack the plugin that BuildKit needs. */
export function findClient(): string {
  return existsSync("/usr/bin/docker") ? "/usr/bin/docker" : "docker";
}

/** In the order of preference. overlay2 does not work if the directory is on an overlay itself; vfs makes full copies. */
const storageDrivers = ["overlay2", "vfs"];

interface Daemon {
  stop(): Promise<void>;
}

async function startDaemon(directory: string, socket: string): Promise<Daemon> {
  const said: string[] = [];
  for (const driver of storageDrivers) {
    const daemon = spawnDaemon(directory, socket, driver);
    if (await answers(socket, daemon.process)) return daemon;
    await daemon.stop();
    said.push(readFileSync(daemon.log, "utf8").slice(-2000));
  }
  throw new Error(`dockerd does not start:\n${said.join("\n")}`);
}

function spawnDaemon(directory: string, socket: string, driver: string) {
  const log = join(directory, `${driver}.log`);
  const executionRoot = join(directory, "run");
  const words = [
    "--iptables=false",
    "--ip6tables=false",
    "--bridge=none",
    `--storage-driver=${driver}`,
    `--data-root=${join(directory, "data")}`,
    `--exec-root=${executionRoot}`,
    `--host=unix://${socket}`,
    `--pidfile=${join(directory, "pid")}`,
  ];
  // It ends with the tests, even if they are killed.
  const daemon = Bun.spawn(["setpriv", "--pdeathsig", "TERM", "dockerd", ...words], {
    env: { PATH: `${process.env.PATH}:/usr/sbin:/sbin`, HOME: directory, TMPDIR: directory },
    stdin: "ignore",
    stdout: Bun.file(log),
    stderr: Bun.file(log),
  });
  return {
    log,
    process: daemon,
    async stop() {
      daemon.kill("SIGTERM");
      if (!(await endsWithin(30, daemon))) {
        daemon.kill("SIGKILL");
        await daemon.exited;
      }
      endContainerd(executionRoot);
      unmountBelow(directory);
    },
  };
}

async function endsWithin(seconds: number, child: Bun.Subprocess): Promise<boolean> {
  return Promise.race([child.exited.then(() => true), Bun.sleep(seconds * 1000).then(() => false)]);
}

/** Kills the containerd of a dockerd that was killed; otherwise dockerd has ended it. */
function endContainerd(executionRoot: string): void {
  for (const entry of readdirSync("/proc")) {
    if (!/^\d+$/.test(entry)) continue;
    try {
      const words = readFileSync(`/proc/${entry}/cmdline`, "utf8").split("\0");
      if (words.some((word) => word.startsWith(`${executionRoot}/containerd/`)))
        process.kill(Number(entry), "SIGKILL");
    } catch {
      // The process has ended meanwhile.
    }
  }
}

/** Unmounts everything below a directory, the innermost first. */
function unmountBelow(directory: string): void {
  const points = readFileSync("/proc/self/mountinfo", "utf8")
    .split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .filter((point) => point.startsWith(`${directory}/`));
  for (const point of points.reverse()) Bun.spawnSync(["umount", "--lazy", point]);
}

async function answers(socket: string, daemon: Bun.Subprocess): Promise<boolean> {
  for (let attempt = 0; attempt < 600 && daemon.exitCode === null && daemon.signalCode === null; attempt++) {
    const isReady = await fetch("http://docker/_ping", { unix: socket }).then(
      (answer) => answer.ok,
      () => false,
    );
    if (isReady) return true;
    await Bun.sleep(50);
  }
  return false;
}

async function call(socket: string, method: string, path: string, body?: unknown): Promise<Response> {
  const answer = await fetch(`http://docker${path}`, {
    unix: socket,
    method,
    ...(body === undefined
      ? {}
      : { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }),
  });
  if (!answer.ok) throw new Error(`docker: ${method} ${path}: ${answer.status} ${await answer.text()}`);
  return answer;
}

async function run(command: readonly string[], env: Record<string, string>): Promise<string> {
  const { exitCode, stdout, stderr } = await runToEnd(command, env);
  if (exitCode !== 0) throw new Error(`${command.join(" ")}\n${stdout}${stderr}`);
  return stdout;
}

async function runToEnd(command: readonly string[], env: Record<string, string>): Promise<Ended> {
  const child = Bun.spawn([...command], { env, stdin: "ignore", stdout: "pipe", stderr: "pipe" });
  const [stdout, stderr] = await Promise.all([
    new Response(child.stdout).text(),
    new Response(child.stderr).text(),
  ]);
  return { exitCode: await child.exited, stdout, stderr };
}
