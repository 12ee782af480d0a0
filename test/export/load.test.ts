/** `--load`: an image goes to docker's daemon, without the layers that it has, or stays in bough's store if there is none. */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type Docker, startDocker } from "../support/docker.ts";
import { writeFiles } from "../support/files.ts";

setDefaultTimeout(120_000);

let docker: Docker;
const directory = temporaryDirectory();
const context = temporaryDirectory();
const socket = `unix://${join(directory, "socket")}`;
const environment = { BOUGH_HOME: temporaryDirectory(), DOCKER_CONFIG: temporaryDirectory() };

async function bough(words: readonly string[], others: Record<string, string> = {}) {
  return runBough(["--local", ...words], {
    workingDirectory: context,
    environment: { ...environment, DOCKER_HOST: socket, ...others },
  });
}

const build = (...words: string[]) => bough(["build", "--docker", ...words]);

beforeAll(async () => {
  docker = await startDocker(directory);
  const layout = await makeBusyboxLayout(temporaryDirectory());
  await bough(["images", "import", layout, "--tag", "base:1"]);
  writeFiles(context, {
    Dockerfile: 'FROM base:1\nRUN echo made > /made\nCOPY n /n\nCMD ["cat", "/made"]\n',
    n: "1",
    "docker-bake.json": JSON.stringify({
      group: { default: { targets: ["one", "two"] } },
      target: { one: { tags: ["one:1"] }, two: { tags: ["two:1"], args: { A: "1" } } },
    }),
  });
});
afterAll(() => docker.close());

describe("a daemon that runs", () => {
  test("gets the image under its names, and runs it; --iidfile has docker's id", async () => {
    const built = await build("--load", "--tag", "app:1", "--tag", "app:two", "--iidfile", "id");
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("loaded into docker-daemon:app:1");
    expect(await docker.run("app:1")).toBe("made\n");
    const id = await Bun.file(join(context, "id")).text();
    const listed = await docker.client([
      "images",
      "--no-trunc",
      "--format",
      "{{.Repository}}:{{.Tag}} {{.ID}}",
    ]);
    const lines = listed.stdout.trim().split("\n");
    expect(lines.filter((line) => line.startsWith("app")).sort()).toEqual([`app:1 ${id}`, `app:two ${id}`]);
  });

  test("does not get the layers again that it has", async () => {
    writeFiles(context, { n: "2" });
    const built = await build("--load", "--tag", "app:1");
    expect(built.stderr).toContain("already with docker: 2 of 3 layers");
    expect((await docker.run("app:1", "cat", "/n")).trim()).toBe("2");
    // Removed in the meantime.
    await docker.client(["rmi", "--force", "app:1", "app:two"]);
    await docker.client(["image", "prune", "--force"]);
    const again = await build("--load", "--tag", "app:1");
    expect(again.stderr).not.toContain("already with docker");
    expect(await docker.run("app:1")).toBe("made\n");
  });

  test("-o type=docker without a place, and bake, load as well", async () => {
    expect((await build("-o", "type=docker", "--tag", "typed:1")).exitCode).toBe(0);
    expect((await bough(["bake", "--load"])).exitCode).toBe(0);
    const { stdout } = await docker.client(["images", "--format", "{{.Repository}}"]);
    expect(stdout.split("\n")).toEqual(expect.arrayContaining(["typed", "one", "two"]));
  });

  test("does not get the layers twice that images have in common", async () => {
    writeFiles(context, {
      "shared/Dockerfile":
        "FROM base:1 AS shared\nRUN echo common > /common\nFROM shared AS left\nRUN echo left > /own\nFROM shared AS right\nRUN echo right > /own\n",
      "shared/docker-bake.json": JSON.stringify({
        group: { default: { targets: ["left", "right"] } },
        target: {
          left: { context: "shared", target: "left", tags: ["left:1"] },
          right: { context: "shared", target: "right", tags: ["right:1"] },
        },
      }),
    });
    const baked = await bough(["bake", "--load", "-f", "shared/docker-bake.json"]);
    expect(baked.stderr).toContain("already with docker: 2 of 3 layers");
    expect(await docker.run("left:1", "cat", "/common", "/own")).toBe("common\nleft\n");
    expect(await docker.run("right:1", "cat", "/common", "/own")).toBe("common\nright\n");
  });

  test("has bases that nobody else has: FROM takes them from there, and stores them", async () => {
    const made = await docker.client(["create", "app:1"]);
    await docker.client(["commit", made.stdout.trim(), "only-docker/base:1"]);
    const directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: "FROM only-docker/base:1\nRUN cat /made > /again\n" });
    const built = await build("--load", "--tag", "over:1", directory);
    expect(built.stderr).toContain("importing only-docker/base:1 from docker-archive:");
    expect(built.exitCode).toBe(0);
    expect(await docker.run("over:1", "cat", "/again")).toBe("made\n");
    // Without a daemon the base is here now.
    expect((await build("--no-cache", directory)).exitCode).toBe(0);
  });

  test("keeps no images of several platforms in its own store: refused before the build", async () => {
    const both = await build("--load", "--platform", "linux/amd64,linux/arm64");
    expect(both.exitCode).toBe(2);
    expect(both.stderr).toContain("cannot keep images of several platforms");
    const attested = await build("--load", "--provenance");
    expect(attested.exitCode).toBe(2);
    expect(attested.stderr).toContain("cannot keep provenance and packages");
    // As docker/build-push-action asks for it: where there is a place for it.
    expect((await build("--load", "--attest", "type=provenance,mode=min,inline-only=true")).exitCode).toBe(0);
    expect(
      (await build("-o", "type=cacheonly", "--attest", "type=provenance,inline-only=true")).exitCode,
    ).toBe(0);
  });
});

describe("without a daemon", () => {
  test("nobody at the usual place: the image stays in bough's store", async () => {
    const usual = "unix:///var/run/docker.sock";
    const built = await bough(["build", "--docker", "--load", "--tag", "kept:1"], {
      // As `docker compose` says it. The suite's machine has no daemon there.
      DOCKER_HOST: usual,
    });
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("`bough run kept:1` runs it");
    expect((await bough(["inspect", "kept:1"])).exitCode).toBe(0);
  });

  test.each([
    [{ DOCKER_HOST: "unix:///nowhere/docker.sock" }, 1, "no docker daemon answers at unix:///nowhere"],
    [{ DOCKER_HOST: "tcp://127.0.0.1:1" }, 1, "no docker daemon answers at tcp://127.0.0.1:1"],
    [{ DOCKER_HOST: "tcp://127.0.0.1/x" }, 1, "no docker daemon answers at tcp://127.0.0.1:2375/x"],
    [{ DOCKER_HOST: "ssh://host" }, 2, "docker -H ssh://host load"],
    [{ DOCKER_HOST: "", DOCKER_CONTEXT: "none" }, 2, 'docker has no context "none"'],
  ])("one that is named must answer: %p", async (named, exitCode, message) => {
    const built = await bough(["build", "--docker", "--load"], named as unknown as Record<string, string>);
    expect(built.exitCode).toBe(exitCode);
    expect(built.stderr).toContain(message);
  });
});

describe("the context of docker's configuration", () => {
  test("says where the daemon is", async () => {
    const key = new Bun.CryptoHasher("sha256").update("remote").digest("hex");
    writeFiles(environment.DOCKER_CONFIG, {
      "config.json": '{"currentContext": "remote"}',
      [`contexts/meta/${key}/meta.json`]: JSON.stringify({
        Name: "remote",
        Endpoints: { docker: { Host: socket } },
      }),
    });
    const built = await bough(["build", "--docker", "--load", "--tag", "context:1"], { DOCKER_HOST: "" });
    expect(built.stderr).toContain("loaded into docker-daemon:context:1");
    expect(await docker.run("context:1")).toBe("made\n");
  });
});

const daemon =
  (load: () => Response, driver: [string, string][] = []) =>
  (path: string) => {
    if (path === "/info") return Response.json({ ID: "x", DriverStatus: driver });
    return path === "/images/load" ? load() : Response.json([]);
  };
const containerd: [string, string][] = [["driver-type", "io.containerd.snapshotter.v1"]];

/** Servers that are no docker, or fail in the middle. */
describe.each([
  ["is no docker", () => Response.json({ error: "x" }, { status: 404 }), "answered 404", "names that daemon"],
  ["answers with something else", () => new Response("hello"), "no docker daemon", "names that daemon"],
  [
    "has no room left",
    daemon(
      () =>
        new Response('{"stream":"x"}\n{"errorDetail":{"message":"no space left"},"error":"no space left"}\n'),
    ),
    "docker: no space left",
    "The image is in bough's store",
  ],
  [
    "says so as it answers",
    daemon(() => Response.json({ message: "write /x: no space left on device" }, { status: 500 })),
    "docker: write /x: no space left on device",
    "The image is in bough's store",
  ],
  [
    "gives only the details of its error",
    daemon(() => new Response('{"errorDetail":{"message":"no such layer"}}')),
    "docker: no such layer",
    "The image is in bough's store",
  ],
  [
    "keeps an image that it cannot unpack",
    daemon(
      () =>
        new Response(
          '{"stream":"Loaded image: lost:1\\n"}\n{"stream":"Error unpacking image lost:1: no space left\\n"}\n',
        ),
      containerd,
    ),
    "docker: Error unpacking image lost:1: no space left",
    "The image is in bough's store",
  ],
  [
    "is gone when the image is built",
    (path: string) =>
      path === "/info" ? Response.json({ ID: "x", DriverStatus: [] }) : new Response("not JSON"),
    "the docker daemon at tcp://",
    "The image is in bough's store",
  ],
  [
    "ends in the middle",
    daemon(
      () =>
        new Response(
          new ReadableStream({
            pull(controller) {
              controller.enqueue('{"stream":"x"}\n');
              controller.error(new Error("killed"));
            },
          }),
        ),
    ),
    "has failed: the connection was closed",
    "The image is in bough's store",
  ],
])("a server that %s", (_, answer, message, hint) => {
  test("is an error, and the image is in bough's store", async () => {
    const server = Bun.serve({
      port: 0,
      hostname: "127.0.0.1",
      fetch: ({ url }) => answer(new URL(url).pathname),
      error: () => new Response(),
    });
    try {
      const built = await bough(["build", "--docker", "--load", "--tag", "lost:1"], {
        // As docker's command line takes it.
        DOCKER_HOST: ` 127.0.0.1:${server.port}`,
      });
      expect(built.exitCode).toBe(1);
      expect(built.stderr).toContain(message);
      expect(built.stderr).toContain(hint);
      // The disk of the daemon is not bough's.
      expect(built.stderr).not.toContain("There was no space left");
      expect(built.stderr).not.toContain("bug in bough");
    } finally {
      await server.stop(true);
    }
  });
});
