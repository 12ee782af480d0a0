/** Files that change while a build reads them: bough notices, and never sends them under the hash of the old contents. */
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
import { boughOn } from "../fake-service/bough-on.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { temporaryDirectory } from "../support/bough.ts";
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

const build = () => boughOn(service, ["build", "."], { context, state });

/** Changes of the file at `path`, which has `size` bytes. */
const changes: [what: string, change: (path: string, size: number) => void][] = [
  ["is overwritten", (path, size) => writeFileSync(path, Buffer.alloc(size, "y"))],
  ["grows", (path) => appendFileSync(path, "more")],
  ["shrinks", (path, size) => truncateSync(path, size / 2)],
  ["becomes empty", (path) => truncateSync(path, 0)],
  ["vanishes", (path) => rmSync(path)],
  [
    "is replaced by another file of the same size and time",
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
    "becomes a link to another file",
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

/** After the COPY, an ENV that needs the image's environment, then the RUN that needs the file. */
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

/** Calls `change` when the service gets the next such request. */
function beforeNext(request: string, change: () => void): void {
  service.intercept = ({ method, url }) => {
    if (`${method} ${new URL(url).pathname}` === request) {
      service.intercept = undefined;
      change();
    }
    return undefined;
  };
}

/** Checks that each stored file has its recorded hash, and that commands received only the file with the hash `sha256`. */
function expectConsistentFiles(sha256: string): void {
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
  test.each(changes)("%s: the build fails with the reason", async (_, change) => {
    // bough knows no layer of an image that no build has used: the file would be sent at once, not when it is needed.
    writeFiles(context, { Dockerfile: "FROM base:1\n" });
    expect((await build()).exitCode).toBe(0);
    const { path, sha256 } = prepare(size);
    beforeNext("POST /v1/instances", () => change(path, size));
    const ended = await build();
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toMatch(/file (changed|vanished) while|cannot read \S*file/);
    expect(ended.stderr).not.toContain("bough itself failed");
    expect(service.state.instances.map(({ command }) => command)).toEqual(["env"]);
    expectConsistentFiles(sha256);
  });
});

describe.each([
  ["uploaded", 16],
  ["uploaded and hashed at once", 64],
])("a file while it is %s", (_, mebibytes) => {
  const size = mebibytes * 1024 * 1024;

  test.each(changes)("%s: no contents are stored or used under another hash", async (_, change) => {
    const { path, sha256 } = prepare(size);
    beforeNext("POST /v1/files", () => change(path, size));
    const ended = await build();
    expect(ended.stderr).not.toContain("bough itself failed");
    if (ended.exitCode !== 0)
      expect(ended.stderr).toMatch(/file (changed|vanished) while|cannot read \S*file/);
    expectConsistentFiles(sha256);
  });
});

describe("a file on its way to a service that does not report hashes", () => {
  test.each(changes)("%s: no contents are stored or used under another hash", async (_, change) => {
    await service.close();
    service = await startFakeService({ reportsHashes: false });
    service.state.addImage("base:1");
    const size = 8 * 1024 * 1024;
    const { path, sha256 } = prepare(size);
    beforeNext("POST /v1/files", () => change(path, size));
    const ended = await build();
    expect(ended.stderr).not.toContain("bough itself failed");
    expectConsistentFiles(sha256);
  });
});
