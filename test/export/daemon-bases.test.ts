/**
 * Names of images beside a docker daemon. In the place of docker's builder a name is the daemon's, else the registry's: what docker 28
 * builds of the same commands. For `bough build --load` it is bough's own, else the daemon's, else the registry's.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { type Docker, startDocker } from "../support/docker.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser } from "../support/ordinary-user.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(120_000);

const directory = temporaryDirectory();
const socket = `unix://${join(directory, "socket")}`;
const home = temporaryDirectory();
const program = compileBough();
const plugin = join(home, "docker-buildx");
symlinkSync(program, plugin);
let docker: Docker;
let registry: Registry;

beforeAll(async () => {
  [docker, registry] = await Promise.all([startDocker(directory), Registry.start()]);
  await docker.importBase(await makeBusyboxLayout(temporaryDirectory()), "busybox:1");
});
afterAll(async () => {
  await Promise.all([docker.close(), registry.stop()]);
});

interface Place {
  cwd: string;
  environment?: Record<string, string>;
}

async function run(words: readonly string[], { cwd, environment = {} }: Place) {
  return endOf(
    Bun.spawn([...words], {
      cwd,
      env: {
        ...{ PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state"), DOCKER_HOST: socket },
        // Stands for the internet, and refuses.
        ...{ HTTPS_PROXY: "http://127.0.0.1:1", BOUGH_RETRY: "0" },
        ...environment,
      },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    }),
  );
}

/** Makes an image with the file `/v`, as `docker commit` does. */
async function commit(text: string, name: string): Promise<void> {
  const words = ["create", "busybox:1", "true"];
  const container = (await docker.client(words)).stdout.trim();
  const file = join(temporaryDirectory(), "v");
  await Bun.write(file, text);
  await docker.client(["cp", file, `${container}:/v`]);
  await docker.client(["commit", container, name]);
  await docker.client(["rm", container]);
}

const remove = (name: string) => docker.client(["rmi", "--force", name]);

describe("in the place of docker's builder", () => {
  let number = 0;

  /** Each way has an image with `/w`, a copy of the named image's `/v`. */
  const ways: Readonly<Record<string, (name: string) => { dockerfile: string; words?: readonly string[] }>> =
    {
      FROM: (name) => ({ dockerfile: `FROM ${name}\nRUN cp /v /w\n` }),
      "COPY --from": (name) => ({ dockerfile: `FROM busybox:1\nCOPY --from=${name} /v /w\n` }),
      "RUN --mount": (name) => ({
        dockerfile: `FROM busybox:1\nRUN --mount=from=${name},target=/m cp /m/v /w\n`,
      }),
      "an ARG": (name) => ({ dockerfile: `ARG BASE=${name}\nFROM $BASE\nRUN cp /v /w\n` }),
      "--build-context": (name) => ({
        dockerfile: "FROM base\nRUN cp /v /w\n",
        words: ["--build-context", `base=docker-image://${name}`],
      }),
    };
  test.each(Object.keys(ways))("%s: the daemon's image of now, and none after docker rmi", async (way) => {
    const name = `${registry.host}/named-${number++}:x`;
    const cwd = temporaryDirectory();
    const { dockerfile, words = [] } = ways[way]?.(name) ?? { dockerfile: "" };
    writeFiles(cwd, { "app/Dockerfile": dockerfile });
    const build = (...more: string[]) => run([plugin, "build", ...words, ...more, "app"], { cwd });
    for (const text of ["v1", "v2"]) {
      await commit(text, name);
      expect(await build("-t", "made:1")).toMatchObject({ exitCode: 0 });
      expect(await docker.run("made:1", "cat", "/w")).toBe(text);
    }
    // Also if the image does not go there.
    await commit("v3", name);
    expect(await build("-o", "out")).toMatchObject({ exitCode: 0 });
    expect(await Bun.file(join(cwd, "out/w")).text()).toBe("v3");
    await remove(name);
    const removed = await build();
    expect(removed.exitCode).toBe(1);
    expect(removed.stderr).toContain(`${name}: failed to resolve source metadata for ${name}: not found`);
  });

  test("bake and compose files, and --platform", async () => {
    const cwd = temporaryDirectory();
    const name = `${registry.host}/baked:x`;
    writeFiles(cwd, {
      "app/Dockerfile": `FROM ${name}\nRUN cp /v /w\n`,
      "bake.json": JSON.stringify({
        target: {
          default: { context: "app", tags: ["baked:1"] },
          ways: {
            context: "app",
            contexts: { [name]: "docker-image://busybox:1" },
            tags: ["ways:1"],
            args: {},
          },
        },
      }),
      "compose.yaml": "services:\n  one: {build: app, image: 'composed:1'}\n",
    });
    const machine = `linux/${process.arch === "x64" ? "amd64" : "arm64"}`;
    const lines = [
      ["baked:1", "bake", "-f", "bake.json"],
      ["composed:1", "bake", "-f", "compose.yaml", "one"],
      ["platform:1", "build", "--platform", machine, "-t", "platform:1", "app"],
    ];
    for (const text of ["v1", "v2"]) {
      await commit(text, name);
      for (const [tag = "", ...words] of lines) {
        expect(await run([plugin, ...words], { cwd })).toMatchObject({ exitCode: 0 });
        expect(await docker.run(tag, "cat", "/w")).toBe(text);
      }
    }
    await remove(name);
    for (const [, ...words] of lines) expect((await run([plugin, ...words], { cwd })).exitCode).toBe(1);
    // The daemon has it for this machine only: its registry is asked.
    await commit("v4", name);
    const other = `linux/${process.arch === "x64" ? "arm64" : "amd64"}`;
    const foreign = await run([plugin, "build", "--platform", other, "app"], { cwd });
    expect(foreign).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("not found") });
  });

  test("what the daemon lacks is what its registry has now; --pull takes that in any case", async () => {
    const cwd = temporaryDirectory();
    const own = await Registry.start();
    const name = `${own.host}/base:1`;
    writeFiles(cwd, { "app/Dockerfile": `FROM ${name}\nRUN cp /v /w\n` });
    const build = async (...words: string[]) => {
      const built = await run([plugin, "build", "-t", "made:2", ...words, "app"], { cwd });
      return built.exitCode === 0 ? await docker.run("made:2", "cat", "/w") : built.stderr;
    };
    try {
      await commit("r1", name);
      await docker.push(name);
      await commit("r2", name);
      expect(await build()).toBe("r2");
      expect(await build("--pull")).toBe("r1");
      expect(await build()).toBe("r2");
      await remove(name);
      expect(await build()).toBe("r1");
      await commit("r3", name);
      await docker.push(name);
      await remove(name);
      expect(await build()).toBe("r3");
    } finally {
      await own.stop();
    }
    // bough has that image from the registry, but nobody knows what it would be now.
    expect(await build()).toContain(`ERROR: app/Dockerfile:1: ${name}: failed to resolve source metadata`);
    await commit("r4", name);
    expect(await build()).toBe("r4");
    expect(await build("--pull")).toContain("connection refused");
  });

  test("an image of bough's own store is none of docker's: the error says how docker gets it", async () => {
    const cwd = temporaryDirectory();
    const name = `${registry.host}/own:1`;
    writeFiles(cwd, { "app/Dockerfile": "FROM scratch\nCOPY v /v\n", "app/v": "own" });
    writeFiles(cwd, { "over/Dockerfile": `FROM ${name}\nCOPY --from=busybox:1 /bin/busybox /b\n` });
    expect(await run([program, "build", "--docker", "--tag", name, "app"], { cwd })).toMatchObject({
      exitCode: 0,
    });
    const refused = await run([plugin, "build", "over"], { cwd });
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain(
      `\`bough images export ${name} docker-archive:- | docker load\` gives it`,
    );
    // The same command without a daemon: bough's store is the only one.
    const alone = { cwd, environment: { DOCKER_HOST: "unix:///var/run/docker.sock" } };
    expect(await run([plugin, "build", "over"], alone)).toMatchObject({ exitCode: 1 });
    writeFiles(cwd, { "over/Dockerfile": `FROM ${name}\nCOPY v /w\n`, "over/v": "v" });
    expect(await run([plugin, "build", "over"], alone)).toMatchObject({ exitCode: 0 });
  });

  test("an image that bough has given to the daemon is not fetched from there; a digest names it", async () => {
    const cwd = temporaryDirectory();
    const name = `${registry.host}/given:1`;
    writeFiles(cwd, {
      "app/Dockerfile": "FROM busybox:1\nRUN echo given > /v\n",
      "over/Dockerfile": `FROM ${name}\nRUN cp /v /w\n`,
    });
    expect(await run([plugin, "build", "-t", name, "app"], { cwd })).toMatchObject({ exitCode: 0 });
    const over = await run([plugin, "build", "-t", "over:1", "over"], { cwd });
    expect(over).toMatchObject({ exitCode: 0, stderr: expect.not.stringContaining("importing") });
    await docker.push(name);
    const digests = ["image", "inspect", "--format", "{{index .RepoDigests 0}}", name];
    const digest = (await docker.client(digests)).stdout.trim();
    writeFiles(cwd, { "digest/Dockerfile": `FROM ${digest}\nRUN cat /v\n` });
    const environment = { BOUGH_HOME: temporaryDirectory() };
    const pinned = await run([plugin, "build", "digest"], { cwd, environment });
    expect(pinned).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("from docker-archive:") });
  });

  test("the beginning of an image's id is no name, as for docker's builder", async () => {
    const cwd = temporaryDirectory();
    const listed = ["image", "inspect", "--format", "{{.Id}}", "busybox:1"];
    const id = (await docker.client(listed)).stdout.trim().replace("sha256:", "");
    for (const name of [id.slice(0, 12), id]) {
      writeFiles(cwd, { Dockerfile: `FROM ${name}\nCOPY Dockerfile /d\n` });
      const { exitCode, stderr } = await run([plugin, "build", "."], { cwd });
      expect(exitCode).toBe(1);
      expect(stderr).toContain(`failed to resolve source metadata for docker.io/library/${name}:latest`);
    }
  });

  test("a daemon that does not answer is said where the build can do without it", async () => {
    const cwd = temporaryDirectory();
    writeFiles(cwd, { Dockerfile: "FROM scratch\nCOPY Dockerfile /d\n" });
    const gone = { cwd, environment: { DOCKER_HOST: "unix:///nowhere/docker.sock" } };
    const local = await run([plugin, "build", "-o", "out", "."], gone);
    expect(local).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining("no docker daemon answers at"),
    });
    expect(await run([plugin, "build", "."], gone)).toMatchObject({ exitCode: 1 });
  });

  test("a user who may use the daemon builds on its images", async () => {
    const user = makeOrdinaryUser();
    try {
      const name = `${registry.host}/user:1`;
      await commit("user", name);
      writeFiles(directory, { "user/Dockerfile": `FROM ${name}\nRUN cp /v /w\n` });
      const cwd = user.give(join(directory, "user"), "user");
      symlinkSync(user.giveBough(), join(user.home, "docker-buildx"));
      for (const path of [directory, join(directory, "..")]) chmodSync(path, 0o755);
      chmodSync(join(directory, "socket"), 0o666);
      const words = [...user.prefix, join(user.home, "docker-buildx"), "build", "-t", "users:1", cwd];
      const environment = { HOME: user.home, BOUGH_HOME: join(user.home, "state") };
      expect(await run(words, { cwd, environment })).toMatchObject({ exitCode: 0 });
      expect(await docker.run("users:1", "cat", "/w")).toBe("user");
    } finally {
      user.remove();
    }
  });
});

describe("bough build --load", () => {
  test("takes what bough took from the daemon as the daemon has it now", async () => {
    const cwd = temporaryDirectory();
    const name = `${registry.host}/taken:1`;
    writeFiles(cwd, { "app/Dockerfile": `FROM ${name}\nRUN cp /v /w\n` });
    const words = [program, "build", "--docker", "--load", "--tag", "loaded:1", "app"];
    for (const text of ["v1", "v2"]) {
      await commit(text, name);
      expect(await run(words, { cwd })).toMatchObject({ exitCode: 0 });
      expect(await docker.run("loaded:1", "cat", "/w")).toBe(text);
    }
    // bough's own store has it now.
    await remove(name);
    expect(await run(words, { cwd })).toMatchObject({ exitCode: 0 });
  });
});

const build = ["build", "--pull", "app"];

test.each([
  ["no registry answers", [plugin, ...build], undefined],
  ["no registry answers: bake", [plugin, "bake", "--pull", "-f", "bake.json"], undefined],
  ["no registry answers: bough build --load", [program, ...build, "--docker", "--load"], undefined],
  ["the registry refuses the user", [plugin, ...build], 401],
  ["the registry has no such image", [plugin, ...build], 404],
  ["the registry has counted too many pulls", [plugin, ...build], 429],
  ["the registry fails", [plugin, ...build], 500],
] as const)("--pull fails, though the daemon has the image: %s", async (_, words, status) => {
  const server =
    status && Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response("", { status }) });
  const host = `127.0.0.1:${server?.port ?? 1}`;
  const cwd = temporaryDirectory();
  writeFiles(cwd, {
    "app/Dockerfile": `FROM ${host}/base:1\nLABEL a=1\n`,
    "bake.json": JSON.stringify({ target: { default: { context: "app" } } }),
  });
  try {
    await docker.client(["tag", "busybox:1", `${host}/base:1`]);
    const { exitCode, stderr } = await run(words, { cwd });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`${host}/base:1`);
    const unpulled = words.filter((word) => word !== "--pull");
    expect((await run(unpulled, { cwd })).exitCode).toBe(0);
  } finally {
    await server?.stop(true);
  }
});

/** Its names mean an image for each platform. Docker 28 does not ask the registry for one that it lacks. */
test("a store of containerd's with an image for another platform only: an error that says how docker gets it", async () => {
  const cwd = temporaryDirectory();
  const server = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch({ url }) {
      const { pathname, searchParams } = new URL(url);
      if (pathname === "/info")
        return Response.json({ ID: "x", DriverStatus: [["driver-type", "io.containerd.snapshotter.v1"]] });
      const isAsked = pathname.endsWith("/json") && !searchParams.has("platform");
      return isAsked
        ? Response.json({ Id: `sha256:${"0".repeat(64)}`, Os: "linux", Architecture: "s390x" })
        : Response.json({ message: "found, but not for the platform" }, { status: 404 });
    },
  });
  writeFiles(cwd, { Dockerfile: "FROM only/s390x:1\nLABEL a=1\n" });
  try {
    const environment = { DOCKER_HOST: `tcp://127.0.0.1:${server.port}` };
    const { exitCode, stderr } = await run([plugin, "build", "--platform", "linux/amd64", "."], {
      cwd,
      environment,
    });
    expect(exitCode).toBe(1);
    expect(stderr).toContain("docker has docker.io/only/s390x:1 for linux/s390x, not for linux/amd64");
    expect(stderr).toContain("`docker pull --platform linux/amd64 docker.io/only/s390x:1` gets it");
  } finally {
    await server.stop(true);
  }
});
