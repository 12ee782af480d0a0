/** `bough images import`: credentials that are not shown, an interruption that reaches the service, progress. */
import { describe, expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startImportProgress } from "../../src/terminal/import-progress.ts";
import type { Log } from "../../src/terminal/log.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";
import { tarOf } from "../support/tar-bytes.ts";

const environmentOf = (url: string) => ({
  BOUGH_HOME: temporaryDirectory(),
  CONTREE_URL: url,
  CONTREE_TOKEN: "t0ken-t0ken",
});

test("a password goes from standard input into the request, and is not shown", async () => {
  const service = await startFakeService({ importError: () => "unauthorized" });
  const ended = await runBough(
    ["-L", "debug", "images", "import", "registry.example/app:1", "--username", "me", "--password-stdin"],
    { workingDirectory: "/", environment: environmentOf(service.url), stdin: "pass word\n" },
  );
  await service.close();
  expect(service.requestsTo("POST /v1/images/import")[0]?.json).toMatchObject({
    registry: { credentials: { username: "me", password: "pass word" } },
  });
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain("unauthorized");
  expect(ended.stdout + ended.stderr).not.toContain("pass word");
});

test.each([
  ["oci:layout:1", "oci:HERE/layout:1"],
  ["oci:layout", "oci:HERE/layout"],
  ["oci:./layout:1", "oci:./layout:1"],
  // There is no such directory, so this is an image named oci, with a tag.
  ["oci:1.0", "docker://docker.io/library/oci:1.0"],
])("%s means %s, relative to the working directory", async (given, url) => {
  const service = await startFakeService();
  const workingDirectory = temporaryDirectory();
  mkdirSync(join(workingDirectory, "layout"));
  const environment = environmentOf(service.url);
  const { exitCode } = await runBough(["images", "import", given], { workingDirectory, environment });
  await service.close();
  expect(exitCode).toBe(0);
  expect(service.requestsTo("POST /v1/images/import")[0]?.json).toMatchObject({
    registry: { url: url.replace("HERE", workingDirectory) },
  });
});

test.each([
  ["base.tar", "base.tar is a file, not the name of an image\nGive its kind: docker-archive:./base.tar for"],
  ["./tree", "./tree is a directory, not the name of an image\nGive its kind: oci:./tree for an OCI layout"],
])("%s, which exists, is refused with the kinds of files and directories", async (given, problem) => {
  const workingDirectory = temporaryDirectory();
  mkdirSync(join(workingDirectory, "tree"));
  writeFileSync(join(workingDirectory, "base.tar"), "");
  const { exitCode, stderr } = await runBough(["images", "import", given], { workingDirectory });
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(problem) });
});

test("an archive of docker save is imported like docker load does it: each image with its names, or without a name", async () => {
  const directory = temporaryDirectory();
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const bough = async (line: string) => {
    const ended = await runBough(["--local", ...line.split(" ")], {
      workingDirectory: directory,
      environment,
    });
    return { ...ended, json: () => JSON.parse(ended.stdout) };
  };
  const layer = (name: string) => Buffer.from(tarOf([{ name, content: name }]));
  const config = (bytes: Buffer) => {
    const diff_ids = [`sha256:${new Bun.CryptoHasher("sha256").update(bytes).digest("hex")}`];
    const architecture = process.arch === "arm64" ? "arm64" : "amd64";
    return JSON.stringify({ architecture, os: "linux", rootfs: { type: "layers", diff_ids } });
  };
  const images = [
    ["one", ["app:1", "registry.example:5000/app:latest"]],
    ["two", ["app:2", "Not/A:tag"]],
    ["three", null],
  ] as const;
  const files = images.flatMap(([name]) => [
    { name: `${name}/layer.tar`, content: layer(name) },
    { name: `${name}.json`, content: config(layer(name)) },
  ]);
  const manifest = images.map(([name, RepoTags]) => ({
    ...{ Config: `${name}.json`, RepoTags, Layers: [`${name}/layer.tar`] },
  }));
  const archive = tarOf([...files, { name: "manifest.json", content: JSON.stringify(manifest) }]);
  writeFileSync(join(directory, "saved.tar"), archive);
  writeFileSync(join(directory, "saved.tar.gz"), Bun.gzipSync(archive));

  const loaded = await bough("-f json images import docker-archive:saved.tar");
  const [one, also, two, three] = loaded.json();
  expect(loaded.json().map(({ tag }: { tag: string | null }) => tag)).toEqual([
    "app:1",
    "registry.example:5000/app:latest",
    "app:2",
    null,
  ]);
  expect(also.image).toBe(one.image);
  expect(loaded.stderr).toContain("Not/A:tag in ");
  expect((await bough(`cat ${two.image}:/two`)).stdout).toBe("two");
  expect((await bough(`cat ${three.image}:/three`)).stdout).toBe("three");

  // The second import, of the compressed archive, moves the tag back.
  await bough(`tag ${three.image} app:1`);
  const again = await bough("-f json images import docker-archive:saved.tar.gz");
  expect(again.json()[0]).toEqual({ image: one.image, tag: "app:1" });
  expect(again.stderr).toContain(`app:1 was image ${three.image}: \`bough tag ${three.image} app:1\` moves`);
  expect(again.stderr).not.toContain("registry.example:5000/app:latest was");
  expect((await bough("cat app:1:/one")).stdout).toBe("one");
  // A single image of the archive; a tag for more than one is refused.
  expect((await bough("-f json images import docker-archive:saved.tar:app:2")).json().image).toBe(two.image);
  expect((await bough("images import docker-archive:saved.tar --tag all:1")).stderr).toContain(
    "more than one image",
  );
});

describe("a newer image under the same names", () => {
  /** Files of an OCI layout with an image, whose entries have these annotations. */
  const layoutOf = (text: string, entries: readonly Record<string, string>[]) => {
    const blobs: Record<string, string> = {};
    const add = (bytes: string) => {
      const hex = new Bun.CryptoHasher("sha256").update(bytes).digest("hex");
      blobs[`blobs/sha256/${hex}`] = bytes;
      return { digest: `sha256:${hex}`, size: Buffer.byteLength(bytes) };
    };
    const type = (kind: string) => `application/vnd.oci.image.${kind}`;
    const layer = add(Buffer.from(tarOf([{ name: "text", content: text }])).toString());
    const architecture = process.arch === "arm64" ? "arm64" : "amd64";
    const rootfs = { type: "layers", diff_ids: [layer.digest] };
    const config = add(JSON.stringify({ architecture, os: "linux", rootfs }));
    const manifest = add(
      JSON.stringify({
        schemaVersion: 2,
        config: { mediaType: type("config.v1+json"), ...config },
        layers: [{ mediaType: type("layer.v1.tar"), ...layer }],
      }),
    );
    const manifests = entries.map((annotations) => ({
      ...{ mediaType: type("manifest.v1+json"), ...manifest, annotations },
    }));
    return {
      ...blobs,
      "oci-layout": '{"imageLayoutVersion":"1.0.0"}',
      "index.json": JSON.stringify({ schemaVersion: 2, manifests }),
    };
  };
  const containerd = (name: string, tag: string) => ({
    "io.containerd.image.name": name,
    "org.opencontainers.image.ref.name": tag,
  });
  const archive = (directory: string, files: Record<string, string>) =>
    writeFileSync(
      join(directory, "image.tar"),
      tarOf(Object.entries(files).map(([name, content]) => ({ name, content }))),
    );

  test.each([
    // As docker buildx writes two tags.
    [
      "oci-archive:image.tar",
      [containerd("docker.io/library/app:1", "1"), containerd("registry.example/b:2", "2")],
      ["app:1", "registry.example/b:2"],
    ],
    // As podman and skopeo write it.
    [
      "oci-archive:image.tar",
      [{ "org.opencontainers.image.ref.name": "localhost/app:1" }],
      ["localhost/app:1"],
    ],
    ["oci:layout", [containerd("docker.io/me/app:1", "1")], ["me/app:1"]],
  ] as const)("%s, %p: the names move to it", async (reference, entries, names) => {
    const directory = temporaryDirectory();
    const environment = { BOUGH_HOME: temporaryDirectory() };
    const bough = (line: string) =>
      runBough(["--local", ...line.split(" ")], { workingDirectory: directory, environment });
    const images: string[] = [];
    for (const text of ["old", "new"]) {
      const files = layoutOf(text, entries);
      archive(directory, files);
      writeFiles(join(directory, "layout"), files);
      const imported = await bough(`-f json images import ${reference}`);
      expect(imported).toMatchObject({ exitCode: 0 });
      const rows = [JSON.parse(imported.stdout)].flat() as { image: string; tag: string }[];
      expect(rows.map(({ tag }) => tag)).toEqual([...names]);
      images.push(rows[0]?.image ?? "");
      for (const name of names) expect((await bough(`cat ${name}:/text`)).stdout).toBe(text);
      const moved = names.filter((name) => imported.stderr.includes(`${name} was image ${images[0]}: `));
      expect(moved).toEqual(text === "old" ? [] : [...names]);
    }
    expect(images[0]).not.toBe(images[1]);
    // One of them, by its name.
    if (entries.length > 1)
      expect((await bough(`-q images import ${reference}:registry.example/b:2 --tag own:1`)).exitCode).toBe(
        0,
      );
  });

  // A tag alone is no name.
  test.each(["1", "latest"])("a tag that is made of the path stays with its image: %s", async (tag) => {
    const directory = temporaryDirectory();
    const environment = { BOUGH_HOME: temporaryDirectory() };
    for (const text of ["old", "new"]) {
      writeFiles(join(directory, "layout"), layoutOf(text, [{ "org.opencontainers.image.ref.name": tag }]));
      const line = ["--local", "-f", "json", "images", "import", "oci:layout"];
      const imported = await runBough(line, { workingDirectory: directory, environment });
      expect(JSON.parse(imported.stdout).tag).toBe(text === "old" ? "layout:latest" : null);
      expect(imported.stderr.includes("layout:latest stays with ")).toBe(text === "new");
    }
  });

  test("of a registry, as docker pull has it", async () => {
    const registry = await Registry.start();
    try {
      const environment = { BOUGH_HOME: temporaryDirectory() };
      const bough = (line: string) =>
        runBough(["--local", ...line.split(" ")], { workingDirectory: "/", environment });
      const name = `${registry.host}/app:1`;
      for (const text of ["old", "new"]) {
        const layout = temporaryDirectory();
        writeFiles(layout, layoutOf(text, [containerd("docker.io/library/app:1", "latest")]));
        registry.push(`oci:${layout}:latest`, "app:1");
        expect((await bough(`images import ${name}`)).exitCode).toBe(0);
        expect((await bough(`cat ${name}:/text`)).stdout).toBe(text);
      }
    } finally {
      await registry.stop();
    }
  });
});

test.each(["docker-archive:none.tar", "oci-archive:none.tar", "oci:none/layout"])(
  "%s is a path, even if it does not exist",
  async (reference) => {
    const workingDirectory = temporaryDirectory();
    const environment = { BOUGH_HOME: temporaryDirectory() };
    const ended = await runBough(["--local", "images", "import", reference], {
      workingDirectory,
      environment,
    });
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toMatch(/cannot read .*\/none.*: no such file or directory/);
  },
);

test("an interruption cancels the import on the service", async () => {
  const service = await startFakeService();
  const operation = service.state.addOperation("image_import", {});
  const { uuid } = operation.record;
  service.intercept = ({ method, url }) =>
    method === "POST" && url.endsWith("/import")
      ? Response.json({ uuid }, { status: 201, headers: { location: `/v1/operations/${uuid}` } })
      : undefined;
  const interruption = new AbortController();
  const ended = runBough(["images", "import", "alpine:3"], {
    workingDirectory: "/",
    environment: environmentOf(service.url),
    signal: interruption.signal,
  });
  while (service.requestsTo(/events$/).length === 0) await Bun.sleep(2);
  interruption.abort(new Error("interrupted"));
  expect((await ended).exitCode).not.toBe(0);
  await service.close();
  expect(operation.record.status).toBe("CANCELLED");
});

function recordingLog(lines: string[]): Log {
  const add = (level: string) => (message: string) => void lines.push(`${level} ${message}`);
  return { debug: add("debug"), info: add("info"), warn: add("warn"), error: add("error") };
}

test("without a terminal a long import logs at intervals that it continues", async () => {
  const clock = createManualClock();
  const lines: string[] = [];
  const log = recordingLog(lines);
  const progress = startImportProgress({ url: "docker://x/y:1", clock, log, terminal: undefined });
  await clock.advance(15_000);
  progress.message("Copying blob \u001b[2Jsha256:12\n");
  await clock.advance(15_000);
  progress.end("imported");
  await clock.advance(60_000);
  expect(lines).toEqual([
    "info importing docker://x/y:1",
    "info still importing docker://x/y:1  15 s",
    "debug Copying blob sha256:12",
    "info still importing docker://x/y:1  30 s  Copying blob sha256:12",
  ]);
});

test("on a terminal it redraws one line, which is cut to the terminal's width", async () => {
  const clock = createManualClock();
  const written: string[] = [];
  const terminal = { columns: 30, rows: 24, write: (text: string) => void written.push(text) };
  const progress = startImportProgress({ url: "docker://x/y:1", clock, log: recordingLog([]), terminal });
  await clock.advance(2_000);
  progress.message("Copying blob sha256:123456");
  expect(written.join("")).toContain("importing docker://x/y:1  2 …");
  expect(written.join("")).not.toContain("sha256");
  progress.end("imported");
  expect(written.at(-1)).toContain("[INFO] imported docker://x/y:1 (2 s)\n");
});

test("on a terminal a long address is cut, and not how much of it has come", async () => {
  const clock = createManualClock();
  const written: string[] = [];
  const terminal = { columns: 70, rows: 24, write: (text: string) => void written.push(text) };
  const url = "docker://registry.example.org/team/project/application:1.0";
  const progress = startImportProgress({ url, doing: "pushing", clock, log: recordingLog([]), terminal });
  progress.message("layer 1/4, 3.0 MB of 12 MB (25%)");
  expect(written.join("")).toContain(
    "pushing docker://registry.exa…  0 s  layer 1/4, 3.0 MB of 12 MB (25%)\u001b",
  );
  progress.end("pushed");
});

test.each([
  [
    "docker://127.0.0.1:1/app:1",
    "Nothing answers at 127.0.0.1:1: start the registry, or correct the address.",
  ],
  ["docker-archive:/nowhere.tar", "Check the path and its contents."],
])("%s fails on the embedded engine with a hint that fits it", async (reference, hint) => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const ended = await runBough(["images", "import", reference], { workingDirectory: "/", environment });
  expect(ended.exitCode).toBe(1);
  expect(ended.stderr).toContain(`${hint}\n`);
});
