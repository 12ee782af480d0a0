/** A COPY of many files of which few have changed: the others are hard links to the layer before, which nobody may notice. */
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

  constructor(dockerfile: string, context = temporaryDirectory()) {
    this.context = context;
    const files = Array.from({ length: count }, (_, index) => [`src/d${index % 7}/f${index}`, `${index}\n`]);
    writeFiles(context, {
      Dockerfile: dockerfile,
      ".dockerignore": "Dockerfile\n",
      ...Object.fromEntries(files),
    });
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

  build = (tag: string) => this.run("build", "--docker", "-t", tag, ".");

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
  async digests(): Promise<unknown> {
    await this.run("build", "--docker", "-o", "type=oci,tar=false,dest=../out", ".").catch((error) => {
      throw error;
    });
    const out = join(this.context, "../out");
    const read = (digest: string) => Bun.file(join(out, "blobs", digest.replace(":", "/"))).json();
    const { manifests } = await Bun.file(join(out, "index.json")).json();
    const { layers } = await read(manifests[0].digest);
    rmSync(out, { recursive: true });
    return layers;
  }
}

const only = "FROM base:1\nCOPY src /src\n";

test("what has changed is copied, and the image is that of a first build", async () => {
  const project = await new Project(only).import();
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
  ).toEqual([...[true, true, false, false, false]]);
  const fresh = await new Project(only, project.context).import();
  expect(await project.digests()).toEqual(await fresh.digests());
});

test("a command that writes to such a file changes no other image", async () => {
  const project = await new Project(
    `${only}RUN echo run >> /src/d0/f0 && chmod 600 /src/d0/f7 && rm /src/d0/f14\n`,
  ).import();
  await project.build("one");
  writeFileSync(join(project.context, "src/d1/f1"), "changed\n");
  await project.build("two");
  expect(await project.run("run", "two", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nrun\nchanged");
  expect(await project.run("run", "one", "cat", "/src/d0/f0", "/src/d1/f1")).toBe("0\nrun\n1");
  expect(await project.run("run", "one", "stat", "-c", "%a", "/src/d0/f7", "/src/d1/f1")).toBe("600\n644");
});

test("an image keeps its files when the one before is removed", async () => {
  const project = await new Project(only).import();
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
  const dockerfile = `FROM base:1 AS other\nCOPY src /src\nFROM base:1\nCOPY --from=other /src /first\nCOPY src /src\n`;
  const project = await new Project(dockerfile).import();
  await project.build("one");
  writeFileSync(join(project.context, "src/d1/f1"), "changed\n");
  await project.build("two");
  const names = ["/first/d0/f0", "/src/d0/f0"];
  const [first, second] = (await project.run("run", "two", "stat", "-c", "%i", ...names)).split("\n");
  expect(first).not.toBe(second);
});
