/**
 * Base images from a registry on loopback (Debian's docker-registry), by `bough images import` and FROM. The engine's imports
 * from registries are tested in test/engine/import.test.ts.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { startServer } from "../support/server.ts";

setDefaultTimeout(180_000);

const credentials = { username: "ann", password: "p:a ss\"'wörd" };
const machine = process.arch === "arm64" ? "arm64" : "amd64";
const foreign = machine === "amd64" ? "arm64" : "amd64";

let open: Registry;
let closed: Registry;
let digest: string;
const environment = { BOUGH_HOME: "" };

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  [open, closed] = await Promise.all([Registry.start(), Registry.start(credentials)]);
  const layouts = temporaryDirectory();
  const layout = (name: string, architectures: readonly string[]) =>
    makeBusyboxLayout(join(layouts, name), {
      architectures,
      environment: ["PATH=/bin", `IMAGE=${name}`],
      prepare: (root, architecture) => writeFileSync(join(root, "what"), `${name} for ${architecture}`),
    });
  const app = await layout("app", [foreign, machine]);
  addAttestations(join(layouts, "app"));
  digest = open.push(app, "team/app:1.0");
  open.push(app, "team/same:2.0");
  open.push(await layout("elsewhere", [foreign]), "team/elsewhere:1.0");
  closed.push(await layout("private", [machine]), "private:1.0");
});

afterAll(() => Promise.all([open?.stop(), closed?.stop()]));

interface Options {
  stdin?: string;
  environment?: Record<string, string>;
}

const bough = (words: readonly string[], options: Options = {}) =>
  runBough(["--local", ...words], {
    workingDirectory: "/",
    ...options,
    environment: { ...environment, ...options.environment },
  });

const build = (from: string, options: Options = {}) =>
  bough(["build", contextOf(from), "-f", "json"], options);

function contextOf(from: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM ${from}\nRUN cat /what; echo "; IMAGE=$IMAGE"\n` });
  return context;
}

async function importImage(...words: string[]): Promise<string> {
  const { stdout, stderr, exitCode } = await bough(["images", "import", ...words, "-q"]);
  if (exitCode !== 0) throw new Error(stderr);
  return stdout.trim();
}

describe("FROM", () => {
  test("imports the machine's platform from an index, once", async () => {
    const first = await build(`${open.host}/team/app:1.0`);
    expect(first.stderr).toContain(`from docker://${open.host}/team/app:1.0\n`);
    expect(first.stderr).toContain(`app for ${machine}; IMAGE=app\n`);
    expect(first.exitCode).toBe(0);
    const second = await build(`${open.host}/team/app:1.0`);
    expect(second.stderr).not.toContain("importing");
    expect(second.stderr).toContain(`app for ${machine}`);
  });

  test("takes a digest, and imports it once", async () => {
    const first = await build(`${open.host}/team/app@${digest}`);
    expect(first.stderr).toContain(`app for ${machine}`);
    expect(first.exitCode).toBe(0);
    const second = await build(`${open.host}/team/app@${digest}`);
    expect(second.stderr).not.toContain("importing");
    expect(second.exitCode).toBe(0);
  });

  test("keeps the first image of a tag, and takes its current image with --pull", async () => {
    const name = `${open.host}/team/moving:1.0`;
    const context = contextOf(name);
    const push = async (version: string) =>
      open.push(
        await makeBusyboxLayout(join(temporaryDirectory(), "moving"), {
          prepare: (root) => writeFileSync(join(root, "what"), version),
        }),
        "team/moving:1.0",
      );
    const outcome = async (...options: string[]) => {
      const { stderr } = await bough(["build", context, ...options]);
      return { version: /version \d/.exec(stderr)?.[0], cached: stderr.includes("1 of 1 layer cached") };
    };
    await push("version 1");
    expect(await outcome()).toEqual({ version: "version 1", cached: false });
    expect(await outcome("--pull")).toEqual({ version: undefined, cached: true });
    await push("version 2");
    expect(await outcome()).toEqual({ version: undefined, cached: true });
    expect(await outcome("--pull")).toEqual({ version: "version 2", cached: false });
    writeFiles(context, { Dockerfile: `FROM ${name}\nRUN cat /what; echo again\n` });
    expect(await outcome()).toEqual({ version: "version 2", cached: false });
  });

  test("names the platform if the image has nothing for this machine", async () => {
    const { stderr, exitCode } = await build(`${open.host}/team/elsewhere:1.0`);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`docker://${open.host}/team/elsewhere:1.0`);
    expect(stderr).toContain(machine);
  });

  test("fails if the registry does not have the image", async () => {
    const { stderr, exitCode } = await build(`${open.host}/team/none:1.0`);
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`docker://${open.host}/team/none:1.0`);
    expect(stderr).toContain("manifest unknown");
  });
});

describe("images import", () => {
  test("sets the tag that FROM looks for, or that of --tag", async () => {
    const image = await importImage(`${open.host}/team/app:1.0`);
    expect(await importImage(`docker://${open.host}/team/app@${digest}`, "--tag", "mine:1")).toBe(image);
    const { stdout } = await bough(["images", "-f", "json"]);
    const tags = (JSON.parse(stdout) as { uuid: string; tag: string | null }[])
      .filter(({ uuid }) => uuid === image)
      .map(({ tag }) => tag);
    expect(tags).toContain(`${open.host}/team/app:1.0`);
    expect(tags).toContain("mine:1");
  });

  test("stores an image of two names only once", async () => {
    const image = await importImage(`${open.host}/team/app:1.0`);
    const before = await countLayers();
    expect(before).toBeGreaterThan(0);
    expect(await importImage(`${open.host}/team/same:2.0`)).toBe(image);
    expect(await countLayers()).toBe(before);
  });
});

describe("a registry with a password", () => {
  const reference = () => `${closed.host}/private:1.0`;

  test("refuses an import without a password or with a wrong one", async () => {
    for (const ended of [
      await build(reference()),
      await bough(["images", "import", reference(), "--username", "ann", "--password-stdin"], {
        stdin: "wrong",
      }),
    ]) {
      expect(ended.exitCode).toBe(1);
      expect(ended.stderr).toContain(
        `requires a login, rejects this one, or has no image of that name: docker login`,
      );
      expect(ended.stderr).toContain(closed.host);
    }
  });

  test("allows an import with a password on standard input", async () => {
    const words = ["images", "import", reference(), "--username", credentials.username, "--password-stdin"];
    const ended = await bough([...words, "--tag", "private:imported"], {
      stdin: `${credentials.password}\n`,
    });
    expect(ended).toMatchObject({ exitCode: 0 });
    expect(ended.stdout + ended.stderr).not.toContain("wörd");
    expect((await build("private:imported")).stderr).toContain(`private for ${machine}`);
  });

  test("allows a build with the login that other programs store", async () => {
    const auth = Buffer.from(`${credentials.username}:${credentials.password}`).toString("base64");
    const file = join(temporaryDirectory(), "auth.json");
    writeFileSync(file, JSON.stringify({ auths: { [closed.host]: { auth } } }), { mode: 0o600 });
    const { stderr, exitCode } = await build(reference(), { environment: { REGISTRY_AUTH_FILE: file } });
    expect(stderr).toContain(`from docker://${reference()}\n`);
    expect(stderr).toContain(`private for ${machine}`);
    expect(exitCode).toBe(0);
  });
});

test("clients of bough serve may import from registries, but not from local paths", async () => {
  const server = await startServer({ BOUGH_HOME: temporaryDirectory() }, "--allow-local-fetch");
  try {
    const remote = ["--url", server.url, "--token", server.token ?? ""];
    const run = (words: readonly string[]) =>
      runBough([...remote, ...words], { workingDirectory: "/", environment });
    const built = await run(["build", contextOf(`${open.host}/team/app:1.0`)]);
    expect(built.stderr).toContain(`app for ${machine}`);
    expect(built.exitCode).toBe(0);
    const refused = await run(["images", "import", "oci:/tmp/layout:1"]);
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("cannot be imported through a server");
  } finally {
    await server.stop();
  }
});

/** Adds to an index what `docker buildx` puts beside each image: a manifest of an unknown platform. */
function addAttestations(layout: string): void {
  const read = (path: string) => JSON.parse(readFileSync(join(layout, path), "utf8"));
  const write = (content: unknown) => {
    const text = JSON.stringify(content);
    const hash = new Bun.CryptoHasher("sha256").update(text).digest("hex");
    writeFileSync(join(layout, "blobs/sha256", hash), text);
    return { digest: `sha256:${hash}`, size: Buffer.byteLength(text) };
  };
  const index = read("index.json");
  const inner = read(index.manifests[0].digest.replace("sha256:", "blobs/sha256/"));
  const statement = { mediaType: "application/vnd.in-toto+json", ...write({ predicateType: "test" }) };
  const config = {
    mediaType: "application/vnd.oci.image.config.v1+json",
    ...write({ architecture: "unknown", os: "unknown", rootfs: { type: "layers", diff_ids: [] } }),
  };
  const mediaType = "application/vnd.oci.image.manifest.v1+json";
  const attestation = write({ schemaVersion: 2, mediaType, config, layers: [statement] });
  const manifests = [
    { mediaType, ...attestation, platform: { architecture: "unknown", os: "unknown" } },
    ...inner.manifests,
  ];
  Object.assign(index.manifests[0], write({ ...inner, manifests }));
  writeFileSync(join(layout, "index.json"), JSON.stringify(index));
}

async function countLayers(): Promise<number> {
  const { stdout } = await bough(["engine", "df", "-f", "json"]);
  return (JSON.parse(stdout) as { layers: { count: number } }).layers.count;
}
