import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { systemClock } from "../../src/clock.ts";
import type { ImportRequest } from "../../src/service/wire/image.ts";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { openAnsweringEngine, TestEngine } from "../support/engine.ts";
import { commandLines } from "../support/processes.ts";
import { Registry } from "../support/registry.ts";

const credentials = { username: "ann", password: "p:a ss\"'wörd" };
const machine = process.arch === "arm64" ? "arm64" : "amd64";
const other = machine === "amd64" ? "arm64" : "amd64";

let engine: TestEngine;
let open: Registry;
let closed: Registry;
let layout: string;
let digest: string;

beforeAll(async () => {
  [engine, open, closed] = await Promise.all([
    TestEngine.open(),
    Registry.start(),
    Registry.start(credentials),
  ]);
  layout = await makeBusyboxLayout(join(engine.directory, "layout"));
  const prepare = (root: string, architecture: string) => writeFileSync(join(root, "platform"), architecture);
  const both = await makeBusyboxLayout(join(engine.directory, "both"), {
    prepare,
    architectures: [other, machine],
  });
  const foreign = await makeBusyboxLayout(join(engine.directory, "foreign"), {
    prepare,
    architectures: [other],
  });
  digest = open.push(both, "library/both:1.0");
  open.push(foreign, "foreign:1.0");
  closed.push(layout, "private:1.0");
});

afterAll(() => Promise.all([engine.close(), open.stop(), closed.stop()]));

async function importing(
  url: string,
  more: Partial<ImportRequest> = {},
  login?: ImportRequest["registry"]["credentials"],
) {
  const body = { registry: { url, ...(login === undefined ? {} : { credentials: login }) }, ...more };
  return engine.finish(await engine.json("POST", "/v1/images/import", body));
}

const imageOf = (operation: OperationRecord) => operation.result?.image ?? "";
const layers = () => readdirSync(join(engine.directory, "layers")).length;

describe("from a registry", () => {
  test("takes the machine's platform from an index with several", async () => {
    const operation = await importing(`docker://${open.host}/library/both:1.0`, { tag: "both:1.0" });
    expect(operation).toMatchObject({ status: "SUCCESS", error: null, result: { tag: "both:1.0" } });
    expect((await engine.run("tag:both:1.0", "cat /platform")).stdout).toBe(machine);
    // A push to another repository of the registry can mount the layer.
    const { layers } = await engine.json<{ layers: object[] }>(
      "GET",
      `/v1/images/${imageOf(operation)}/layers`,
    );
    expect(layers).toMatchObject([{ source: `docker://${open.host}/library/both` }]);
  });

  test("imports by digest, and the same content again is the same image", async () => {
    const first = await importing(`docker://${open.host}/library/both:1.0`);
    const count = layers();
    const again = await importing(`docker://${open.host}/library/both@${digest}`, { tag: "pinned:1" });
    expect(imageOf(again)).toBe(imageOf(first));
    expect(layers()).toBe(count);
  });

  test("an index without the machine's platform is an error", async () => {
    const operation = await importing(`docker://${open.host}/foreign:1.0`);
    expect(operation.status).toBe("FAILED");
    expect(operation.error).toMatch(
      new RegExp(`no image found in (image index|manifest list) for architecture "?${machine}`),
    );
    const single = await makeBusyboxLayout(join(engine.directory, "single"), { architectures: [other] });
    const nested = JSON.parse(await Bun.file(join(engine.directory, "single/index.json")).text());
    const inner = JSON.parse(await Bun.file(blob("single", nested.manifests[0].digest)).text());
    const annotations = { "org.opencontainers.image.ref.name": "latest" };
    const { platform: _, ...manifest } = inner.manifests[0];
    const index = { schemaVersion: 2, manifests: [{ ...manifest, annotations }] };
    writeFileSync(join(engine.directory, "single/index.json"), JSON.stringify(index));
    expect((await importing(single)).error).toContain(
      `is an image for linux/${other}, and this machine is linux/${machine}`,
    );
  });

  test("an unknown name and an unreachable registry are errors", async () => {
    expect((await importing(`docker://${open.host}/nope:1`)).error).toMatch(
      /^skopeo: reading manifest 1 in .*manifest unknown/,
    );
    expect((await importing("docker://127.0.0.1:1/nope:1")).error).toMatch(
      /^skopeo: Get "https?:.*connection refused/,
    );
  });
});

describe("from a registry with a password", () => {
  const url = () => `docker://${closed.host}/private:1.0`;

  test("works, and the password is in no file, record or command line", async () => {
    const before = new Set<string>();
    const watching = watchArguments(before);
    const operation = await importing(url(), {}, credentials);
    watching.stop();
    expect(operation).toMatchObject({ status: "SUCCESS", error: null });
    expect([...before].some((line) => line.includes("skopeo") && line.includes("--src-authfile"))).toBe(true);
    expect([...before].join("\n")).not.toContain(credentials.password);
    expect(JSON.stringify(operation)).not.toContain("wörd");
    const kept = Bun.spawnSync([
      "grep",
      "-r",
      "-l",
      "-e",
      "wörd",
      "-e",
      btoa("ann:p").slice(0, 6),
      engine.directory,
    ]);
    expect(kept.stdout.toString()).toBe("");
  });

  test("a wrong or missing password fails", async () => {
    // By skopeo 1.9, and by later ones.
    const refused = /unauthorized|authentication required/;
    const wrong = { ...credentials, password: "wrong" };
    expect((await importing(url(), {}, wrong)).error).toMatch(refused);
    expect((await importing(url())).error).toMatch(refused);
  });
});

describe("from other places", () => {
  test.each(["oci-archive", "docker-archive", "dir"])("%s", async (transport) => {
    // Each has different content, because known content is not unpacked again.
    const source = await makeBusyboxLayout(join(engine.directory, `for-${transport}`), {
      prepare: (root) => writeFileSync(join(root, "transport"), transport),
    });
    const target = `${transport}:${join(engine.directory, `copy-${transport}`)}`;
    const copy = Bun.spawnSync(["skopeo", "--insecure-policy", "copy", source, target]);
    expect(copy.exitCode).toBe(0);
    const operation = await importing(target);
    expect(operation).toMatchObject({ status: "SUCCESS", error: null });
    expect((await engine.run(imageOf(operation), "cat /transport")).stdout).toBe(transport);
  });

  test("a relative path is resolved from the client's directory", async () => {
    const path = relative(process.cwd(), join(engine.directory, "layout"));
    expect((await importing(`oci:${path}:latest`)).status).toBe("SUCCESS");
  });

  test("the same content with another configuration is another image with the same layer", async () => {
    const first = await engine.importConfigured({ environment: ["A=1"] });
    const count = layers();
    const second = await engine.importConfigured({ environment: ["A=2"] });
    expect(second).not.toBe(first);
    expect(layers()).toBe(count);
    expect((await engine.run(second, "echo $A")).stdout).toBe("2\n");
  });

  test("a missing source is an error, and leaves nothing behind", async () => {
    const count = layers();
    expect((await importing(`oci:${engine.directory}/none:latest`)).error).toContain(
      "no such file or directory",
    );
    const damaged = await makeBusyboxLayout(join(engine.directory, "damaged"));
    const manifest = JSON.parse(await Bun.file(join(engine.directory, "damaged/index.json")).text())
      .manifests[0].digest;
    const inner = JSON.parse(await Bun.file(blob("damaged", manifest)).text());
    writeFileSync(blob("damaged", inner.layers[0].digest), "garbage");
    expect((await importing(damaged)).status).toBe("FAILED");
    expect(layers()).toBe(count);
  });
});

describe("an imported image has", () => {
  test("its hard links, modes, holes, links, empty directories and odd names", async () => {
    const image = await engine.importConfigured({
      prepare(root) {
        const script = `mkdir -p d/empty; echo x > d/a; ln d/a d/b; chmod 6755 d/a; chmod 1777 d/empty; ln -s /etc d/l
          truncate -s 10M d/sparse; mkfifo d/p; touch 'd/ é\\n'; chmod 700 d`;
        expect(Bun.spawnSync(["sh", "-ec", script], { cwd: root }).stderr.toString()).toBe("");
      },
    });
    const seen = await engine.run(image, "cd /d; stat -c '%a %h %F %s %n' . a b empty l sparse p ' é\\n'");
    // btrfs counts no links of directories.
    expect(seen.stdout.replaceAll(/ \d+ directory \d+ /g, " directory ")).toBe(
      [
        "700 directory .",
        "6755 2 regular file 2 a",
        "6755 2 regular file 2 b",
        "1777 directory empty",
        "777 1 symbolic link 4 l",
        "644 1 regular file 10485760 sparse",
        "644 1 fifo 0 p",
        "644 1 regular empty file 0  é\\n",
        "",
      ].join("\n"),
    );
  });
});

describe("an invalid request is refused at once:", () => {
  test.each([
    ["no registry", {}, "registry is missing"],
    ["no url", { registry: {} }, "url is missing"],
    [
      "no transport",
      { registry: { url: "alpine" } },
      'invalid image "alpine": expected docker://HOST/NAME:TAG',
    ],
    ["an unknown transport", { registry: { url: "ftp://x/y" } }, "invalid image"],
    ["a bad tag", { registry: { url: "docker://docker.io/library/x" }, tag: "A B" }, "is not a valid tag"],
    [
      "a username without a password",
      { registry: { url: "docker://x/y", credentials: { username: "x" } } },
      "password is missing",
    ],
  ])("%s", async (_name, body, message) => {
    const response = await engine.fetch("POST", "/v1/images/import", body);
    expect(await response.json()).toEqual({ error: expect.stringContaining(message), status: 400 });
  });

  test("a local path on a server", async () => {
    const directory = join(engine.directory, "network");
    mkdirSync(directory);
    const network = await openAnsweringEngine({
      directory,
      clock: systemClock,
      environment: {},
      isServer: true,
    });
    for (const url of [layout, `dir:${engine.directory}`, "docker-daemon:x:y", "containers-storage:x"]) {
      const body = JSON.stringify({ registry: { url } });
      const response = await network.fetch(
        new Request("http://e/v1/images/import", { method: "POST", body }),
      );
      expect(response.status).toBe(400);
      expect(await response.text()).toContain("cannot be imported through a server");
    }
    await network.close();
  });
});

test("an import can be cancelled, and ends at its timeout", async () => {
  const { promise: isAsked, resolve: ask } = Promise.withResolvers<void>();
  const silent = Bun.serve({
    port: 0,
    hostname: "127.0.0.1",
    fetch: () => {
      ask();
      return new Promise<Response>(() => {});
    },
  });
  const url = `docker://127.0.0.1:${silent.port}/x:1`;
  const { uuid } = await engine.json<{ uuid: string }>("POST", "/v1/images/import", { registry: { url } });
  await isAsked;
  expect((await engine.fetch("DELETE", `/v1/operations/${uuid}`)).status).toBe(202);
  expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
  const late = await importing(url, { timeout: 1 });
  expect(late).toMatchObject({ status: "FAILED", error: "the import did not end within 1 second" });
  await silent.stop(true);
});

function blob(name: string, hash: string): string {
  return join(engine.directory, name, "blobs", hash.replace(":", "/"));
}

/** Collects the command lines of all processes of the machine, which every user can see. */
function watchArguments(seen: Set<string>): { stop: () => void } {
  const timer = setInterval(() => {
    for (const line of commandLines()) seen.add(line);
  }, 5);
  return { stop: () => clearInterval(timer) };
}

describe("scratch", () => {
  test("is one image without files, imported without other programs", async () => {
    const bare = await TestEngine.open({ environment: { PATH: "/nowhere" }, isServer: true });
    try {
      const importScratch = async () =>
        bare.finish(await bare.json("POST", "/v1/images/import", { registry: { url: "scratch" } }));
      const first = await importScratch();
      expect(first).toMatchObject({ status: "SUCCESS", error: null });
      expect(imageOf(await importScratch())).toBe(imageOf(first));
      const { images } = await bare.json<{ images: object[] }>("GET", `/v1/images?uuid=${imageOf(first)}`);
      expect(images).toMatchObject([{ oci_config: {} }]);
      const root = await bare.fetch("GET", `/v1/inspect/${imageOf(first)}/list?path=/`);
      expect(await root.json()).toMatchObject({ files: [] });
    } finally {
      await bare.close();
    }
  });
});
