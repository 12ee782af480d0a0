/** Images that only add configuration to a base of the registry that they are pushed to: nothing of the base is fetched. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { randomBytes } from "node:crypto";
import { cpSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFront } from "../scopes/registry/front.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { chunkLayers } from "../support/chunked-layers.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser } from "../support/ordinary-user.ts";
import { Registry } from "../support/registry.ts";
import { makeUserBough } from "../support/user-bough.ts";

setDefaultTimeout(120_000);

/** Of the base's layer, which random bytes make as large in the registry. */
const layerBytes = 8 * 1024 * 1024;
/** Manifests and configurations are smaller. */
const thinBytes = 32 * 1024;
const configuration = 'ARG V=1\nENV A=$V PATH=/opt:$PATH\nLABEL a=b\nUSER 1000\nEXPOSE 80\nCMD ["x"]\n';

const makeLarge = (root: string) => writeFileSync(join(root, "large"), randomBytes(layerBytes));

let registry: Registry;
let other: Registry;
let layer: string;
beforeAll(async () => {
  [registry, other] = [await Registry.start(), await Registry.start()];
  const prepare = makeLarge;
  registry.push(await makeBusyboxLayout(temporaryDirectory(), { prepare }), "base:1");
  layer = (await manifestOf("base")).layers[0].digest;
  const architectures = ["amd64", "arm64"];
  registry.push(await makeBusyboxLayout(temporaryDirectory(), { prepare, architectures }), "both:1");
  await makeChunked();
  const OnBuild = ["RUN wc -c /large"];
  registry.push(
    await makeBusyboxLayout(temporaryDirectory(), { prepare, configuration: { OnBuild } }),
    "triggers:1",
  );
});
afterAll(() => Promise.all([registry.stop(), other.stop()]));

/** Has the layouts of these bases. */
let chunked: string;

/** Pushes a base whose layers have tables of contents. */
async function makeChunked(): Promise<void> {
  [directory, home] = [temporaryDirectory(), temporaryDirectory()];
  const lines = [
    `FROM ${registry.host}/base:1`,
    "RUN mkdir -p /opt/odd /opt/real/sub /gone/x /emptied/sub /tree/of && ln -s real /opt/link && ln -s /opt/real /absolute",
    "RUN echo old > /opt/real/old && echo file > /file && chown 1000:7 /opt/odd && chmod 2750 /opt/odd",
    "RUN touch -d @1000000 /opt/odd /opt/real && ln /file /opt/hard",
    "RUN rm -r /gone /emptied /opt/real/old /tree/of && mkdir /emptied && echo f > /tree/of",
  ];
  const made = await build(lines.join("\n"), "-o", "type=oci,dest=layout,tar=false");
  if (made.exitCode !== 0) throw new Error(made.stderr);
  chunked = directory;
  const layout = join(directory, "layout");
  cpSync(layout, join(directory, "gzip"), { recursive: true });
  await chunkLayers(layout);
  registry.push(`oci:${layout}`, "chunked:1");
  for (const [name, edit] of damages) {
    const copy = join(directory, name);
    cpSync(join(directory, "gzip"), copy, { recursive: true });
    await chunkLayers(copy, edit);
    registry.push(`oci:${copy}`, `${name}:1`);
  }
}

/** What the tables of bases are that can't be used. */
const damages: [string, (table: string) => string][] = [
  ["forged", (table) => table.replace('"opt/odd/","mode":1512', '"opt/odd/","mode":511')],
  ["no-json", (table) => table.slice(1)],
  ["no-entries", () => "{}"],
  ["lost-name", (table) => table.replace("/opt", "/\uFFFD")],
  ["unknown-type", (table) => table.replace('"dir"', '"door"')],
  ["no-time", (table) => table.replace(/"modtime":"[^"]*"/, '"modtime":"yesterday"')],
];

let directory: string;
let home: string;
/** The repository of this test. */
let app: string;
let count = 0;
beforeEach(() => {
  [directory, home] = [temporaryDirectory(), temporaryDirectory()];
  app = `${registry.host}/app${++count}`;
});

interface Manifest {
  config: { digest: string };
  layers: [{ digest: string }, ...{ digest: string }[]];
}

async function manifestOf(name: string): Promise<Manifest> {
  const headers = { accept: "application/vnd.oci.image.manifest.v1+json" };
  const response = await fetch(`http://${registry.host}/v2/${name}/manifests/1`, { headers });
  return (await response.json()) as Manifest;
}

/** Runs a command; `requests` are those that the registry got, `bytes` what it sent. */
async function bough(...words: string[]) {
  const [bytes, before] = [registry.sentBytes(), registry.requests().length];
  const ended = await runBough(["--local", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: home },
  });
  return { ...ended, bytes: registry.sentBytes() - bytes, requests: registry.requests().slice(before) };
}

function build(dockerfile: string, ...words: string[]) {
  writeFiles(directory, { Dockerfile: dockerfile, file: "content", "tree/sub/a": "a", "tree/b": "b" });
  return bough("build", "--docker", ".", "-f", "Dockerfile", "--format", "json", ...words);
}

/** Returns the error of a build. */
const errorIn = ({ stderr }: { stderr: string }) =>
  JSON.parse(/^\{"error".*/m.exec(stderr)?.[0].replace(/ \(operation \S+\)/, "") ?? "{}");
const pushTo = (...places: string[]) => [...places.flatMap((place) => ["--tag", `${place}:1`]), "--push"];

/** Returns what the images of the home have left in registries. */
async function missingLayers(): Promise<number> {
  const listed: { missing_layers?: number }[] = JSON.parse((await bough("images", "-f", "json")).stdout);
  return listed.reduce((sum, { missing_layers: missing = 0 }) => sum + missing, 0);
}

test("nothing of the base but its manifest and configuration is fetched, and its layer is mounted", async () => {
  const dockerfile = `FROM ${registry.host}/base:1 AS first\nENV B=2\nFROM first\n${configuration}`;
  const thin = await build(dockerfile, ...pushTo(app));
  expect(thin.exitCode, thin.stderr).toBe(0);
  expect(thin.bytes).toBeLessThan(thinBytes);
  const { config } = await manifestOf("base");
  expect(thin.requests.filter((request) => request.includes("/v2/base/"))).toEqual([
    "GET /v2/base/manifests/1",
    `GET /v2/base/blobs/${config.digest}`,
  ]);
  const mounts = thin.requests.filter((request) => request.includes("mount="));
  expect(mounts).toEqual([expect.stringContaining(`from=base&mount=${encodeURIComponent(layer)}`)]);
  // The configuration is the only blob that is sent.
  expect(thin.requests.filter((request) => request.startsWith("PUT /v2/app")).length).toBe(2);

  home = temporaryDirectory();
  expect((await bough("images", "import", `${registry.host}/base:1`)).exitCode).toBe(0);
  const whole = await build(dockerfile, ...pushTo(`${registry.host}/whole`));
  expect(JSON.parse(thin.stdout).digest).toBe(JSON.parse(whole.stdout).digest);
});

test("bases of several platforms are not fetched either", async () => {
  const platforms = ["--platform", "linux/amd64,linux/arm64"];
  const thin = await build(`FROM ${registry.host}/both:1\n${configuration}`, ...platforms, ...pushTo(app));
  expect(thin.exitCode, thin.stderr).toBe(0);
  expect(thin.bytes).toBeLessThan(thinBytes);
});

test.each([
  ["a new directory", "COPY file /new/at/root/\nCOPY tree /new"],
  ["a new file", "COPY file /opt/new"],
  ["directories with attributes", "COPY file /opt/odd/new\nCOPY tree /opt/odd"],
  ["links", "COPY file /opt/link/sub/\nCOPY tree /absolute"],
  ["an existing file", "COPY file /file"],
  ["what upper layers deleted", "COPY tree /gone/x\nCOPY file /emptied/sub/\nCOPY file /opt/real/old"],
  ["owners", "COPY --chown=1000:7 --chmod=640 tree /opt/owned"],
  ["WORKDIR", "WORKDIR /opt/link/sub\nWORKDIR new\nCOPY file ."],
  ["WORKDIR that is there", "WORKDIR /opt/odd"],
  ["ADD", "ADD file /opt/odd/"],
  ["several stages", `CMD x\nFROM scratch\nFROM HOST/chunked:1\nCOPY file /x`],
])("where layers have tables of contents, these are all that is fetched for %s", async (_, instructions) => {
  const dockerfile = `FROM ${registry.host}/chunked:1\n${instructions.replace("HOST", registry.host)}\n`;
  const output = (place: string) => `type=registry,name=${place}:1,rewrite-timestamp=true`;
  const epoch = ["--build-arg", "SOURCE_DATE_EPOCH=1000000000"];
  const thin = await build(dockerfile, ...epoch, "-o", output(app));
  expect(thin.exitCode, thin.stderr).toBe(0);
  expect(thin.bytes).toBeLessThan(thinBytes);
  expect(await missingLayers()).toBeGreaterThan(0);

  home = temporaryDirectory();
  const imported = await bough("images", "import", `${registry.host}/chunked:1`);
  expect(imported.exitCode, imported.stderr).toBe(0);
  const whole = await build(dockerfile, ...epoch, "-o", output(`${registry.host}/whole`));
  expect(JSON.parse(thin.stdout).digest, whole.stderr).toBe(JSON.parse(whole.stdout).digest);
});

test("such an image has its content key, is skipped by it, and can be locked, by each kind of build", async () => {
  const text = `FROM ${registry.host}/chunked:1\nCOPY file /opt/odd/\n`;
  const keyed = ["--tag", `${app}:{key}`, "--push"];
  const first = await build(text, ...keyed);
  expect(first.exitCode, first.stderr).toBe(0);
  for (const options of [["--skip-existing"], ["--lock", "bough.lock"], []]) {
    const again = await build(text, ...keyed, ...options);
    expect([again.exitCode, JSON.parse(again.stdout).tag], again.stderr).toEqual([
      0,
      JSON.parse(first.stdout).tag,
    ]);
  }
  for (const more of ["", "RUN cat /opt/odd/file\n"]) {
    const whole = await build(`${text}${more}`, "--tag", `${app}:{key}`, "--lock", "bough.lock");
    expect(whole.exitCode, whole.stderr).toBe(0);
  }
});

test("what such an image lacks here comes when a RUN, a name or an export needs it", async () => {
  const copied = `FROM ${registry.host}/chunked:1\nCOPY file /opt/odd/\n`;
  expect((await build(copied, ...pushTo(app))).exitCode).toBe(0);
  const fetched = await missingLayers();
  const ran = await build(`${copied}RUN cat /opt/odd/file /opt/hard && wc -c /large\n`);
  expect(ran.stderr).toContain("COPY file /opt/odd/");
  expect(ran.stderr).toContain(`content`);
  expect([fetched > 0, await missingLayers()], ran.stderr).toEqual([true, 0]);

  home = temporaryDirectory();
  const named = await build(copied.replace("COPY", "COPY --chown=nobody"), ...pushTo(app));
  expect([named.exitCode, await missingLayers()], named.stderr).toEqual([0, 0]);
});

test.each([[["forged", "chunked"]], [["chunked", "forged"]], [["base-only", "forged", "chunked"]]])(
  "a false table of a base with the same layers changes nothing for another: %p",
  async (names) => {
    const place = `${app.slice(registry.host.length + 1)}`;
    const output = (name: string) => ["-o", `type=registry,name=${app}/${name}:1,rewrite-timestamp=true`];
    const epoch = ["--build-arg", "SOURCE_DATE_EPOCH=1000000000"];
    const dockerfile = (name: string) => `FROM ${registry.host}/${name}:1\nCOPY file /opt/odd/\n`;
    await bough("images", "import", `${registry.host}/chunked:1`);
    expect((await build(dockerfile("chunked"), ...epoch, ...output("whole"))).exitCode).toBe(0);
    home = temporaryDirectory();
    for (const name of names) {
      // A build that only configures the base learns of its tables, too.
      const configured = `FROM ${registry.host}/chunked:1\nENV A=1\n`;
      const text = name === "base-only" ? configured : dockerfile(name);
      const built = await build(text, ...epoch, ...output(name));
      expect(built.exitCode, built.stderr).toBe(0);
    }
    const added = async (name: string) => (await manifestOf(`${place}/${name}`)).layers.at(-1)?.digest;
    expect(await added("chunked")).toBe(await added("whole"));
    expect(await added("forged")).not.toBe(await added("whole"));
    // Without thin images, too.
    const run = await build(`${dockerfile("chunked")}RUN true\n`, ...epoch, ...output("run"));
    expect(run.exitCode, run.stderr).toBe(0);
    expect(await added("run")).toBe(await added("whole"));
  },
);

test("a base that was only configured is not fetched for files either", async () => {
  const from = `FROM ${registry.host}/chunked:1\n`;
  expect((await build(`${from}ENV A=1\n`, ...pushTo(app))).exitCode).toBe(0);
  const built = await build(`${from}COPY file /opt/odd/\n`, ...pushTo(app));
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.bytes).toBeLessThan(thinBytes);
});

test("layers that several bases have are listed once", async () => {
  registry.push(`oci:${join(chunked, "layout")}`, "also-chunked:1");
  for (const name of ["chunked", "also-chunked", "chunked"]) {
    const built = await build(
      `FROM ${registry.host}/${name}:1\nCOPY file /opt/odd/${name}\n`,
      ...pushTo(app),
    );
    expect(built.exitCode, built.stderr).toBe(0);
    expect(built.bytes).toBeLessThan(thinBytes);
  }
  const { layers } = await manifestOf("chunked");
  expect(await missingLayers()).toBeGreaterThanOrEqual(layers.length);
});

test("as an ordinary user, too, and the image is the same", async () => {
  const user = makeOrdinaryUser();
  const commands = makeUserBough(user);
  try {
    const dockerfile = `FROM ${registry.host}/chunked:1\nCOPY --chmod=600 tree /opt/odd/new/\nWORKDIR /opt/odd\n`;
    const output = (place: string) => ["-o", `type=registry,name=${place}:1,rewrite-timestamp=true`];
    const epoch = ["--build-arg", "SOURCE_DATE_EPOCH=1000000000"];
    const own = await build(dockerfile, ...epoch, ...output(app));
    const context = user.give(directory, "context");
    const words = ["--local", "build", "--docker", context, "--format", "json", ...epoch];
    const thin = await commands.run([...words, ...output(`${app}-user`)], {
      workingDirectory: user.home,
      environment: { BOUGH_HOME: join(user.home, "state") },
    });
    expect(thin.exitCode, thin.stderr).toBe(0);
    expect(thin.stderr).not.toContain("importing");
    expect(JSON.parse(thin.stdout).digest).toBe(JSON.parse(own.stdout).digest);
  } finally {
    commands.close();
    user.remove();
  }
});

test("an error of a COPY is the same", async () => {
  const dockerfile = `FROM ${registry.host}/chunked:1\nCOPY file /opt/hard/below\n`;
  const thin = await build(dockerfile, ...pushTo(app));
  await bough("images", "import", `${registry.host}/chunked:1`);
  const whole = await build(dockerfile, ...pushTo(app));
  expect([thin.exitCode, errorIn(thin)]).toEqual([1, errorIn(whole)]);
  expect(errorIn(thin).error.message).toContain("/opt/hard");
});

test.each([...damages.slice(1).map(([name]) => name), "a registry without ranges"])(
  "a base with tables that can't be used is imported: %s",
  async (name) => {
    await using front = startFront(registry, (request) => {
      if (!request.headers.has("range") || name.includes("-")) return undefined;
      request.headers.delete("range");
      return front.forward(request);
    });
    const base = `${front.host}/${name.includes("-") ? name : "chunked"}:1`;
    const built = await build(`FROM ${base}\nCOPY file /opt/odd/\n`, ...pushTo(`${front.host}/app${count}`));
    expect([built.exitCode, await missingLayers()], built.stderr).toEqual([0, 0]);
  },
);

test("twenty targets with files of their own fetch only tables, once, and a prune leaves nothing of these", async () => {
  const names = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const targetOf = (name: string) => ({
    "dockerfile-inline": `FROM ${registry.host}/chunked:1\nCOPY <<EOF /opt/odd/${name}\n${name}\nEOF\nWORKDIR /new\n`,
    tags: [`${app}/${name}:1`],
  });
  const target = Object.fromEntries(names.map((name) => [name, targetOf(name)]));
  writeFiles(directory, { "docker-bake.json": JSON.stringify({ target }) });
  const baked = await bough("bake", ...names, "--push", "--drop-pushed");
  expect(baked.exitCode, baked.stderr).toBe(0);
  expect(baked.bytes).toBeLessThan(20 * thinBytes);
  const { layers } = await manifestOf("chunked");
  const gets = layers.map(({ digest }) => `GET /v2/chunked/blobs/${digest}`);
  expect(baked.requests.filter((request) => gets.includes(request)).sort()).toEqual(gets.sort());
  const listings = () => readdirSync(join(home, "engine/listings")).length;
  expect(listings()).toBe(layers.length);
  await bough("rmi", `${registry.host}/chunked:1`);
  expect((await bough("engine", "prune", "--all", "--yes")).exitCode).toBe(0);
  expect(listings()).toBe(0);
});

test.each([
  ["COPY", "COPY file /new/", []],
  ["WORKDIR", "WORKDIR /new", []],
  ["RUN", "RUN true", []],
  ["another output", "", ["-o", "type=oci,dest=out.tar"]],
  ["another registry", "", ["-t", "OTHER/app:1"]],
])("a build with %s imports its base", async (_, instruction, words) => {
  const more = words.map((word) => word.replace("OTHER", other.host));
  const built = await build(`FROM ${registry.host}/base:1\n${instruction}\n`, ...more, ...pushTo(app));
  expect(built.exitCode, built.stderr).toBe(0);
  expect(built.requests).toContain(`GET /v2/base/blobs/${layer}`);
  expect(await missingLayers()).toBe(0);
});

test("a later build fetches what its RUN needs, once, and so does a trigger of the base", async () => {
  const from = `FROM ${registry.host}/base:1\n${configuration}`;
  await build(from, ...pushTo(app));
  expect(await missingLayers()).toBeGreaterThan(0);
  for (const name of ["one", "two"]) {
    const built = await build(`${from}RUN wc -c /large && echo ${name}\n`);
    expect(built.stderr).toContain(`${layerBytes} /large`);
    expect(built.requests.includes(`GET /v2/base/blobs/${layer}`), built.stderr).toBe(name === "one");
  }
  expect(await missingLayers()).toBe(0);
  const triggered = await build(`FROM ${registry.host}/triggers:1\nCMD x\n`, ...pushTo(app));
  expect(triggered.stderr).toContain(`${layerBytes} /large`);
  expect(triggered.exitCode).toBe(0);
});

test("an import brings what the machine lacks", async () => {
  await build(`FROM ${registry.host}/base:1\n${configuration}`, ...pushTo(app));
  expect((await bough("images", "import", `${registry.host}/base:1`)).exitCode).toBe(0);
  expect(await missingLayers()).toBe(0);
});

test("the result can be run and exported, here and elsewhere", async () => {
  const built = await build(`FROM ${registry.host}/base:1\nCMD ["wc", "-c", "/large"]\n`, ...pushTo(app));
  const { image } = JSON.parse(built.stdout);
  expect((await bough("images", "export", image, "docker-archive:out.tar")).exitCode).toBe(0);
  const inArchive = ["tar", "-xOf", join(directory, "out.tar"), "manifest.json"];
  expect(JSON.parse(Bun.spawnSync(inArchive).stdout.toString())[0].Layers).toHaveLength(1);
  const pushed = await bough("push", image, `${other.host}/app${count}:1`);
  expect(pushed.exitCode, pushed.stderr).toBe(0);
  for (const place of [image, `${app}:1`, `${other.host}/app${count}:1`]) {
    if (place !== image) home = temporaryDirectory();
    if (place !== image) await bough("images", "import", place);
    const ran = await bough("run", place, "wc", "-c", "/large");
    expect([place, ran.stdout], ran.stderr).toEqual([place, `${layerBytes} /large\n`]);
  }
});

test("a registry that mounts nothing gets the layer", async () => {
  await using front = startFront(registry, (request) => {
    const url = new URL(request.url);
    if (!url.searchParams.has("mount")) return undefined;
    return front.forward(new Request(`${url.origin}${url.pathname}`, { method: "POST" }));
  });
  const place = `${front.host}/app${count}`;
  const built = await build(`FROM ${front.host}/base:1\n${configuration}`, ...pushTo(place));
  expect(built.exitCode, built.stderr).toBe(0);
  // Passed on from the base's repository: this machine keeps none of it.
  expect(await missingLayers()).toBeGreaterThan(0);
  home = temporaryDirectory();
  const ran = await bough("run", `${place}:1`, "wc", "-c", "/large");
  expect(ran.stdout, ran.stderr).toBe(`${layerBytes} /large\n`);
});

test("the error for a wrong base is that of any other build", async () => {
  const closed = await Registry.start({ username: "ada", password: "secret" });
  try {
    for (const [host, name] of [
      [registry.host, "none:1"],
      [registry.host, "base:none"],
      [closed.host, "base:1"],
      ["127.0.0.1:1", "base:1"],
    ]) {
      const dockerfile = `FROM ${host}/${name}\n${configuration}`;
      const pushed = await build(dockerfile, ...pushTo(`${host}/app`));
      const plain = await build(dockerfile);
      const errorIn = ({ stderr }: { stderr: string }) =>
        JSON.parse(/^\{"error".*/m.exec(stderr)?.[0] ?? "{}");
      expect([pushed.exitCode, errorIn(pushed)]).toEqual([1, errorIn(plain)]);
      expect(errorIn(pushed).error.message).toContain(`${host}/${name}`);
    }
  } finally {
    await closed.stop();
  }
});

test("if the base has gone since, a build that needs it says so, and none that finds its layers does", async () => {
  let isGone = false;
  await using front = startFront(registry, (request) => {
    const { pathname, searchParams } = new URL(request.url);
    const isOfBase = pathname.startsWith("/v2/base/") || searchParams.has("from");
    if (!isGone || !isOfBase) return undefined;
    return new Response('{"errors":[{"code":"MANIFEST_UNKNOWN"}]}', { status: 404 });
  });
  const from = `FROM ${front.host}/base:1\n${configuration}`;
  const place = `${front.host}/app${count}`;
  expect((await build(from, ...pushTo(place))).exitCode).toBe(0);
  isGone = true;
  for (const [dockerfile, to] of [
    [`${from}RUN true\n`, place],
    [from, `${place}-elsewhere`],
  ] as const) {
    const built = await build(dockerfile, ...pushTo(to));
    expect(built.exitCode, built.stderr).toBe(1);
    expect(built.stderr).toContain(`${front.host}/base`);
  }
  expect((await build(from, ...pushTo(place))).exitCode).toBe(0);
  isGone = false;
  expect((await build(`${from}RUN true\n`, ...pushTo(place))).exitCode).toBe(0);
});

test("twenty targets of a bake fetch nothing, and the base comes once with one that needs it", async () => {
  const targetOf = (name: string, instruction: string) => ({
    "dockerfile-inline": `FROM ${registry.host}/base:1\n${instruction}\n`,
    tags: [`${app}/${name}:1`],
  });
  const thin = Array.from({ length: 20 }, (_, index) => `t${index}`);
  const targets = { ...Object.fromEntries(thin.map((name) => [name, targetOf(name, `ENV T=${name}`)])) };
  writeFiles(directory, {
    "docker-bake.json": JSON.stringify({
      target: { ...targets, ran: targetOf("ran", "RUN test -f /large") },
    }),
  });
  const baked = await bough("bake", ...thin, "--push");
  expect(baked.exitCode, baked.stderr).toBe(0);
  expect(baked.bytes).toBeLessThan(20 * thinBytes);
  expect(baked.requests.filter((request) => request.startsWith("GET /v2/base/"))).toHaveLength(2);
  home = temporaryDirectory();
  const all = await bough("bake", ...thin, "ran", "--push", "--drop-pushed");
  expect(all.exitCode, all.stderr).toBe(0);
  expect(all.requests.filter((request) => request === `GET /v2/base/blobs/${layer}`)).toHaveLength(1);
});
