import { describe, expect, test } from "bun:test";
import { openSharedEngine } from "../support/shared-engine.ts";

const { engine, base } = await openSharedEngine();
const made = await engine.run(
  base,
  `mkdir -p /d/sub; printf hello > /d/file; chown 5:6 /d/file; chmod 4750 /d/file; touch -d '2001-02-03 04:05:06' /d/file
   ln -s file /d/link; ln -s /d /absolute; ln /d/file /d/twin; mkfifo /d/pipe; rm /etc/group`,
);
const image = made.image ?? "";

const inspect = (what: string, path: string, method = "GET") =>
  engine.fetch(method, `/v1/inspect/${image}/${what}?path=${encodeURIComponent(path)}`);
const list = async (path: string) =>
  (await (await inspect("list", path)).json()) as { path: string; files: Record<string, unknown>[] };

describe("list", () => {
  test("returns a directory's entries with their attributes", async () => {
    const { path, files } = await list("/d");
    expect(path).toBe("/d");
    expect(files.map((file) => file.path)).toEqual(["file", "link", "pipe", "sub", "twin"]);
    expect(files[0]).toEqual({
      path: "file",
      size: 5,
      owner: 5,
      group: 6,
      uid: 5,
      gid: 6,
      mode: 0o104750,
      mtime: Date.parse("2001-02-03T04:05:06Z") / 1000,
      nlink: 2,
      is_dir: false,
      is_regular: true,
      is_symlink: false,
      is_socket: false,
      is_fifo: false,
      symlink_to: "",
    });
    expect(files[2]).toMatchObject({ is_fifo: true, is_regular: false, owner: "root" });
    expect(files[1]).toMatchObject({ is_symlink: true, symlink_to: "file", is_regular: false });
    expect(files[3]).toMatchObject({ is_dir: true });
  });

  test("follows links inside the image, also those that lead above the root", async () => {
    expect((await list("/absolute")).path).toBe("/d");
    expect((await list("/../..//absolute/sub/..")).path).toBe("/d");
  });

  test("returns one entry for a file", async () => {
    expect(await list("/d/link")).toMatchObject({ path: "/d/file", files: [{ path: "file" }] });
  });

  test("merges layers, without removed files", async () => {
    expect((await list("/etc")).files.map((file) => file.path)).toEqual(["passwd"]);
  });

  test("has nothing of the sandbox", async () => {
    expect((await list("/")).files.map((file) => file.path)).not.toContain("proc");
  });
});

describe("download", () => {
  test("returns a file's bytes and its length", async () => {
    const response = await inspect("download", "/absolute/link");
    expect(response.headers.get("Content-Length")).toBe("5");
    expect(await response.text()).toBe("hello");
    const head = await inspect("download", "/d/file", "HEAD");
    expect([head.status, head.headers.get("Content-Length"), await head.text()]).toEqual([200, "5", ""]);
  });

  test("returns all of a large file", async () => {
    const { image: large } = await engine.run(base, "head -c 20000000 /dev/zero | tr '\\0' x > /large");
    const response = await engine.fetch("GET", `/v1/inspect/${large}/download?path=/large`);
    const bytes = await response.bytes();
    expect(bytes.length).toBe(20_000_000);
    expect(bytes.every((byte) => byte === 120)).toBe(true);
  });

  test("refuses everything but regular files, and never opens a pipe", async () => {
    for (const path of ["/d", "/d/pipe"]) {
      const response = await inspect("download", path);
      expect(await response.json()).toEqual({ error: `${path} is not a regular file`, status: 404 });
    }
  });
});

describe("archive", () => {
  test("returns a subtree as a PAX archive", async () => {
    const response = await inspect("archive", "/absolute");
    expect(response.headers.get("Content-Type")).toBe("application/x-tar");
    const listed = Bun.spawnSync(["tar", "-tv", "--numeric-owner"], {
      stdin: await response.bytes(),
    }).stdout.toString();
    const lines = listed
      .trim()
      .split("\n")
      .map((line) => line.replaceAll(/ +/g, " ").replace(/ \S+ \S+ (?=\.)/, " "));
    expect(lines).toEqual([
      "drwxr-xr-x 0/0 0 ./",
      "-rwsr-x--- 5/6 5 ./file",
      "lrwxrwxrwx 0/0 0 ./link -> file",
      "prw-r--r-- 0/0 0 ./pipe",
      "drwxr-xr-x 0/0 0 ./sub/",
      "hrwsr-x--- 5/6 0 ./twin link to ./file",
    ]);
  });

  test("returns the same archive each time", async () => {
    const bytes = async () => Bun.hash(await (await inspect("archive", "/")).bytes());
    expect(await bytes()).toBe(await bytes());
  });

  test("returns a single file under its own name", async () => {
    const response = await inspect("archive", "/d/file");
    const listed = Bun.spawnSync(["tar", "-t"], { stdin: await response.bytes() }).stdout.toString();
    expect(listed).toBe("file\n");
  });

  test("stops if the client stops reading", async () => {
    const response = await inspect("archive", "/");
    await response.body?.cancel();
    expect((await inspect("archive", "/", "HEAD")).status).toBe(200);
  });
});

test.each(["list", "download", "archive"])("%s of a missing path or image is 404", async (what) => {
  const response = await inspect(what, "/no/such");
  expect(await response.json()).toEqual({ error: `there is no /no/such in image ${image}`, status: 404 });
  expect((await inspect(what, "/no/such", "HEAD")).status).toBe(404);
  const unknown = await engine.fetch("GET", `/v1/inspect/nope/${what}?path=/`);
  expect(await unknown.json()).toEqual({ error: "there is no image nope", status: 404 });
  expect((await inspect(what, "relative")).status).toBe(400);
});
