/** Images that are read from mirrors, and from their registry where these fail: by bough itself, and by skopeo for it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openBlobSource, openBlobStore } from "../../src/registry/open-blob-store.ts";
import { Secret } from "../../src/secret.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { blob, startFakeRegistry } from "./fake-registry.ts";

const { signal } = new AbortController();
const name = "docker://docker.io/team/app";
const manifest = JSON.stringify({ schemaVersion: 2, layers: [] });

type Respond = NonNullable<Parameters<typeof startFakeRegistry>[0]>;
const has: Respond = ({ target }) => (target.includes("/manifests/") ? new Response(manifest) : undefined);
const lacks: Respond = ({ target }) =>
  /manifests|blobs/.test(target) ? new Response("{}", { status: 404 }) : undefined;
const fails: Respond = ({ target }) =>
  target === "/v2/" ? undefined : new Response("down", { status: 500 });
/** Ends each transfer as if it were complete. */
const breaks: Respond = ({ target }) =>
  target.includes("/blobs/") ? new Response(blob.bytes.subarray(0, 1000)) : undefined;

/** Which of the two are asked for a tag, and for a blob. */
test.each<[string, Respond, string, { tag: string; blob: string }]>([
  ["has everything", has, "all", { tag: "mirror", blob: "mirror" }],
  ["is asked for digests only", has, "digest-only", { tag: "origin", blob: "mirror" }],
  ["is asked for tags only", has, "tag-only", { tag: "mirror", blob: "mirror" }],
  ["lacks the image", lacks, "all", { tag: "mirror origin", blob: "mirror origin" }],
  ["fails", fails, "all", { tag: "mirror origin", blob: "origin" }],
  ["breaks off", breaks, "all", { tag: "mirror origin", blob: "mirror origin" }],
])("of a mirror that %s", async (_, respond, reads, expected) => {
  await using mirror = startFakeRegistry(respond);
  await using origin = startFakeRegistry(has);
  const conf = `[[registry]]\nprefix = "docker.io"\nlocation = "${origin.host}"
[[registry.mirror]]\nlocation = "${mirror.host}"\npull-from-mirror = "${reads}"\n`;
  const home = temporaryDirectory();
  writeFiles(home, { "r.conf": conf });
  const environment = { CONTAINERS_REGISTRIES_CONF: join(home, "r.conf"), BOUGH_RETRY: "1" };
  const source = openBlobSource(name, { fetch, clock: systemClock, environment });
  const asked = (what: string) =>
    [["mirror", mirror] as const, ["origin", origin] as const]
      .filter(([, { requests }]) => requests.some(({ target }) => target.includes(what)))
      .map(([place]) => place)
      .join(" ");
  expect(source.address).toBe(name);
  expect(Buffer.from((await source.getManifest("1", signal))?.bytes ?? "").toString()).toBe(manifest);
  const bytes = await Array.fromAsync(await source.openBlob(blob, signal));
  expect(Buffer.concat(bytes).equals(blob.bytes)).toBe(true);
  expect({ tag: asked("/manifests/"), blob: asked("/blobs/") }).toEqual(expected);
});

test.each([
  ["other bytes", () => Buffer.alloc(blob.size, 1)],
  ["too many", () => Buffer.concat([blob.bytes, blob.bytes])],
])("of a mirror with %s, a blob is wrong once, and read from the registry then", async (_, content) => {
  await using mirror = startFakeRegistry(({ target }) =>
    target.includes("/blobs/") ? new Response(content()) : undefined,
  );
  await using origin = startFakeRegistry();
  const home = temporaryDirectory();
  writeFiles(home, {
    "r.conf": `[[registry]]\nlocation = "${origin.host}"\n[[registry.mirror]]\nlocation = "${mirror.host}"\n`,
  });
  const environment = { CONTAINERS_REGISTRIES_CONF: join(home, "r.conf") };
  const source = openBlobSource(`docker://${origin.host}/team/app`, {
    fetch,
    clock: systemClock,
    environment,
  });
  const read = async () => Buffer.concat(await Array.fromAsync(await source.openBlob(blob, signal, "size")));
  await expect(read()).rejects.toMatchObject({ name: "WrongBlobError", isOfMirror: true });
  expect((await read()).equals(blob.bytes)).toBe(true);
  expect(mirror.requests.filter(({ target }) => target.includes("/blobs/"))).toHaveLength(1);
});

test("a password of the registry that is named goes to no mirror", async () => {
  const asks: Respond = (request, host) =>
    request.headers.has("authorization")
      ? has(request, host)
      : new Response("{}", { status: 401, headers: { "www-authenticate": 'Basic realm="r"' } });
  await using mirror = startFakeRegistry(asks);
  await using origin = startFakeRegistry(asks);
  const home = temporaryDirectory();
  writeFiles(home, {
    "r.conf": `[[registry]]\nlocation = "${origin.host}"\n[[registry.mirror]]\nlocation = "${mirror.host}"\n`,
  });
  const credentials = { username: "ann", password: Secret.of("s3cret") };
  const environment = { HOME: home, CONTAINERS_REGISTRIES_CONF: join(home, "r.conf") };
  const dependencies = { fetch, clock: systemClock, environment, credentials };
  const source = openBlobSource(`docker://${origin.host}/team/app`, dependencies);
  expect(await source.getManifest("1", signal)).toBeDefined();
  const sent = ({ requests }: typeof mirror) =>
    requests.flatMap(({ headers }) => headers.get("authorization") ?? []);
  expect(mirror.requests.length).toBeGreaterThan(0);
  expect(sent(mirror)).toEqual([]);
  expect(sent(origin)).toContain(`Basic ${btoa("ann:s3cret")}`);
});

test("a registry that wants a client certificate gets that of certs.d from bough and from skopeo", async () => {
  const secured = await Registry.start(undefined, undefined, { hasTls: true, wantsCertificates: true });
  try {
    const home = temporaryDirectory();
    const environment = { BOUGH_HOME: join(home, "state"), HOME: home };
    const bough = (...words: string[]) =>
      runBough(["--local", ...words], { workingDirectory: home, environment });
    const layout = await makeBusyboxLayout(join(home, "layout"));
    expect(await bough("images", "import", layout, "--tag", "base:1")).toMatchObject({ exitCode: 0 });
    const push = ["push", "base:1", `${secured.host}/app:1`, "--tls-verify=true", "--retry=0"];
    const refused = await bough(...push);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("certificate") });
    const [certificate, key] = secured.certificate();
    const directory = `.config/containers/certs.d/${secured.host}`;
    const names = { "ca.crt": certificate, "client.cert": certificate, "client.key": key };
    for (const [name, text] of Object.entries(names)) writeFiles(home, { [`${directory}/${name}`]: text });
    expect(await bough(...push)).toMatchObject({ exitCode: 0 });
    const image = `docker://${secured.host}/app:1`;
    const imported = await bough("images", "import", image, "--tag", "again:1", "--tls-verify=true");
    expect(imported).toMatchObject({ exitCode: 0 });
  } finally {
    await secured.stop();
  }
}, 180_000);

test("if the registry fails as well, the reasons of its mirrors are said; a push asks no mirror", async () => {
  await using mirror = startFakeRegistry(fails);
  await using origin = startFakeRegistry(fails);
  const home = temporaryDirectory();
  writeFiles(home, {
    "r.conf": `[[registry]]\nlocation = "${origin.host}"\n[[registry.mirror]]\nlocation = "${mirror.host}"\n`,
  });
  const environment = { CONTAINERS_REGISTRIES_CONF: join(home, "r.conf"), BOUGH_RETRY: "0" };
  const dependencies = { fetch, clock: systemClock, environment };
  const address = `docker://${origin.host}/team/app`;
  await expect(openBlobSource(address, dependencies).getManifest("1", signal)).rejects.toThrow(
    new RegExp(`${origin.host}.*500.*mirrors failed, too: .*${mirror.host}.*500`),
  );
  const before = mirror.requests.length;
  await expect(openBlobStore(address, dependencies).getManifest("1", signal)).rejects.toThrow("500");
  expect(mirror.requests.length).toBe(before);
});

let registry: Registry;
beforeAll(async () => {
  registry = await Registry.start();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  registry.push(layout, "library/base:1");
  registry.push(layout, "sub/team/app:1");
});
afterAll(() => registry.stop());

/** The words and files of a company's network, in which nothing but the mirror can be reached. */
test.each<[string, string, string[], string]>([
  ["--registry-mirror", "base:1", ["--registry-mirror", "127.0.0.1:1", "--registry-mirror", "HOST"], ""],
  [
    "a mirror without TLS of registries.conf",
    "base:1",
    [],
    '[[registry]]\nlocation = "docker.io"\n[[registry.mirror]]\nlocation = "HOST"\n',
  ],
  ["a location", "r.example/team/app:1", [], '[[registry]]\nprefix = "r.example"\nlocation = "HOST/sub"\n'],
])(
  "FROM is imported through %s, whole or layer by layer",
  async (_, from, words, conf) => {
    const home = temporaryDirectory();
    const filled = (text: string) => text.replace("HOST", registry.host);
    writeFiles(home, {
      ".config/containers/registries.conf": filled(conf),
      "context/Dockerfile": `FROM ${from}\nRUN echo hello\n`,
    });
    for (const cache of [[], ["--cache-from", "type=local,src=cache"]]) {
      const environment = { BOUGH_HOME: temporaryDirectory(), HOME: home, HTTPS_PROXY: "http://127.0.0.1:1" };
      const built = await runBough(
        ["--local", "build", "--docker", "context", ...words.map(filled), ...cache],
        {
          workingDirectory: home,
          environment: { ...environment, NO_PROXY: "127.0.0.1" },
        },
      );
      expect([built.exitCode, built.stderr]).toEqual([0, expect.stringContaining("hello")]);
    }
  },
  180_000,
);
