/** Files that change while a build reads them: noticed, and never sent as what was hashed before. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  mkdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

let context: string;
let state: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService();
  service.state.addImage("base:1");
});
afterEach(async () => {
  await service.close();
});

async function build() {
  return await runBough(["--url", service.url, "--token", "t0ken-t0ken", "build", "."], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state },
  });
}

/** What becomes of the file at `path`, of `size` bytes. */
const changes: [what: string, change: (path: string, size: number) => void][] = [
  ["is written over", (path, size) => writeFileSync(path, Buffer.alloc(size, "y"))],
  ["grows", (path) => appendFileSync(path, "more")],
  ["shrinks", (path, size) => truncateSync(path, size / 2)],
  ["becomes empty", (path) => truncateSync(path, 0)],
  ["vanishes", (path) => rmSync(path)],
  [
    "is replaced by another, as long and as old",
    (path, size) => {
      const { atimeMs, mtimeMs } = statSync(path);
      writeFileSync(`${path}.new`, Buffer.alloc(size, "z"));
      utimesSync(`${path}.new`, atimeMs / 1000, mtimeMs / 1000);
      renameSync(`${path}.new`, path);
    },
  ],
  [
    "becomes a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
  [
    "becomes a link to another",
    (path, size) => {
      rmSync(path);
      writeFileSync(`${path}.target`, Buffer.alloc(size, "t"));
      symlinkSync(`${path}.target`, path);
    },
  ],
  [
    "becomes a pipe",
    (path) => {
      rmSync(path);
      Bun.spawnSync(["mkfifo", path]);
    },
  ],
];

/** An instruction after the COPY that has to ask the image something, and then the RUN that needs the file. */
const dockerfile = "FROM base:1\nCOPY file /file\nENV PATH=/opt/bin:$PATH\nRUN use it\n";

function prepare(size: number): { path: string; sha256: string } {
  const content = Buffer.alloc(size, "x");
  writeFiles(context, { Dockerfile: dockerfile });
  writeFileSync(join(context, "file"), content);
  return {
    path: join(context, "file"),
    sha256: new Bun.CryptoHasher("sha256").update(content).digest("hex"),
  };
}

/** What the service has under a hash has that hash, and what a command was given is what was hashed. */
function requireTruth(sha256: string): void {
  const files = [...service.state.files.values()];
  for (const file of files) {
    if (file.content === undefined) continue;
    expect(new Bun.CryptoHasher("sha256").update(file.content).digest("hex")).toBe(file.sha256);
  }
  const given = service.state.instances.flatMap(({ files }) => Object.values(files ?? {}));
  expect(given.filter(({ uuid }) => files.find((file) => file.uuid === uuid)?.sha256 !== sha256)).toEqual([]);
}

describe.each([
  ["small", 20_000],
  ["large", 3_000_000],
])("a %s file between its hashing and its upload", (_, size) => {
  test.each(changes)("%s: the build fails, and says so", async (_, change) => {
    // Of an image that was never started from no layer is known, and nothing waits until it is needed.
    writeFiles(context, { Dockerfile: "FROM base:1\n" });
    expect((await build()).exitCode).toBe(0);
    const { path, sha256 } = prepare(size);
    service.intercept = ({ method, url }) => {
      if (method === "POST" && url.endsWith("/v1/instances")) {
        service.intercept = undefined;
        change(path, size);
      }
      return undefined;
    };
    const ended = await build();
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toMatch(/file (changed|vanished) while|cannot read \S*file/);
    expect(ended.stderr).not.toContain("bough itself failed");
    expect(service.state.instances.map(({ command }) => command)).toEqual(["env"]);
    requireTruth(sha256);
  });
});

describe.each([
  ["uploaded", 48],
  ["uploaded and hashed at once", 64],
])("a file while it is %s", (_, mebibytes) => {
  const size = mebibytes * 1024 * 1024;

  test.each(changes)("%s: nothing passes for what it was", async (_, change) => {
    const { path, sha256 } = prepare(size);
    service.intercept = ({ method, url }) => {
      if (method === "POST" && url.endsWith("/v1/files")) {
        service.intercept = undefined;
        change(path, size);
      }
      return undefined;
    };
    const ended = await build();
    expect(ended.stderr).not.toContain("bough itself failed");
    if (ended.exitCode !== 0)
      expect(ended.stderr).toMatch(/file (changed|vanished) while|cannot read \S*file/);
    requireTruth(sha256);
  });
});

describe("on a service that does not say what it has stored", () => {
  test.each(changes)("a file that %s", async (_, change) => {
    await service.close();
    service = await startFakeService({ reportsHashes: false });
    service.state.addImage("base:1");
    const size = 8 * 1024 * 1024;
    const { path, sha256 } = prepare(size);
    service.intercept = ({ method, url }) => {
      if (method === "POST" && url.endsWith("/v1/files")) {
        service.intercept = undefined;
        change(path, size);
      }
      return undefined;
    };
    const ended = await build();
    expect(ended.stderr).not.toContain("bough itself failed");
    requireTruth(sha256);
  });
});
