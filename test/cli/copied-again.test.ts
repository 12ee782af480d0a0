/** A COPY of many files of which few have changed: the others are hard links to the layer before. Only their number of names tells. */
import { beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { chmodSync, lstatSync, readdirSync, rmSync, symlinkSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

setDefaultTimeout(120_000);

/** Enough for the layer to be remembered. */
const count = 1_200;

let layout: string;
beforeAll(async () => {
  layout = await makeBusyboxLayout(temporaryDirectory());
});

class Project {
  readonly home = temporaryDirectory();
  readonly context: string;

  /** `context`: one that another project has written, which stays as it is. */
  constructor(context: string) {
    this.context = context;
  }

  static make(dockerfile: string): Project {
    const context = temporaryDirectory();
    const files = Array.from({ length: count }, (_, index) => [`src/d${index % 7}/f${index}`, `${index}\n`]);
    writeFiles(context, {
      Dockerfile: dockerfile,
      ".dockerignore": "Dockerfile\n",
      ...Object.fromEntries(files),
    });
    return new Project(context);
  }

  async run(...words: string[]): Promise<string> {
    const ended = await runBough(["--local", ...words], {
      ...{ workingDirectory: this.context, environment: { BOUGH_HOME: this.home } },
    });
    if (ended.exitCode !== 0) throw new Error(ended.stderr);
    return ended.stdout.trim();
  }

  async import(): Promise<this> {
    await this.run("images", "import", layout, "--tag", "base:1");
    return this;
  }

  build = (tag: string, ...words: string[]) => this.run("build", "--docker", "-t", tag, ...words, ".");

  /** Paths of a file in all layers, the latest last. */
  versions(path: string): string[] {
    const layers = join(this.home, "engine/layers");
    return readdirSync(layers)
      .sort((one, other) => Number.parseInt(one, 36) - Number.parseInt(other, 36))
      .map((name) => join(layers, name, path))
      .filter((place) => lstatSync(place, { throwIfNoEntry: false }) !== undefined);
  }

  /** True if the last two layers share a file. */
  isShared(path: string): boolean {
    const [before, last] = this.versions(path).slice(-2);
    if (before === undefined || last === undefined) throw new Error(`${path} is not in two layers`);
    return lstatSync(before).ino === lstatSync(last).ino;
  }

  /** The digests of an image's layers, which cover contents, owners, modes and times. */
  async digests(tag: string): Promise<unknown> {
    const out = temporaryDirectory();
    await this.run("images", "export", tag, `oci:${out}:${tag}`);
    const read = (digest: string) => Bun.file(join(out, "blobs", digest.replace(":", "/"))).json();
    const { manifests } = await Bun.file(join(out, "index.json")).json();
    return (await read(manifests[0].digest)).layers;
  }
}

const only = "FROM base:1 AS app\nCOPY src /src\n";

test("what has changed is copied, and the image is that of a first build", async () => {
  const project = await Project.make(only).import();
  await project.build("one");
  const at = (path: string) => join(project.context, "src", path);
  writeFileSync(at("d1/f1"), "changed\n");
  chmodSync(at("d2/f2"), 0o755);
  utimesSync(at("d3/f3"), 1_000_000_000, 1_000_000_000);
  rmSync(at("d4/f4"));
  symlinkSync("f5", at("d4/f4"));
  writeFileSync(at("d5/new"), "5\n");
  await project.build("two");
  expect(
    ["d0/f7", "d6/f6", "d1/f1", "d2/f2", "d3/f3"].map((path) => project.isShared(`src/${path}`)),
  ).toEqual([true, true, false, false, false]);
  // Files of a lower layer have their own number of names in a container, too.
  const names = ["/src/d0/f7", "/src/d1/f1"];
  expect(await project.run("run", "two", "stat", "-c", "%h", ...names)).toBe("2\n1");
  const fresh = await new Project(project.context).import();
  await fresh.build("two");
  expect(await project.digests("two")).toEqual(await fresh.digests("two"));
  expect(await project.digests("two")).not.toEqual(await project.digests("one"));
});

test("a command that writes to such a file changes no other image", async () => {
  const project = await Project.make(
    `${only}RUN echo run >> /src/d0/f0 && chmod 600 /src/d0/f7 && rm /src/d0/f14\n`,
  ).import();
  await project.build("one");
  writeFileSync(join(project.context, "src/d1/f1"), "changed\n");
  await project.build("two");
  expect(await project.run("run", "two", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nrun\nchanged");
  expect(await project.run("run", "one", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nrun\n1");
  expect(await project.run("run", "one", "stat", "-c", "%a", "/src/d0/f7", "/src/d1/f1")).toBe("600\n644");
});

test("a build without the cache copies all files: those of the layer before may be damaged", async () => {
  const project = await Project.make(only).import();
  await project.build("one");
  writeFileSync(project.versions("src/d0/f0")[0] ?? "", "!\n");
  for (const option of ["--no-cache", "--no-cache-filter=app"]) {
    await project.build("two", option);
    expect(project.isShared("src/d0/f7")).toBe(false);
    expect(await project.run("run", "two", "cat", "/src/d0/f0")).toBe("0");
  }
});

test("an image keeps its files when the one before is removed", async () => {
  const project = await Project.make(only).import();
  const layerBytes = async () => JSON.parse(await project.run("engine", "df", "-f", "json")).layers.bytes;
  await project.build("app");
  const before = await layerBytes();
  writeFileSync(join(project.context, "src/d1/f1"), "changed\n");
  await project.build("app");
  // What two layers share is on the disk once.
  expect((await layerBytes()) - before).toBeLessThan(100);
  await project.run("engine", "prune", "-y");
  expect(project.versions("src/d0/f0")).toHaveLength(1);
  expect(lstatSync(project.versions("src/d0/f0")[0] ?? "").nlink).toBe(1);
  expect(await project.run("run", "app", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nchanged");
  writeFileSync(join(project.context, "src/d1/f1"), "again\n");
  await project.build("app");
  expect(await project.run("run", "app", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nagain");
});

test("a file that the image has already is not its second name", async () => {
  const before = "FROM base:1\nRUN true\nCOPY src /src\n";
  const project = await Project.make(before).import();
  await project.build("one");
  // The files of /first are those of the layer before, by other names.
  const after = before.replace("RUN true", "COPY --from=one /src /first");
  writeFileSync(join(project.context, "Dockerfile"), after);
  await project.build("two");
  const inode = (path: string) => lstatSync(project.versions(path).at(-1) ?? "").ino;
  expect(inode("first/d0/f0")).toBe(lstatSync(project.versions("src/d0/f0")[0] ?? "").ino);
  expect(inode("src/d0/f0")).not.toBe(inode("first/d0/f0"));
});
