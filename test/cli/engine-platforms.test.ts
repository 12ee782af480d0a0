/** Images for several platforms on bough's own engine. The foreign stages only copy: a machine may have no emulator. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

const machine = process.arch === "arm64" ? "arm64" : "amd64";
const other = machine === "arm64" ? "amd64" : "arm64";
const both = `linux/${machine},linux/${other}`;

const dockerfile = `FROM --platform=$BUILDPLATFORM base AS tools
RUN echo tools > /tools
FROM tools AS build
ARG TARGETPLATFORM TARGETARCH BUILDPLATFORM
RUN echo "$(cat /platform) builds for $TARGETPLATFORM on $BUILDPLATFORM" > /built
FROM base
COPY --from=build /built /built
COPY --from=base /platform /copied
CMD ["cat", "/built"]
`;

let directory: string;
let registry: Registry;
beforeAll(async () => {
  directory = temporaryDirectory();
  await makeBusyboxLayout(join(directory, "layout"), {
    architectures: [machine, other],
    prepare: (root, architecture) => writeFileSync(join(root, "platform"), `${architecture}\n`),
  });
  writeFiles(directory, { Dockerfile: dockerfile, arm64: "FROM scratch\nCOPY arm64 /f\n" });
  registry = await Registry.start();
});
afterAll(() => registry.stop());

function createHome() {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  return async (...words: string[]) => {
    const ran = await runBough(["--local", ...words], { workingDirectory: directory, environment });
    return { ...ran, json: () => JSON.parse(ran.stdout) };
  };
}

async function manifestOf(name: string, reference = "1") {
  const accept = "application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json";
  const url = `http://${registry.host}/v2/${name}/manifests/${reference}`;
  const response = await fetch(url, { headers: { accept } });
  return (await response.json()) as {
    manifests: { digest: string; platform: { architecture: string }; annotations?: object }[];
    annotations?: object;
  };
}

const fromLayout = ["build", "--docker", "--allow-local-from", "--build-context", "base=oci-layout://layout"];

test("a build for two platforms runs what is the same once, and writes one index", async () => {
  const bough = createHome();
  const files = ["--iidfile", "iid", "--metadata-file", "metadata.json", "--format", "json"];
  const readText = (path: string) => readFileSync(join(directory, path), "utf8");
  const built = await bough(
    ...fromLayout,
    "--platform",
    both,
    "-t",
    "app:1",
    "-o",
    "type=oci,dest=out,tar=false",
    ...files,
    ".",
  );
  expect(built.exitCode).toBe(0);
  expect(built.stderr.match(/RUN spawned .*echo tools/g)).toHaveLength(1);
  expect(built.stderr).toContain(`[linux/${other} build `);
  const read = (digest: string) =>
    JSON.parse(readFileSync(join(directory, "out/blobs/sha256", digest.slice("sha256:".length)), "utf8"));
  const top = JSON.parse(readFileSync(join(directory, "out/index.json"), "utf8"));
  const index = read(top.manifests[0].digest);
  expect(readText("iid")).toBe(top.manifests[0].digest);
  const { platforms: images, image, ...metadata } = JSON.parse(readText("metadata.json"));
  expect(metadata).toMatchObject({
    "containerimage.digest": top.manifests[0].digest,
    "image.name": "docker.io/library/app:1",
  });
  expect(metadata).not.toContainKey("containerimage.config.digest");
  expect(images).toEqual(
    both.split(",").map((platform) => ({ platform, image: expect.stringMatching(/^[0-9a-f-]{36}$/) })),
  );
  expect(image).toBe(images[0].image);
  expect(built.json()).toMatchObject({ image, platforms: images });
  const found = index.manifests.map(({ platform, digest }: { platform: object; digest: string }) => {
    const config = read(read(digest).config.digest);
    return { platform, architecture: config.architecture, os: config.os, cmd: config.config.Cmd };
  });
  expect(found).toEqual(
    [machine, other].map((architecture) => ({
      platform: { os: "linux", architecture },
      ...{ architecture, os: "linux", cmd: ["cat", "/built"] },
    })),
  );

  const records = (await bough("images", "app", "-f", "json")).json();
  const platforms = records.map(({ platform, tag }: { platform: string; tag: string }) => [tag, platform]);
  expect(platforms.sort()).toEqual(
    [
      ["app:1", `linux/${machine}`],
      ["app:1", `linux/${other}`],
    ].sort(),
  );
  for (const { uuid, platform } of records) {
    const architecture = platform.slice("linux/".length);
    for (const [path, text] of [
      ["/built", `${machine} builds for ${platform} on linux/${machine}\n`],
      ["/copied", `${architecture}\n`],
      ["/platform", `${architecture}\n`],
    ])
      expect([path, (await bough("cat", `${uuid}:${path}`)).stdout]).toEqual([path, text]);
  }
  // The machine's own comes first.
  expect((await bough("inspect", "app:1", "-f", "json")).json().platform).toBe(`linux/${machine}`);

  // A name without a tag, and a newer variant, find the image for the platform; an id has one.
  const [own, foreign] = [machine, other].map(
    (architecture) =>
      records.find(({ platform }: { platform: string }) => platform === `linux/${architecture}`).uuid,
  );
  await bough("tag", own, "plain");
  await bough("tag", foreign, "plain");
  const from = async (name: string, platform: string) => {
    writeFiles(directory, { from: `FROM ${name}\nCOPY from /from\n` });
    const ran = await bough("build", "--docker", "-q", "-f", "from", "--platform", platform, ".");
    return ran.exitCode === 0 ? (await bough("cat", `${ran.stdout.trim()}:/copied`)).stdout : ran.stderr;
  };
  for (const name of ["plain", "app:1"])
    for (const [platform, text] of [
      [`linux/${other}`, `${other}\n`],
      [`linux/${machine}`, `${machine}\n`],
      [`linux/${other}/v9`, `${other}\n`],
    ] as const)
      expect([name, platform, await from(name, platform)]).toEqual([name, platform, text]);
  const isOther = `${foreign} is an image for linux/${other}, and linux/s390x is wanted`;
  expect(await from(foreign, "linux/s390x")).toContain(isOther);
  writeFiles(directory, { from: `FROM ${foreign}\nCOPY from /from\n` });
  expect((await bough("build", "--docker", "-f", "from", ".")).stderr).toContain(
    `${foreign} is an image for linux/${other}, and linux/${machine} is wanted`,
  );
  const run = (...words: string[]) => bough("run", "--platform", ...words);
  expect((await run("linux/s390x", foreign, "true")).stderr).toContain(isOther);
  expect((await run("linux/s390x", foreign.slice(0, 13), "true")).stderr).toContain(
    "and linux/s390x is wanted",
  );
  expect((await run(`linux/${machine}/v9`, "app:1", "cat", "/platform")).stdout).toBe(`${machine}\n`);
  const has = "app:1 has no image for linux/s390x: it has linux/amd64, linux/arm64";
  expect((await run("linux/s390x", "--pull", "never", "app:1", "true")).stderr).toContain(
    `${has}\n--pull missing asks`,
  );

  const again = await bough(...fromLayout, "--platform", both, "-t", "app:1", "--iidfile", "iid", ".");
  expect(again.stderr).not.toContain("spawned");
  const anew = await bough(
    ...[...fromLayout, "--platform", both, "--no-cache", "--jobs", "1"],
    ...["--annotation", "index:a=b", "-o", "type=oci,dest=annotated,tar=false", "."],
  );
  expect(anew.stderr.match(/RUN spawned .*echo tools/g)).toHaveLength(1);
  const { manifests } = JSON.parse(readFileSync(join(directory, "annotated/index.json"), "utf8"));
  const blob = join(directory, "annotated/blobs/sha256", manifests[0].digest.slice("sha256:".length));
  expect(JSON.parse(readFileSync(blob, "utf8")).annotations).toEqual({ a: "b" });
  expect(readText("iid")).toBe(image);
  expect(again.stdout.split("\n").map((line) => line.split(/\s+/).slice(0, 3))).toEqual([
    ["IMAGE", "PLATFORM", "TAG"],
    ...images.map((each: { platform: string; image: string }) => [each.image, each.platform, "app:1"]),
    [""],
  ]);
  const removed = await bough("rmi", "app:1", "-f", "json");
  expect(removed.json()).toHaveLength(2);
  expect((await bough("images", "app", "-q")).stdout).toBe("");
});

test("tag gives a tag to the images for all platforms, and untag takes it from them", async () => {
  const bough = createHome();
  await bough("build", "--docker", "--dockerfile", "arm64", "--platform", both, "-t", "app:1");
  const tags = async () =>
    (await bough("images", "--tagged", "-f", "json")).json().map(({ tag }: { tag: string }) => tag);
  await bough("tag", "docker.io/library/app:1", "app:2");
  expect((await tags()).sort()).toEqual(["app:1", "app:1", "app:2", "app:2"]);
  expect((await bough("untag", "app:1", "-f", "json")).json()).toMatchObject({ removed: ["app:1"] });
  expect(await tags()).toEqual(["app:2", "app:2"]);
});

test("one other platform is built, tagged, pushed, and imported by platform", async () => {
  const bough = createHome();
  const name = `${registry.host}/app:1`;
  const options = ["--platform", both, "-t", name, "--push", "--provenance", "true", "."];
  expect((await bough(...fromLayout, ...options)).exitCode).toBe(0);
  const index = await manifestOf("app");
  const kinds = index.manifests.map(({ platform }) => platform.architecture);
  expect(kinds).toEqual([machine, other, "unknown", "unknown"]);
  // A push of the tag sends the same images.
  const pushed = await bough("push", name, `${registry.host}/copy:1`, "-f", "json");
  expect(pushed.exitCode).toBe(0);
  expect((await manifestOf("copy")).manifests).toEqual(index.manifests.slice(0, 2));

  const elsewhere = createHome();
  writeFiles(directory, { "from-registry": `FROM ${name}\nCOPY from-registry /f\n` });
  for (const architecture of [other, machine]) {
    const platform = `linux/${architecture}`;
    const built = await elsewhere(
      "build",
      "-f",
      "json",
      "--dockerfile",
      "from-registry",
      "--platform",
      platform,
      ".",
    );
    expect(built.stderr).toContain("importing");
    const { image } = built.json();
    expect((await elsewhere("cat", `${image}:/platform`)).stdout).toBe(`${architecture}\n`);
    expect((await elsewhere("inspect", image, "-f", "json")).json().platform).toBe(platform);
  }
  const missing = await elsewhere("run", "--platform", "linux/s390x", name, "true");
  expect(missing.stderr).toContain(
    `${name} has no image for linux/s390x: it has linux/amd64, linux/arm64; importing docker://${name} failed: `,
  );
  expect(missing.stderr).not.toContain("Did you mean");
  const imported = await elsewhere("images", "import", name, "--platform", `linux/${other}`, "-f", "json");
  const records = (await elsewhere("images", name, "-f", "json")).json();
  expect(imported.json().image).toBe(
    records.find(({ platform }: { platform: string }) => platform === `linux/${other}`).uuid,
  );
});

test("images of a registry are joined to an index, which replaces them by platform", async () => {
  const bough = createHome();
  for (const architecture of [machine, other]) {
    const tag = `${registry.host}/one-${architecture}:1`;
    expect(
      (await bough(...fromLayout, "--platform", `linux/${architecture}`, "-t", tag, "--push", ".")).exitCode,
    ).toBe(0);
  }
  const digestOf = async (name: string) =>
    (await bough("index", "inspect", `${registry.host}/${name}:1`, "-q")).stdout.trim();
  const [own, foreign] = [await digestOf(`one-${machine}`), await digestOf(`one-${other}`)];
  const joined = `${registry.host}/joined:1`;
  const create = (...words: string[]) => bough("index", "create", ...words, "-q");
  const dry = await create(joined, `${registry.host}/one-${machine}:1`, "--dry-run");
  expect(JSON.parse(dry.stdout).manifests).toMatchObject([
    { digest: own, platform: { architecture: machine } },
  ]);
  expect((await bough("index", "inspect", joined)).stderr).toMatch(/there is no image .*\nCheck its name/);

  expect((await create(joined, `${registry.host}/one-${machine}:1`)).exitCode).toBe(0);
  expect((await create(joined, "--append", `${registry.host}/one-${other}@${foreign}`)).exitCode).toBe(0);
  expect((await manifestOf("joined")).manifests).toMatchObject([
    { digest: own, platform: { os: "linux", architecture: machine } },
    { digest: foreign, platform: { os: "linux", architecture: other } },
  ]);
  const base = registry.push(`oci:${join(directory, "layout")}:latest`, "base:1");
  expect(base).toStartWith("sha256:");
  expect((await create(joined, "--append", `${registry.host}/base:1`, "--annotation", "a=b")).exitCode).toBe(
    0,
  );
  const replaced = await manifestOf("joined");
  expect(replaced).toMatchObject({ annotations: { a: "b" } });
  expect(replaced.manifests).toEqual((await manifestOf("base")).manifests);
  // An index in an index is taken apart.
  const type = "application/vnd.oci.image.index.v1+json";
  const raw = (await bough("index", "inspect", joined, "--raw")).stdout;
  const digest = `sha256:${new Bun.CryptoHasher("sha256").update(raw).digest("hex")}`;
  const inner = { mediaType: type, digest, size: raw.length };
  const nested = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests: [inner] });
  const put = { method: "PUT", body: nested, headers: { "content-type": type } };
  expect((await fetch(`http://${registry.host}/v2/joined/manifests/nested`, put)).status).toBe(201);
  expect((await create(`${registry.host}/flat:1`, `${registry.host}/joined:nested`)).exitCode).toBe(0);
  expect((await manifestOf("flat")).manifests).toEqual(replaced.manifests);
  // What it does not know stays; Windows has an image for each of its versions.
  const windows = ["10.0.1", "10.0.2"].map((version, at) => ({
    ...replaced.manifests[at],
    artifactType: "a/b",
    platform: { os: "windows", architecture: "amd64", "os.version": version, "os.features": ["x"] },
  }));
  const body = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests: windows });
  await fetch(`http://${registry.host}/v2/joined/manifests/windows`, { ...put, body });
  for (const source of [`${registry.host}/joined:windows`, own])
    expect((await create("--append", joined, source)).exitCode).toBe(0);
  const kept = await manifestOf("joined");
  expect(kept).toMatchObject({ annotations: { a: "b" } });
  expect(kept.manifests).toHaveLength(4);
  expect(kept.manifests).toEqual(expect.arrayContaining(windows));
  // One index stays as it is, with all that it names, also if it has two images for a platform.
  const twice = replaced.manifests.map((entry) => ({
    ...entry,
    platform: { os: "linux", architecture: "amd64" },
  }));
  const doubled = JSON.stringify({ schemaVersion: 2, mediaType: type, manifests: twice });
  await fetch(`http://${registry.host}/v2/joined/manifests/doubled`, { ...put, body: doubled });
  expect((await create(`${registry.host}/copied:1`, `${registry.host}/joined:doubled`)).exitCode).toBe(0);
  expect((await manifestOf("copied")).manifests).toEqual(twice);
  expect(await create("--append", joined, "sha256:12")).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("sha256:12 is not a digest"),
  });
  // What it names has been copied: an empty home runs from it.
  const elsewhere = createHome();
  expect((await elsewhere("run", joined, "cat", "/platform")).stdout).toBe(`${machine}\n`);
  expect((await elsewhere("run", "--platform", "linux/riscv64", joined, "true")).stderr).toContain(
    `\`bough index inspect ${joined}\` lists the platforms`,
  );
});

test("annotations for one platform are those of its manifest and of its entry, as docker buildx has them", async () => {
  const bough = createHome();
  writeFiles(directory, { "one-file": "FROM scratch\nCOPY arm64 /f\n" });
  const name = `${registry.host}/annotated:1`;
  const annotate = (...annotations: string[]) => annotations.flatMap((each) => ["--annotation", each]);
  const given = annotate(
    `manifest[linux/${other}]:a=own`,
    "a=each",
    `manifest-descriptor[linux/${other}]:d=own`,
    "manifest-descriptor:d=each",
    `manifest,manifest-descriptor[linux/${machine}]:both=own`,
    "index:i=index",
  );
  const built = [
    "build",
    "--docker",
    "-f",
    "one-file",
    "--platform",
    both,
    "-t",
    name,
    "--push",
    ...given,
    ".",
  ];
  expect((await bough(...built)).exitCode).toBe(0);
  const index = await manifestOf("annotated");
  const manifests = await Promise.all(index.manifests.map(({ digest }) => manifestOf("annotated", digest)));
  expect(index.annotations).toEqual({ i: "index" });
  expect(index.manifests.map(({ annotations }) => annotations)).toEqual([
    { d: "each", both: "own" },
    { d: "own" },
  ]);
  expect(manifests.map(({ annotations }) => annotations)).toEqual([
    { a: "each", both: "own" },
    { a: "own", both: "own" },
  ]);

  const joined = `${registry.host}/annotated:joined`;
  const createJoined = (...annotations: string[]) =>
    bough("index", "create", ...annotate(...annotations), joined, name);
  const types = [`manifest-descriptor[linux/${other}]:d=new`, "manifest-descriptor:e=each", "j=index"];
  expect((await createJoined(...types)).exitCode).toBe(0);
  const again = await manifestOf("annotated", "joined");
  expect(again.annotations).toEqual({ j: "index" });
  expect(again.manifests.map(({ annotations }) => annotations)).toEqual([
    { d: "each", both: "own", e: "each" },
    { d: "new", e: "each" },
  ]);
  for (const [annotation, message] of [
    [
      "manifest-descriptor[linux/s390x]:a=b",
      "the index has no image for linux/s390x\nIt has images for linux/",
    ],
    ["manifest:a=b", "only the index and the entries of its images are written, no manifest"],
    ["index[linux/arm64]:a=b", "index takes no platform"],
  ] as const)
    expect(await createJoined(annotation)).toMatchObject({
      exitCode: 2,
      stderr: expect.stringContaining(message),
    });
});

test("a failure names its platform, and files of all platforms go to a directory that is made", async () => {
  const bough = createHome();
  writeFiles(directory, {
    "own-only": `FROM base\nARG TARGETARCH\nCOPY only-$TARGETARCH /f\n`,
    [`only-${machine}`]: "x",
    small: "FROM scratch\nARG TARGETARCH\nCOPY arm64 /$TARGETARCH\n",
  });
  const failed = await bough(...fromLayout, "--dockerfile", "own-only", "--platform", both, ".");
  expect(failed.exitCode).not.toBe(0);
  expect(failed.stderr).toContain(`[ERROR] linux/${other}: own-only:3: `);
  const output = ["-o", "type=local,dest=new/deep/out"];
  const built = await bough("build", "--docker", "-f", "small", "--platform", both, ...output, ".");
  expect(built.exitCode).toBe(0);
  expect(built.stderr).toMatch(new RegExp(`^\\[INFO\\] \\[linux/${other} \\d/\\d\\] COPY`, "m"));
  expect(readdirSync(join(directory, "new/deep/out")).sort()).toEqual(["linux_amd64", "linux_arm64"]);
});

test.each<[string, string[], string]>([
  [
    "a platform that the base does not have",
    ["--platform", "linux/riscv64", "."],
    "no image found in image index",
  ],
  ["another system", ["--platform", "windows/amd64", "."], "the service runs only images for Linux"],
  [
    "Docker's archive",
    ["--platform", both, "-o", "type=docker,dest=f.tar", "."],
    "type=docker takes the image of one platform",
  ],
  [
    "an annotation for another one",
    ["--platform", both, "--annotation", "manifest[linux/s390x]:a=b", "-o", "type=oci,dest=g.tar", "."],
    "--annotation for linux/s390x: the image is for linux/",
  ],
  ["something else", ["--platform", "linux/amd64,", "."], 'invalid platform ""'],
])("%s is refused", async (_, words, message) => {
  const built = await createHome()(...fromLayout, ...words);
  expect(built.stderr).toContain(message);
  expect(built.exitCode).not.toBe(0);
});

test("as in Docker, the result has the platform that is asked for, whatever its FROM names", async () => {
  const bough = createHome();
  const from = ["FROM --platform=$BUILDPLATFORM base", "COPY arm64 /f", "CMD cat", ""].join("\n");
  writeFiles(directory, { "from-own": from });
  const options = ["--dockerfile", "from-own", "-t", "own:1"];
  expect((await bough(...fromLayout, ...options, "--platform", both, ".")).exitCode).toBe(0);
  const records = (await bough("images", "own", "-f", "json")).json();
  const platforms = records.map(({ platform }: { platform: string }) => platform);
  expect(platforms.sort()).toEqual(both.split(",").sort());
  for (const { uuid } of records)
    expect((await bough("cat", `${uuid}:/platform`)).stdout).toBe(`${machine}\n`);
  // Without --platform it is the base's.
  writeFiles(directory, { "from-other": from.replace("$BUILDPLATFORM", `linux/${other}`) });
  const built = await bough(...fromLayout, "--dockerfile", "from-other", "--format", "json", ".");
  const { platform } = (await bough("inspect", built.json().image, "-f", "json")).json();
  expect(platform).toBe(`linux/${other}`);
});

// As Docker 28 builds both, too: there is one empty image, whatever its FROM says.
test("FROM scratch is for the platform that is asked for, else for the machine's", async () => {
  const bough = createHome();
  writeFiles(directory, { "scratch-other": `FROM --platform=linux/${other} scratch\nCOPY arm64 /f\n` });
  for (const [words, platform] of [
    [["--dockerfile", "arm64", "--platform", "linux/riscv64"], "linux/riscv64"],
    [["--dockerfile", "scratch-other"], `linux/${machine}`],
    [["--dockerfile", "scratch-other", "--platform", "linux/riscv64"], "linux/riscv64"],
  ] as const) {
    const built = await bough("build", "--docker", "--format", "json", ...words, ".");
    const { platform: found } = (await bough("inspect", built.json().image, "-f", "json")).json();
    expect(found).toBe(platform);
  }
});

test("an image for an older variant suits, if the registry has none for the newer one", async () => {
  const name = `${registry.host}/variants:1`;
  writeFiles(directory, {
    v6: "v6",
    v7: "v7",
    variants: "FROM scratch\nARG TARGETVARIANT\nCOPY $TARGETVARIANT /which\n",
    "from-variants": `FROM ${name}\nCOPY v6 /f\n`,
  });
  const push = ["-f", "variants", "--platform", "linux/arm/v6,linux/arm/v7", "-t", name, "--push", "."];
  expect((await createHome()("build", "--docker", ...push)).exitCode).toBe(0);
  const bough = createHome();
  for (const [variant, which, imports] of [
    ["v6", "v6", true],
    ["v7", "v7", true],
    ["v8", "v7", true],
    ["v8", "v7", false],
  ] as const) {
    const built = await bough(
      "build",
      "-f",
      "json",
      "--dockerfile",
      "from-variants",
      "--platform",
      `linux/arm/${variant}`,
      ".",
    );
    expect([variant, built.stderr.includes("importing")]).toEqual([variant, imports]);
    expect((await bough("cat", `${built.json().image}:/which`)).stdout).toBe(which);
  }
});

test("a tag of this machine with images for other platforms only: the error says which, an older variant suits", async () => {
  const bough = createHome();
  const name = `${registry.host}/nowhere:1`;
  writeFiles(directory, { "from-nowhere": `FROM ${name}\nCOPY arm64 /f\n` });
  const build = (file: string, ...words: string[]) => bough("build", "--docker", "-f", file, ...words, ".");
  expect((await build("arm64", "--platform", "linux/arm/v7,linux/s390x", "-t", name)).exitCode).toBe(0);
  const missing = await build("from-nowhere", "--platform", `linux/${other}`);
  expect(missing.stderr).toContain(
    `${name} has no image for linux/${other}: it has linux/arm/v7, linux/s390x; importing docker://${name} failed: `,
  );
  expect(missing.stderr).toContain(
    `\nBuild ${name} for linux/${other}, too, or write FROM --platform=linux/arm/v7. `,
  );
  // Once the registry has said that it has none, it is not asked in each build.
  for (const asks of [true, false]) {
    const built = await build("from-nowhere", "--platform", "linux/arm/v9");
    expect([built.exitCode, built.stderr.includes("importing")]).toEqual([0, asks]);
  }
});

test("warnings of each platform are shown, and those of several once", async () => {
  const stage = (architecture: string) => `FROM scratch AS ${architecture}\nENV A=$NONE`;
  writeFiles(directory, {
    warned: `${stage("amd64")}\n${stage("arm64")}\nENV B=$OTHER\nFROM $TARGETARCH\nENV C=$BOTH\n`,
  });
  const { stderr } = await createHome()("build", "--docker", "-f", "warned", "--platform", both, ".");
  expect(stderr.match(/line \d+: Usage of undefined variable '\$\w+'/g)?.toSorted()).toEqual([
    "line 2: Usage of undefined variable '$NONE'",
    "line 4: Usage of undefined variable '$NONE'",
    "line 5: Usage of undefined variable '$OTHER'",
    "line 7: Usage of undefined variable '$BOTH'",
  ]);
});
