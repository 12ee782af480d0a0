/** `COPY --from` on a service without copies between images: its requests, the staged files, and refusals. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { checkArchive } from "../../../src/builder/copy/read-source.ts";
import type { TarEntry } from "../../../src/image/tar-reader.ts";
import { type FakeService, startFakeService } from "../../fake-service/fake-service.ts";
import type { FakeTreeEntry } from "../../fake-service/state.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { tarOf } from "../../support/tar-bytes.ts";
import { createImageCopyBuild, type ImageCopyBuild } from "./image-copy-build.ts";

let service: FakeService;
let build: ImageCopyBuild;
let home: string;
let source: string;
let base: string;
beforeEach(async () => {
  service = await startFakeService();
  source = service.state.addImage();
  base = service.state.addImage();
  service.state.trees.set(source, new Map(Object.entries(tree)));
  service.state.trees.set(base, new Map(Object.entries(below)));
  home = temporaryDirectory();
  build = createImageCopyBuild(home, { fetch, baseUrl: service.url });
});
afterEach(async () => {
  build.close();
  await service.close();
});

const tree: Record<string, FakeTreeEntry> = {
  "/app": { type: "directory", mode: 0o711, uid: 7, gid: 8 },
  "/app/bin": { type: "directory", mode: 0o750, uid: 7, gid: 8 },
  "/app/bin/run": { type: "file", content: "run", mode: 0o4755, uid: 11, gid: 12 },
  "/app/bin/to": { type: "symlink", target: "../lib", uid: 9, gid: 9 },
  "/app/empty": { type: "directory" },
  "/app/lib": { type: "directory" },
  "/app/lib/a.so": { type: "file", content: "library" },
  "/app/lib/b.so": { type: "file", content: "library" },
  "/app/pipe": { type: "pipe" },
  "/current": { type: "symlink", target: "app" },
  "/notes.txt": { type: "file", content: "notes", mode: 0o600, uid: 3, gid: 4 },
};

const below: Record<string, FakeTreeEntry> = {
  "/srv": { type: "directory" },
  "/srv/lib": { type: "directory", mode: 0o700, uid: 1, gid: 1 },
};

const stage = (...lines: string[]) => build.stage(lines, { source, base });

/** Returns the entries below `/` that the lines add to the image, in the form of `ls -l`. */
async function treeOf(...lines: string[]): Promise<string[]> {
  const image = await build.commit(await stage(...lines));
  const before = service.state.treeOf(base);
  return [...service.state.treeOf(image)]
    .filter(([path, entry]) => before.get(path) !== entry)
    .map(([path, { type, mode = 0o755, uid = 0, gid = 0, target, content }]) => {
      const what = { directory: "/", symlink: ` -> ${target}`, file: ` ${content}`, pipe: "|" }[type];
      return `${type === "symlink" ? "link" : mode.toString(8)} ${uid}:${gid} ${path}${what}`;
    })
    .sort((one, other) => (one.replace(/^\S+ \S+ /, "") < other.replace(/^\S+ \S+ /, "") ? -1 : 1));
}

describe("makes the tree of COPY --from=source", () => {
  test.each<[string, string[]]>([
    ["/notes.txt /n", ["600 3:4 /n notes"]],
    ["/notes.txt /n/", ["755 0:0 /n/", "600 3:4 /n/notes.txt notes"]],
    // No command is run for the owner of a directory on the way.
    ["--chown=5:6 /notes.txt /n/", ["755 0:0 /n/", "600 5:6 /n/notes.txt notes"]],
    ["--chmod=4711 /notes.txt /srv", ["4711 3:4 /srv/notes.txt notes"]],
    ["/*.txt /no* /n/", ["755 0:0 /n/", "600 3:4 /n/notes.txt notes"]],
    ["/nothing* /n/", []],
    ["/current/lib /l", ["755 0:0 /l/", "644 0:0 /l/a.so library", "644 0:0 /l/b.so library"]],
    // The outermost directory gets default attributes; those below keep theirs.
    [
      "/app /opt/app",
      [
        "755 0:0 /opt/",
        "755 0:0 /opt/app/",
        "750 7:8 /opt/app/bin/",
        "4755 11:12 /opt/app/bin/run run",
        "link 9:9 /opt/app/bin/to -> ../lib",
        "755 0:0 /opt/app/empty/",
        "755 0:0 /opt/app/lib/",
        "644 0:0 /opt/app/lib/a.so library",
        "644 0:0 /opt/app/lib/b.so library",
      ],
    ],
    [
      "--exclude=* --exclude=!lib/a.so /current /c",
      ["755 0:0 /c/", "755 0:0 /c/lib/", "644 0:0 /c/lib/a.so library"],
    ],
    // An existing directory, except the outermost, takes the mode and owner of the one copied onto it.
    [
      "--exclude=bin --exclude=empty --chmod=500 /app /srv",
      ["500 0:0 /srv/lib/", "500 0:0 /srv/lib/a.so library", "500 0:0 /srv/lib/b.so library"],
    ],
    [
      "--parents /app/bin/r* /notes.txt /nope* /p/",
      [
        "755 0:0 /p/",
        "711 7:8 /p/app/",
        "750 7:8 /p/app/bin/",
        "4755 11:12 /p/app/bin/run run",
        "600 3:4 /p/notes.txt notes",
      ],
    ],
    [
      "--parents --exclude=**/a.so /app/./lib /app/./bin/to /p/",
      [
        "755 0:0 /p/",
        "750 7:8 /p/bin/",
        "link 9:9 /p/bin/to -> ../lib",
        "755 0:0 /p/lib/",
        "644 0:0 /p/lib/b.so library",
      ],
    ],
    [
      "--parents /app/**/b.so /p/",
      ["755 0:0 /p/", "711 7:8 /p/app/", "755 0:0 /p/app/lib/", "644 0:0 /p/app/lib/b.so library"],
    ],
    // Sources are copied in order: the file goes into the directory that the first source made.
    [
      "/app/lib /notes.txt /x/",
      ["755 0:0 /x/", "644 0:0 /x/a.so library", "644 0:0 /x/b.so library", "600 3:4 /x/notes.txt notes"],
    ],
  ])("%s", async (line, made) => {
    expect(await treeOf(line)).toEqual(made);
  });

  test("/ of the whole image", async () => {
    const made = await treeOf("--chown=1 / /");
    expect(made).toContain("755 1:1 /app/lib/");
    expect(made).toContain("link 1:1 /current -> app");
    expect(made).toHaveLength(10);
  });
});

test("a hard link to an excluded file is copied as a file", async () => {
  const file = { name: "a", content: "shared", mode: 0o640, uid: 3 };
  service.state.trees.get(source)?.set("/app/a", { type: "file", content: "shared" });
  service.intercept = (_, { path }) =>
    path.endsWith("/archive")
      ? new Response(
          tarOf([file, { name: "b", flag: "1", target: "a" }, { name: "c", flag: "1", target: "./a" }]),
        )
      : undefined;
  const made = ["755 0:0 /x/", "640 3:0 /x/b shared", "640 3:0 /x/c shared"];
  expect(await treeOf("--exclude=a /app /x")).toEqual(made);
});

test("names of users are looked up in a copied /etc/passwd", async () => {
  const passwd = "app:x:41:42::/:/bin/sh\n";
  service.state.trees.get(source)?.set("/passwd", { type: "file", content: passwd });
  const made = await treeOf("/passwd /etc/passwd", "--chown=app /notes.txt /n");
  expect(made).toContain("600 41:42 /n notes");
});

test("an archive that begins with the directory's own name", async () => {
  const file = (name: string) => ({ name, content: "x", uid: 3, gid: 4 });
  const entries = [
    { name: "app/", flag: "5" },
    { name: "app/d/", flag: "5" },
    file("app/d/f"),
    file("app/app"),
  ];
  service.intercept = (_request, { path }) =>
    path.endsWith("/archive") ? new Response(tarOf(entries)) : undefined;
  expect(await treeOf("/app /a")).toEqual([
    "755 0:0 /a/",
    "644 3:4 /a/app x",
    "644 0:0 /a/d/",
    "644 3:4 /a/d/f x",
  ]);
});

test("pipes and sockets are left out, with a warning", async () => {
  await stage("/app /app");
  expect(build.events).toContainEqual({
    type: "warning",
    message: "pipes and sockets are not copied: /app/pipe",
    line: 2,
  });
});

describe("transfers", () => {
  const calls = () =>
    service.requests.map(({ method, path }) => `${method} ${path.replace(/[0-9a-f-]{36}/, "*")}`);

  test("nothing for a repeated copy, also in a later build", async () => {
    const lines = ["/app /a/", "--chown=5:6 /notes.txt /n"];
    const first = await stage(...lines);
    service.clearRequests();
    expect((await stage(...lines)).staged.size).toBe(first.staged.size);
    expect(calls()).toEqual([]);

    build.close();
    build = createImageCopyBuild(home, { fetch, baseUrl: service.url });
    // The second build has another owner and another destination.
    const image = await build.commit(await stage("/app /a/", "/notes.txt /srv/"));
    expect(service.state.treeOf(image).get("/srv/notes.txt")).toMatchObject({ uid: 3, gid: 4 });
    expect(calls().filter((call) => /download|archive|files/.test(call))).toEqual([]);
  });

  test("a tree from the image as one archive, and each content to the service once", async () => {
    await stage("/app /a/");
    expect(service.requestsTo(/archive$/)).toHaveLength(1);
    expect(service.requestsTo(/download$/)).toHaveLength(0);
    expect(service.requestsTo("POST /v1/files")).toHaveLength(2);
  });

  test.each(["/big", "/big/file"])("a large file unchanged: %s", async (from) => {
    const content = new Uint8Array(5_000_001).map((_, index) => index % 251);
    const large = service.state.trees.get(source);
    large?.set("/big", { type: "directory" }).set("/big/file", { type: "file", content });
    const image = await build.commit(await stage(`${from} /x/`));
    expect(service.state.treeOf(image).get("/x/file")?.content).toEqual(content);
  });

  test("only the files that the service has lost", async () => {
    const staged = await stage("/app /a/", "/notes.txt /n");
    const sha256 = Bun.CryptoHasher.hash("sha256", "library", "hex");
    service.state.forgetFile(sha256);
    service.clearRequests();
    const image = await build.commit(staged);
    expect(Buffer.from(service.state.treeOf(image).get("/a/lib/a.so")?.content ?? "").toString()).toBe(
      "library",
    );
    expect(service.requestsTo(/archive$/)).toHaveLength(0);
    expect(service.requestsTo("POST /v1/files")).toHaveLength(1);
  });

  test("nothing if a file of the image has changed since the first read", async () => {
    const staged = await stage("/notes.txt /n");
    service.state.forgetFile(Bun.CryptoHasher.hash("sha256", "notes", "hex"));
    service.state.trees.get(source)?.set("/notes.txt", { type: "file", content: "NOTES" });
    expect(await build.commit(staged).catch(String)).toBe(
      `BoughError: /notes.txt of image ${source} has changed since it was first read, although images are immutable`,
    );
    expect(service.state.files.size).toBe(0);
  });
});

test("refuses a directory after a file if the destination has no final slash", async () => {
  expect(await stage("/notes.txt /app/lib /n").catch(String)).toBe(
    "BoughError: cannot copy to non-directory: /n",
  );
});

describe("refuses", () => {
  test.each<[string, RegExp]>([
    ["/nope /n", /^BoughError: "\/nope": not found$/],
    ["--parents /app/nope /n/", /^BoughError: "\/app\/nope": not found$/],
    ["--parents /notes.txt/x /n/", /^BoughError: "\/notes.txt\/x": not found$/],
    ["--parents /current/lib /n/", /^BoughError: "\/current\/lib": not found$/],
  ])("%s", async (line, message) => {
    expect(await stage(line).catch(String)).toMatch(message);
    expect(service.requestsTo("POST /v1/files")).toEqual([]);
  });

  test("a directory onto a file", async () => {
    expect(await stage("/notes.txt /n", "/app/lib /n").catch(String)).toMatch(
      "cannot copy to non-directory: /n",
    );
  });

  test("a service that can't list files, naming the missing call", async () => {
    service.intercept = (_, { path }) =>
      path.startsWith("/v1/inspect/")
        ? Response.json({ error: "no such route", status: 404 }, { status: 404 })
        : undefined;
    expect(await stage("/notes.txt /n").catch(String)).toBe(
      "BoughError: the service can't list the files of an image, which COPY --from needs: it does not support GET /v1/inspect/{image_uuid}/list",
    );
  });

  const file = { name: "f", content: "x" };
  test.each<[string, Parameters<typeof tarOf>[0], string]>([
    ["a name that leads up", [{ ...file, name: "a/../../x" }], "contains a name that leads out of it"],
    ["an absolute name", [{ ...file, name: "/etc/passwd" }], "contains a name that leads out of it"],
    [
      "a file through a link",
      [
        { name: "l", flag: "2", target: "/etc" },
        { ...file, name: "l/f" },
      ],
      "l is not a directory",
    ],
    ["a name twice", [file, { ...file, name: "./f" }], "contains f twice"],
    [
      "a directory twice",
      [
        { name: "d/", flag: "5" },
        { name: "d", flag: "5" },
      ],
      "contains d twice",
    ],
    [
      "a link in place of a directory with contents",
      [
        { ...file, name: "d/f" },
        { name: "d", flag: "2", target: "/" },
      ],
      "contains d twice",
    ],
    ["a device", [{ name: "sda", flag: "4" }], "contains a device: sda"],
    ["a link to a file outside", [{ name: "h", flag: "1", target: "../../etc/shadow" }], "leads out of it"],
    [
      "a link to a missing file",
      [{ name: "h", flag: "1", target: "gone" }],
      "which is not a file in the archive",
    ],
    ["a name that is not UTF-8", [{ ...file, name: "\ufffd" }], "contains a name that is not UTF-8"],
  ])("an archive with %s", async (_, entries, message) => {
    service.intercept = (_request, { path }) =>
      path.endsWith("/archive") ? new Response(tarOf(entries)) : undefined;
    const failure = await stage("/app /a/").catch(String);
    expect(failure).toStartWith(`BoughError: the archive of /app of image ${source} `);
    expect(failure).toContain(message);
    const words = JSON.stringify({ paths: ["/app"], parents: false, exclude: [] });
    expect(build.store.copies.get(source, words)).toBeUndefined();
  });

  test.each<[string, object[], string]>([
    ["a name that leads up", [{ path: ".." }], `lists ".." in /`],
    [
      "a name twice",
      [
        { path: "/a", is_regular: true },
        { path: "a", is_dir: true },
      ],
      `lists "a" twice in /`,
    ],
  ])("a list with %s", async (_, files, message) => {
    service.intercept = (_request, { path, query }) =>
      path.endsWith("/list") && query.path === "/" ? Response.json({ path: "/", files }) : undefined;
    expect(await stage("/a /x").catch(String)).toBe(`BoughError: the service ${message} of image ${source}`);
  });

  test.each(["note", "notes and more"])("a file of another length than listed: %s", async (text) => {
    service.intercept = (_request, { path }) => (path.endsWith("/download") ? new Response(text) : undefined);
    expect(await stage("/notes.txt /n").catch(String)).toBe(
      `BoughError: /notes.txt of image ${source}: the service lists 5 bytes, but returns a different number`,
    );
  });

  test("an endless archive", async () => {
    async function* endless(): AsyncGenerator<TarEntry> {
      for (let count = 0; ; count++) {
        const owned = { mode: 0o644, uid: 0, gid: 0, modified: 0, target: "", isDevice: false };
        const content = { size: 2 ** 40, start: 0, offset: 0, isSparse: true, async *pieces() {} };
        const nothing = { flag: "0", major: 0, minor: 0, attributes: [] };
        yield { name: `./${count}`, type: "file", ...owned, ...nothing, ...content };
      }
    }
    const read = async () => {
      let count = 0;
      for await (const _ of checkArchive(endless(), "it")) count++;
      return count;
    };
    expect(await read().catch(String)).toBe("BoughError: it has more than 2000000 entries or 4 TiB");
  });

  test("an archive at its first invalid entry, without reading on", async () => {
    const { promise: cancelled, resolve } = Promise.withResolvers<void>();
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(tarOf([{ ...file, name: "../x" }], { end: false })),
      cancel: () => resolve(),
    });
    service.intercept = (_request, { path }) =>
      path.endsWith("/archive") ? new Response(endless) : undefined;
    expect(await stage("/app /a/").catch(String)).toContain("leads out of it");
    await cancelled;
  });

  test("an archive that is cut short", async () => {
    service.intercept = (_request, { path }) =>
      path.endsWith("/archive") ? new Response(tarOf([file], { end: false }).subarray(0, 600)) : undefined;
    expect(await stage("/app /a/").catch(String)).toBe(
      `BoughError: the archive of /app of image ${source} is damaged: it ends too early`,
    );
  });
});
