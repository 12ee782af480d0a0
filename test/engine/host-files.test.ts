/** Files of this machine that the engine reads from their paths, for a client in the same process. */
import { afterAll, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type HostFile, HostFiles } from "../../src/service/wire/file.ts";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { openSharedEngine } from "../support/shared-engine.ts";

function prepare(root: string): void {
  mkdirSync(join(root, "usr/lib/taken"), { recursive: true });
  symlinkSync("usr/lib", join(root, "lib"));
  writeFileSync(join(root, "usr/lib/old"), "old");
  symlinkSync("/etc/passwd", join(root, "usr/lib/outward"));
}

const { engine, base } = await openSharedEngine({ prepare });
const directory = mkdtempSync(join(tmpdir(), "bough-host-files-"));
afterAll(() => rmSync(directory, { recursive: true, force: true }));

let made = 0;

/** Makes a file with that content, for the path `destination`. */
function fileFor(destination: string, content: string | Uint8Array, attributes: Partial<HostFile> = {}) {
  const path = join(directory, `file${made++}`);
  writeFileSync(path, content);
  const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  const size = Buffer.byteLength(content);
  const file = { destination, path, sha256, size, uid: 0, gid: 0, mode: 0o644, mtime: undefined };
  return { ...file, ...attributes, path };
}

const large = Buffer.alloc(3_000_000, "large");

test("they have the given attributes, are placed in order through the image's links, and stay unchanged here", async () => {
  const stored = await engine.upload("stored");
  const own = fileFor("/a/own", "own");
  const { path: _, ...described } = fileFor("/a/stored", "stored");
  const files = [
    own,
    { ...described, uuid: stored.uuid },
    fileFor("/a/b/attributes", "#!/bin/sh\n", { uid: 7, gid: 8, mode: 0o6755, mtime: 1_000_000_000.5 }),
    fileFor("/a/large", large, { mode: 0o600, mtime: 1_000_000_000 }),
    fileFor("/a/empty", ""),
    fileFor("/lib/old", "through a link"),
    fileFor("/usr/lib/twice", "first"),
    fileFor("/lib/twice", "second"),
    fileFor("/usr/lib/outward", "no link"),
    fileFor("/../a b/\n\\é'\"$x", "odd"),
  ];
  const command = `cd /a; stat -c '%n %a %u:%g' b; for f in [!b]* b/attributes; do stat -c '%n %a %u:%g %s' $f; done; stat -c '%Y' b/attributes large
cat /a/stored /usr/lib/old /usr/lib/twice /usr/lib/outward '/a b/'*; head -c 4 /etc/passwd; echo more >> own`;
  const { stdout, operation } = await engine.runWith(base, files, command);
  expect(operation.error).toBeNull();
  expect(stdout).toBe(
    `${[
      "b 755 0:0",
      "empty 644 0:0 0",
      "large 600 0:0 3000000",
      "own 644 0:0 3",
      "stored 644 0:0 6",
      "b/attributes 6755 7:8 10",
      "1000000000",
      "1000000000",
      "storedthrough a linksecondno linkoddroot",
    ].join("\n")}`,
  );
  expect(await Bun.file(own.path).text()).toBe("own");
});

test("4000 files, copied on threads: later ones replace earlier ones at the same path", async () => {
  const [one, other] = [fileFor("", "first"), fileFor("", "again")];
  const indexes = Array.from({ length: 2000 }, (_, index) => index);
  const files = indexes.map((index) => ({ ...one, destination: `/many/${index % 7}/${index}` }));
  const again = indexes.map((index) => ({ ...other, destination: `/link/${index % 7}/${index}` }));
  const request = { entries: { "/link": { type: "symlink" as const, target: "/many", uid: 0, gid: 0 } } };
  const image = (await engine.runWith(base, [...files, ...again], "", request)).image ?? "";
  const { stdout } = await engine.run(image, "cat $(find /many -type f) | fold -w 5 | sort | uniq -c");
  expect(stdout.trim().split(/\s+/)).toEqual(["2000", "again"]);
});

test("a file that was replaced while the layer was made is not taken from it again", async () => {
  const given = { mtime: 1_000_000_000 };
  const [one, other] = [fileFor("", "first", given), fileFor("", "again", given)];
  const indexes = Array.from({ length: 2000 }, (_, index) => index);
  const files = indexes.map((index) => ({ ...one, destination: `/many/${index % 7}/${index}` }));
  const again = { ...other, destination: "/link/0/0" };
  const request = { entries: { "/link": { type: "symlink" as const, target: "/many", uid: 0, gid: 0 } } };
  const earlier = (await engine.runWith(base, [...files, again], "", request)).image ?? "";
  expect((await engine.run(earlier, "cat /many/0/0")).stdout).toBe("again");
  await engine.engine.settle?.(earlier);
  const image = (await engine.runWith(base, files, "", { ...request, earlier_image: earlier })).image ?? "";
  expect((await engine.run(image, "cat /many/0/0")).stdout).toBe("first");
});

test.each<[what: string, change: Partial<HostFile>, isTaken: boolean]>([
  ["the same", {}, true],
  ["another owner", { uid: 5 }, false],
  ["another mode", { mode: 0o600 }, false],
  ["another time", { mtime: 1_000_000_001 }, false],
  ["an attribute", { attributes: { "user.a": "eA==" } }, false],
  ["a second name", { links: ["/many/other"] }, false],
  ["other content", fileFor("", "other"), false],
])("a file of the layer before that is %s", async (_, change, isTaken) => {
  const one = fileFor("", "first", { mtime: 1_000_000_000 });
  const files = Array.from({ length: 1200 }, (_, index) => ({ ...one, destination: `/many/${index}` }));
  const first = await engine.runWith(base, files, "", { entries: {} });
  await engine.engine.settle?.(first.image ?? "");
  const [changed = one, ...others] = files;
  const last = { ...changed, ...change, destination: changed.destination };
  const second = await engine.runWith(base, [last, ...others], "", {
    entries: {},
    earlier_image: first.image ?? "",
  });
  const inodes = async (path: string) =>
    Promise.all(
      [first, second].map(
        async ({ image = "" }) => (await engine.run(image ?? "", `stat -c %i ${path}`)).stdout,
      ),
    );
  const [before, after] = await inodes("/many/0");
  expect(before === after).toBe(isTaken);
  const [otherBefore, otherAfter] = await inodes("/many/1");
  expect(otherBefore).toBe(otherAfter);
});

describe("the layer before", () => {
  const one = fileFor("", "first", { mtime: 1_000_000_000 });
  const files = Array.from({ length: 1200 }, (_, index) => ({ ...one, destination: `/kept/${index}` }));

  test("files that are gone from there are copied", async () => {
    const source = (await engine.run(base, "mkdir /source && echo source > /source/file")).image ?? "";
    const copies = [{ image: source, sources: ["/source"], destination: "/copy" }];
    // Such an image's files may be those of the layer before: each is looked at.
    const linked = (await engine.runWith(base, [], "", { copies })).image ?? "";
    const earlier = (await engine.runWith(linked, files, "", { entries: {} })).image ?? "";
    await engine.engine.settle?.(earlier);
    const layers = join(engine.directory, "layers");
    const directory = readdirSync(layers).find((name) => existsSync(join(layers, name, "kept/7")));
    rmSync(join(layers, directory ?? "", "kept/7"));
    const request = { entries: {}, earlier_image: earlier };
    const { image = "", operation } = await engine.runWith(linked, files, "", request);
    expect(operation.error).toBeNull();
    expect((await engine.run(image, "cat /kept/6 /kept/7")).stdout).toBe("firstfirst");
  });

  test("its image is in use until the operation ends", async () => {
    const earlier = (await engine.runWith(base, [fileFor("/f", "first")], "", { entries: {} })).image ?? "";
    const uuid = await engine.spawn({
      ...{ image: base, command: "read line", host_files: new HostFiles(() => [fileFor("/f", "again")]) },
      ...{ stdin: { value: "", encoding: "ascii", close: false } as never, earlier_image: earlier },
    });
    const remove = () => engine.fetch("DELETE", `/v1/images/${earlier}`);
    expect((await remove()).status).toBe(409);
    await engine.closeInput({ uuid });
    await engine.finish({ uuid });
    expect((await remove()).ok).toBe(true);
  });
});

/** Changes of a file after it was hashed. */
const changes: [what: string, change: (path: string, size: number) => void][] = [
  ["was written over", (path, size) => writeFileSync(path, Buffer.alloc(size, "y"))],
  ["has grown", (path) => appendFileSync(path, "more")],
  ["has shrunk", (path, size) => truncateSync(path, size / 2)],
  ["is empty", (path) => truncateSync(path, 0)],
  ["has vanished", (path) => rmSync(path)],
  [
    "is a directory",
    (path) => {
      rmSync(path);
      mkdirSync(path);
    },
  ],
  [
    "is a link",
    (path) => {
      renameSync(path, `${path}.target`);
      symlinkSync(`${path}.target`, path);
    },
  ],
  [
    "is a pipe",
    (path) => {
      rmSync(path);
      Bun.spawnSync(["mkfifo", path]);
    },
  ],
];

function requireRefused({ operation }: { operation: OperationRecord }, path: string): void {
  expect(operation.status).toBe("FAILED");
  expect(operation.error).toBe(
    `cannot put a file at /o/changed: ${path} changed while it was being read. Build again when nothing writes to it any more.`,
  );
  expect(operation.result?.image ?? null).toBeNull();
}

describe.each([
  ["small", 20_000],
  ["large", 3_000_000],
])("a %s file that has changed since it was hashed", (_, size) => {
  test.each(changes)("is an error with its path, and there is no image, if it %s", async (_, change) => {
    const file = fileFor("/o/changed", Buffer.alloc(size, "x"));
    change(file.path, size);
    requireRefused(await engine.runWith(base, [file], "true"), file.path);
  });
});

test("a thread finds the one changed file of thousands", async () => {
  const [first, file] = [fileFor("/o/0", "same"), fileFor("/o/changed", "x")];
  rmSync(file.path);
  const others = Array.from({ length: 2000 }, (_, index) => ({ ...first, destination: `/o/${index}` }));
  requireRefused(await engine.runWith(base, [...others, file, ...others], "true"), file.path);
});

test("a directory at the path, or a file on the way, fails the operation", async () => {
  const errors: unknown[] = [];
  for (const destination of ["/usr/lib/taken", "/usr/lib/old/f"])
    errors.push((await engine.runWith(base, [fileFor(destination, "x")], "true")).operation.error);
  expect(errors).toEqual([
    "cannot put a file at /usr/lib/taken: there is a directory in the image",
    "cannot put a file at /usr/lib/old/f: /usr/lib/old in the image is not a directory",
  ]);
});

test("a stored file without its bytes is an error", async () => {
  const { path: _, ...described } = fileFor("/f", "never stored");
  const { operation } = await engine.runWith(base, [{ ...described, uuid: crypto.randomUUID() }], "true");
  expect(operation.error).toContain("no longer has the bytes that were uploaded (for /f): upload again");
});

test("no request can name them", async () => {
  const request = { image: base, command: "true", shell: false, cwd: "/", disposable: true };
  const response = await engine.fetch("POST", "/v1/instances", {
    ...request,
    host_files: [fileFor("/f", "of this machine")],
  });
  expect([response.status, await response.json()]).toEqual([
    400,
    { status: 400, error: "host_files is not a known field" },
  ]);
});

describe("a mount of such files", () => {
  /** Runs a command with the files at /m, and returns its output, or the error. */
  async function mount(files: readonly HostFile[], command: string, readonly = true): Promise<string> {
    const mounts = [
      { type: "bind" as const, target: "/m", host_files: new HostFiles(() => files), readonly },
    ];
    const { operation, stdout } = await engine.runWith(base, [], command, { mounts });
    return operation.error ?? stdout;
  }

  test.each([true, false])("shows them, read-only: %p", async (readonly) => {
    const { path: _, ...stored } = fileFor("/d/stored", "stored\n");
    const files = [
      fileFor("/own", "own\n", { uid: 7, gid: 8, mode: 0o640, links: ["/d/linked"] }),
      { ...stored, uuid: (await engine.upload("stored\n")).uuid },
      fileFor("/large", large),
    ];
    const seen = await mount(
      files,
      "cd /m; cat own d/linked d/stored; stat -c '%a %u:%g %h' own; cmp large d/stored >/dev/null || wc -c < large",
      readonly,
    );
    expect(seen).toBe("own\nown\nstored\n640 7:8 2\n3000000\n");
  });

  test("is a file itself if that is the only path", async () => {
    expect(await mount([fileFor("/", "lone\n")], "cat /m")).toBe("lone\n");
  });

  test("fails if a file has changed since it was hashed", async () => {
    const file = fileFor("/a", "before");
    writeFileSync(file.path, "behind");
    expect(await mount([file], "cat /m/a")).toContain(
      `cannot mount at /m: ${file.path} changed while it was being read`,
    );
  });
});
