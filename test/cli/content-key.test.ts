/** Content keys: what changes them, that they are equal on each machine, and what finding them asks of a registry. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { utimesSync } from "node:fs";
import { join } from "node:path";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

let registry: Registry;
let base: string;
beforeAll(async () => {
  registry = await Registry.start();
  const environment = ["PATH=/bin", "PLACE=/srv"];
  registry.push(await makeBusyboxLayout(temporaryDirectory(), { environment }), "base:1");
  base = `${registry.host}/base:1`;
});
afterAll(() => registry.stop());

const bough = (directory: string, words: string[], home: string = temporaryDirectory()) =>
  runBough(["--local", ...words], { workingDirectory: directory, environment: { BOUGH_HOME: home } });

type Files = Readonly<Record<string, FileSpec>>;

const dockerfile = () =>
  [
    "ARG LEVEL=1",
    `FROM ${base} AS tools`,
    "ARG LEVEL",
    "RUN echo $LEVEL > /level",
    "FROM scratch AS unused",
    "COPY other /",
    `FROM ${base}`,
    "ARG UNUSED",
    "WORKDIR $PLACE",
    "COPY --from=tools /level ./",
    "COPY a.txt dir ./",
    "ADD <<END /document",
    "text",
    "END",
    "RUN --mount=type=bind,source=mounted,target=/m --mount=type=secret,id=token cat /m/x",
    "LABEL one=1",
    'CMD ["sh"]',
  ].join("\n");

const files: Files = {
  "a.txt": "a\n",
  "dir/b.txt": "b\n",
  "dir/link": { link: "b.txt" },
  "mounted/x": "x\n",
  other: "other\n",
};

/** Returns the key of a build of these files, each time on a machine of its own. */
async function keyOf(changed: Files = {}, ...options: string[]): Promise<string> {
  const directory = temporaryDirectory();
  writeFiles(directory, { Dockerfile: dockerfile(), ...files, ...changed });
  // Of no file does the time count.
  utimesSync(join(directory, "other"), Math.random() * 1e9, 0);
  const { exitCode, stdout, stderr } = await bough(directory, [
    ...["build", "--docker", "--print-key", "."],
    ...options,
  ]);
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^[0-9a-f]{64}\n$/);
  return stdout.trim();
}

test("a key is the same on each machine, wherever the context is", async () => {
  expect(await keyOf()).toBe(await keyOf());
});

const inDockerfile = (from: string, to: string) => () => ({ Dockerfile: dockerfile().replace(from, to) });

describe("is the same after a change that the image does not have", () => {
  test.each<[string, () => Files, ...string[]]>([
    [
      "comments and empty lines",
      () => ({ Dockerfile: `# check=skip=all\n${dockerfile().replace("LABEL", "\n# two\nLABEL")}\n` }),
    ],
    ["a file that nothing copies", () => ({ more: "more\n" })],
    ["a stage that the target does not need", () => ({ other: "changed\n" })],
    ["a line of the history", inDockerfile("LABEL one=1", "LABEL   one=1")],
    ["another Dockerfile's name", () => ({}), "--build-context", "unused-name=dir"],
    ["the value of a secret", () => ({ token: "x" }), "--secret", "id=token,src=token"],
    ["limits of a RUN", () => ({}), "--memory", "64m"],
    ["a tag", () => ({}), "--tag", "app:{key}"],
  ])("%s", async (_, changed, ...options) => {
    expect(await keyOf(changed(), ...options)).toBe(await keyOf());
  });
});

describe("differs after a change of", () => {
  test.each<[string, () => Files, ...string[]]>([
    ["a RUN", inDockerfile("cat /m/x", "cat  /m/x")],
    ["a stage that is copied from", inDockerfile("> /level", ">> /level")],
    ["a build argument that a RUN sees", () => ({}), "--build-arg", "LEVEL=2"],
    ["a build argument that a RUN may see", () => ({}), "--build-arg", "UNUSED=2"],
    ["a file", () => ({ "a.txt": "b\n" })],
    ["a file's mode", () => ({ "a.txt": { text: "a\n", mode: 0o755 } })],
    ["a file's name", () => ({ "dir/c.txt": "c\n" })],
    ["a link's target", () => ({ "dir/link": { link: "elsewhere" } })],
    ["what an ignore file leaves out", () => ({ ".dockerignore": "dir/link\n" })],
    ["a file of a mount", () => ({ "mounted/x": "y\n" })],
    ["the text of a here-document", inDockerfile("text\n", "other\n")],
    ["a destination", inDockerfile("dir ./", "dir ./sub/")],
    ["an owner", inDockerfile("COPY a.txt", "COPY --chown=1 a.txt")],
    ["a mode of a COPY", inDockerfile("COPY a.txt", "COPY --chmod=700 a.txt")],
    ["the WORKDIR", inDockerfile("$PLACE", "$PLACE/x")],
    ["a label", inDockerfile("one=1", "one=2")],
    ["a label of the command line", () => ({}), "--label", "two=2"],
    ["the command", inDockerfile('["sh"]', '["ash"]')],
    ["a network", () => ({}), "--network", "none"],
    ["the target", () => ({}), "--target", "tools"],
    ["the platform", () => ({}), "--platform", "linux/amd64,linux/arm64"],
    [
      "a named context",
      inDockerfile("COPY a.txt", "COPY --from=dir /b.txt /\nCOPY a.txt"),
      "--build-context",
      "dir=dir",
    ],
    ["an annotation", () => ({}), "--push", "--tag", "127.0.0.1:1/app:1", "--annotation", "a=b"],
    ["a signature", () => ({}), "--push", "--tag", "127.0.0.1:1/app:1", "--sign", "key=a.key"],
    ["compression", () => ({}), "-o", "type=registry,name=127.0.0.1:1/app:1,compression=zstd"],
  ])("%s", async (_, changed, ...options) => {
    expect(await keyOf(changed(), ...options)).not.toBe(await keyOf());
  });
});

test("differs between Docker's meaning and bough's own", async () => {
  const directory = temporaryDirectory();
  const home = temporaryDirectory();
  writeFiles(directory, { Dockerfile: `FROM ${base}\nCOPY a.txt /\n`, "a.txt": "a\n" });
  const keys: string[] = [];
  for (const dialect of [["--docker"], []]) {
    const { stdout } = await bough(directory, ["build", ...dialect, "--print-key", "."], home);
    expect(stdout).toMatch(/^[0-9a-f]{64}\n$/);
    keys.push(stdout);
  }
  expect(keys[0]).not.toBe(keys[1] ?? "");
});

describe("build and bake print the same key, by what options mean", () => {
  const known = new Map<string, string>();
  test.each<[meaning: string, build: string[], target: object, bake?: string[]]>([
    ["an image alone", [], {}],
    ["an image alone", ["--provenance=false"], { attest: ["type=provenance,disabled=true"] }],
    ["an image alone", ["--sbom=false"], {}, ["--sbom=false"]],
    ["an image alone", ["--attest=type=provenance", "--provenance=0"], {}, ["--provenance=false"]],
    ["an image alone", ["-o", "type=registry,compression=gzip"], { output: ["type=image"] }],
    ["an image alone", ["-o", "type=image,push=true"], { output: ["type=cacheonly"] }],
    ["an image alone", ["--sign=false"], {}, ["--sign=false"]],
    ["an image alone", ["--load", "--push"], { output: ["type=docker", "type=registry"] }],
    ["a provenance", ["--provenance"], {}, ["--provenance=true"]],
    ["a provenance", ["--attest", "type=provenance"], { attest: [{ type: "provenance", mode: "max" }] }],
    ["a provenance", ["--provenance=mode=max"], { attest: ["type=provenance,disabled=false"] }],
    ["a provenance", ["--provenance=mode=max,inline-only=true"], {}, ["--provenance=mode=max", "--push"]],
    ["a small provenance", ["--provenance=mode=min"], { attest: ["type=provenance,mode=min"] }],
    ["packages", ["--sbom"], {}, ["--sbom=1"]],
    ["packages", ["--attest=type=sbom"], { attest: ["type=sbom"] }],
    [
      "packages of a scanner",
      ["--sbom=generator=x,A=1,B=2"],
      { attest: [{ type: "sbom", B: "2", generator: "x", A: "1" }] },
    ],
    [
      "packages of another",
      ["--sbom=generator=x,A=2,B=2"],
      { attest: [{ type: "sbom", generator: "x", A: "2", B: "2" }] },
    ],
    ["an annotation", ["--annotation", "a=b"], { annotations: ["manifest:a=b"] }],
    ["an annotation", ["--annotation=a=c", "--annotation=a=b"], { annotations: ["a=b"] }, ["--push"]],
    [
      "an annotation",
      ["-o", "type=image,push=true,annotation.a=b"],
      { output: ["type=image,annotation.a=b"] },
    ],
    [
      "an annotation that has the key",
      ["-o", "type=image,push=true,annotation.a={key}"],
      { output: ["type=image,annotation.a={key}"] },
    ],
    ["one of the index", ["--annotation", "index:a=b"], { annotations: ["index:a=b"] }],
    ["zstd", ["-o", "type=registry,compression=zstd"], { output: ["type=image,compression=zstd"] }],
    [
      "times of files",
      ["-o", "type=registry,rewrite-timestamp=1", "--build-arg", "SOURCE_DATE_EPOCH=5"],
      { output: ["type=image,rewrite-timestamp=true"], args: { SOURCE_DATE_EPOCH: "5" } },
    ],
    [
      "other times of files",
      ["-o", "type=registry,rewrite-timestamp=1", "--build-arg", "SOURCE_DATE_EPOCH=6"],
      { output: ["type=image,rewrite-timestamp=true"], args: { SOURCE_DATE_EPOCH: "6" } },
    ],
    ["a signature by a key", ["--sign", "key=a.key"], {}, ["--sign", "key=b/other.key"]],
    ["a logged one", ["--sign", "key=a.key,tlog=true"], {}, ["--sign", "tlog=1,key=a.key"]],
    ["one of an identity", ["--sign", "keyless"], {}, ["--sign", "token=token.txt"]],
    ["an index of one platform", ["--build-arg", "BUILDKIT_MULTI_PLATFORM"], {}],
  ])("%s: build %p", async (meaning, options, target, more = []) => {
    const directory = temporaryDirectory();
    const args = { BUILDKIT_MULTI_PLATFORM: "true" };
    const environment = { BOUGH_HOME: temporaryDirectory(), ...args };
    const tag = "127.0.0.1:1/app:1";
    const targets = { app: { tags: [tag], ...(meaning.startsWith("an index") && { args }), ...target } };
    writeFiles(directory, {
      Dockerfile: `FROM ${base}\n`,
      "docker-bake.json": JSON.stringify({ target: targets }),
    });
    const pushed = options.includes("-o") ? options : ["--push", ...options];
    const keys: unknown[] = [];
    for (const words of [
      ["build", "--docker", ".", "-t", tag, "--print-key", ...pushed],
      ["bake", "app", "--print-keys", "-q", ...more],
    ]) {
      const { exitCode, stdout, stderr } = await runBough(["--local", ...words], {
        ...{ workingDirectory: directory, environment },
      });
      expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
      keys.push(stdout.trim());
    }
    const [key = ""] = keys;
    expect(keys).toEqual([known.getOrInsertComputed(meaning, () => String(key)), key]);
    expect([...known].filter(([, other]) => other === key)).toEqual([[meaning, String(key)]]);
  });
});

describe("bases", () => {
  const layoutOf = async (version: string, configuration = {}) =>
    makeBusyboxLayout(temporaryDirectory(), {
      configuration,
      prepare: (root) => writeFiles(root, { version }),
    });
  const pushed = async (name: string, version: string, configuration = {}) => {
    registry.push(await layoutOf(version, configuration), name);
    return `${registry.host}/${name}`;
  };
  const printKey = async (directory: string, home: string, ...options: string[]) => {
    const ended = await bough(directory, ["build", "--docker", "--print-key", ".", ...options], home);
    expect({ ...ended, stdout: "" }).toMatchObject({ exitCode: 0 });
    return ended.stdout.trim();
  };

  test("count by what their registry has now, and a build with a key starts from that", async () => {
    const name = await pushed("moved:1", "older\n");
    const home = temporaryDirectory();
    const directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: `FROM ${name}\nRUN cat /version\n` });
    expect((await bough(directory, ["build", "--docker", "."], home)).stderr).toContain("older\n");
    const older = await printKey(directory, home);
    expect(older).toBe(await printKey(directory, temporaryDirectory()));

    await pushed("moved:1", "newer\n");
    const newer = await printKey(directory, home);
    expect(newer).not.toBe(older);
    expect(newer).toBe(await printKey(directory, temporaryDirectory()));
    const built = await bough(directory, ["build", "--docker", ".", "-t", "app:{key}"], home);
    expect(built).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("newer\n") });
    expect(built.stdout).toContain(`app:${newer} `);
  });

  test("are asked for a manifest and a configuration, once for all targets, and no layer is fetched", async () => {
    const name = await pushed("asked:1", "1\n");
    const directory = temporaryDirectory();
    writeFiles(directory, {
      Dockerfile: `FROM ${name}\nARG NAME\nRUN echo $NAME\n`,
      "docker-bake.json": JSON.stringify({
        target: {
          env: {
            matrix: { name: ["a", "b", "c"] },
            name: "env-${name}",
            args: { NAME: "${name}" },
            tags: ["env:{key}"],
          },
        },
      }),
    });
    const before = registry.requests().length;
    const { exitCode, stdout, stderr } = await bough(directory, [
      "bake",
      "env",
      "--print-keys",
      "--format",
      "json",
    ]);
    expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
    const keys: Record<string, { key: string; tags: string[] }> = JSON.parse(stdout);
    expect(Object.keys(keys)).toEqual(["env-a", "env-b", "env-c"]);
    expect(new Set(Object.values(keys).map(({ key }) => key)).size).toBe(3);
    for (const { key, tags } of Object.values(keys)) expect(tags).toEqual([`env:${key}`]);
    const requests = registry
      .requests()
      .slice(before)
      .map((line) => line.replace(/sha256:\w+/, "DIGEST"));
    expect(requests).toEqual(["GET /v2/", "GET /v2/asked/manifests/1", "GET /v2/asked/blobs/DIGEST"]);
  });

  test("bring their triggers, whose files count", async () => {
    const name = await pushed("triggers:1", "1\n", { OnBuild: ["COPY a.txt /"] });
    const directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: `FROM ${name}\n`, "a.txt": "a\n" });
    const home = temporaryDirectory();
    const before = await printKey(directory, home);
    writeFiles(directory, { "a.txt": "b\n" });
    expect(await printKey(directory, home)).not.toBe(before);
  });

  test("that no registry has count by their contents", async () => {
    const directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: "FROM own:1\nRUN true\n" });
    const layout = await layoutOf("1\n");
    const keys: string[] = [];
    for (const home of [temporaryDirectory(), temporaryDirectory()]) {
      await bough(directory, ["images", "import", layout, "--tag", "own:1"], home);
      keys.push(await printKey(directory, home));
    }
    expect(keys[0]).toBe(keys[1] ?? "");
    const missing = await bough(directory, [
      "build",
      "--docker",
      "--print-key",
      ".",
      "--build-context",
      "own:1=docker-image://tag:none:1",
    ]);
    expect(missing).toMatchObject({ exitCode: 1, stdout: "" });
    expect(missing.stderr).toContain("tag:none:1 has no content key: there is no such image");
  });
});

test("a target that is made of another one has a key that depends on it", async () => {
  const keysWith = async (text: string) => {
    const directory = temporaryDirectory();
    writeFiles(directory, {
      "docker-bake.json": JSON.stringify({
        target: {
          lower: { "dockerfile-inline": `FROM ${base}\nENV A=${text}\nRUN echo ${text}\n` },
          upper: { contexts: { low: "target:lower" }, "dockerfile-inline": "FROM low\nRUN echo $A\n" },
        },
      }),
    });
    const { stdout } = await bough(directory, ["bake", "upper", "--print-keys"]);
    expect(stdout).toMatch(/^TARGET +KEY\nupper +[0-9a-f]{64}\n$/);
    return stdout;
  };
  expect(await keysWith("1")).toBe(await keysWith("1"));
  expect(await keysWith("2")).not.toBe(await keysWith("1"));
});

test("what a URL has counts, and the build takes only that", async () => {
  let content = "first\n";
  const server = Bun.serve({ port: 0, hostname: "127.0.0.1", fetch: () => new Response(content) });
  try {
    const directory = temporaryDirectory();
    const home = temporaryDirectory();
    writeFiles(directory, {
      Dockerfile: `FROM ${base}\nRUN true\nADD http://127.0.0.1:${server.port}/x /x\n`,
    });
    const print = () => bough(directory, ["build", "--docker", "--print-key", "."], home);
    const { stdout: first } = await print();
    expect((await print()).stdout).toBe(first);
    content = "second\n";
    expect((await print()).stdout).not.toBe(first);
  } finally {
    await server.stop(true);
  }
});

test("a build with a key connects once: it asks the service nothing twice that a build without one asks once", async () => {
  const service = await startFakeService({ extensions: ["scratch", "entries"] });
  try {
    const directory = temporaryDirectory();
    writeFiles(directory, { Dockerfile: "FROM scratch\nCOPY a.txt /\n", "a.txt": "a\n" });
    const asked: string[][] = [];
    for (const tag of ["app:1", "app:{key}"]) {
      const before = service.requests.length;
      const { exitCode, stderr } = await runBough(["build", "--docker", ".", "-t", tag], {
        workingDirectory: directory,
        environment: {
          ...{ CONTREE_URL: service.url, CONTREE_TOKEN: "token" },
          BOUGH_HOME: temporaryDirectory(),
        },
      });
      expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 });
      expect(stderr.split("service: ").length).toBe(2);
      asked.push(
        service.requests
          .slice(before)
          .map(({ method, path }) => `${method} ${path}`.replace(/[0-9a-f]{8}-[0-9a-f-]{27}/, "ID")),
      );
    }
    expect(asked[1]).toEqual(asked[0] ?? []);
  } finally {
    await service.close();
  }
});

test("a build whose files change meanwhile gets no tag with a key", async () => {
  const directory = temporaryDirectory();
  const home = temporaryDirectory();
  writeFiles(directory, {
    Dockerfile: `FROM ${base}\nCOPY a.txt /\nRUN echo begun; sleep 0.1\n`,
    "a.txt": "a\n",
  });
  const { exitCode, stdout, stderr } = await runBough(
    ["--local", "build", "--docker", ".", "-t", "app:{key}"],
    {
      workingDirectory: directory,
      environment: { BOUGH_HOME: home },
      onStderr(text) {
        if (/^begun$/m.test(text)) writeFiles(directory, { "a.txt": "changed\n" });
      },
    },
  );
  expect({ exitCode, stdout }).toEqual({ exitCode: 1, stdout: "" });
  expect(stderr).toContain(
    "files have changed while the image was built: its content key is no longer true\nBuild again",
  );
  expect((await bough(directory, ["images", "--format", "json"], home)).stdout).not.toContain("app:");
});
