/** `bough cp` from a malicious image or service: nothing outside of the destination changes. */
import {
  afterAll,
  afterEach,
  beforeAll,
  describe,
  expect,
  onTestFinished,
  setDefaultTimeout,
  test,
} from "bun:test";
import { chmodSync, chownSync, lstatSync, mkdirSync, readFileSync, readlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../../support/bough.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../../support/ordinary-user.ts";
import { rowsFor } from "../../support/rows.ts";
import { type RawEntry, tarOf } from "../../support/tar-bytes.ts";
import { type Canary, makeCanary } from "../canary.ts";
import {
  type Attack,
  type HostileService,
  image,
  json,
  startHostileService,
  text,
} from "./hostile-service.ts";

// Most of the time goes into compiling, and a busy machine needs more.
setDefaultTimeout(300_000);

let user: OrdinaryUser;
beforeAll(() => {
  user = makeOrdinaryUser();
  user.giveBough();
});
afterAll(() => user.remove());

const places: string[] = [];
afterEach(() => {
  // The recursive removal of node:fs takes minutes for deep trees.
  Bun.spawnSync(["rm", "-rf", ...places.splice(0)]);
});

/** Contents by path in the image: a directory's archive, or a file's content. */
type Contents = Record<string, readonly RawEntry[] | Uint8Array | string>;

async function serve(contents: Contents): Promise<HostileService> {
  const pathIn = (target: string) => new URL(target, "http://x").searchParams.get("path") ?? "";
  const contentFor = (target: string) => contents[pathIn(target)];
  const bytes = (socket: Parameters<Attack>[0], body: Uint8Array) => {
    socket.write(`HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: ${body.length}\r\n\r\n`);
    socket.end(body);
  };
  const route = `GET /v1/inspect/${image}`;
  const service = await startHostileService({
    [`${route}/download`]: (socket, target) => {
      const content = contentFor(target);
      if (typeof content === "string") bytes(socket, Buffer.from(content));
      else text('{"error": "is a directory"}', {}, "400 Bad Request")(socket, target);
    },
    [`${route}/list`]: (socket, target) => {
      const files = [{ path: pathIn(target), is_regular: true, mode: 0o106755 }];
      json({ path: pathIn(target), files })(socket, target);
    },
    [`${route}/archive`]: (socket, target) => {
      const content = contentFor(target) ?? [];
      if (typeof content !== "string")
        bytes(socket, content instanceof Uint8Array ? content : tarOf(content));
    },
  });
  onTestFinished(() => service.close());
  return service;
}

interface Place {
  /** The directory with the destination and the canary. */
  directory: string;
  canary: Canary;
  copy(service: HostileService, path: string, to?: string): Promise<{ exitCode: number; stderr: string }>;
}

function makePlace(who: "root" | "an ordinary user"): Place {
  const isUser = who !== "root";
  const directory = isUser ? join(user.home, Bun.randomUUIDv7()) : temporaryDirectory();
  mkdirSync(join(directory, "to"), { recursive: true });
  places.push(directory);
  const canary = makeCanary(directory);
  const { uid, gid } = lstatSync(user.home);
  if (isUser) for (const path of [directory, join(directory, "to")]) chownSync(path, uid, gid);
  // The canary belongs to the user, so that its modes do not protect it.
  if (isUser) Bun.spawnSync(["chown", "-R", `${uid}:${gid}`, canary.path]);
  return {
    directory,
    canary,
    async copy(service, path, to = "to") {
      const words = ["--url", service.url, "--token", "t0ken-t0ken", "cp", `${image}:${path}`, to];
      const home = isUser ? user.home : temporaryDirectory();
      const environment = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${home}`];
      const command = [
        ...environment,
        "sh",
        "-c",
        'umask 022; cd "$0" && exec "$@"',
        directory,
        join(user.home, "bough"),
      ];
      const child = Bun.spawn([...(isUser ? user.prefix : []), ...command, ...words], {
        stdin: "ignore",
        stdout: "ignore",
        stderr: "pipe",
      });
      const stderr = await new Response(child.stderr).text();
      const exitCode = await child.exited;
      expect(stderr).not.toContain("bough itself failed");
      expect(stderr).not.toMatch(/\n\s+at |\u001b/);
      return { exitCode, stderr };
    },
  };
}

const link = (name: string, target: string): RawEntry => ({ name, flag: "2", target });
const hard = (name: string, target: string): RawEntry => ({ name, flag: "1", target });
const directory = (name: string, mode = 0o755): RawEntry => ({ name, flag: "5", mode });
const file = (name: string, content = "owned", mode = 0o644): RawEntry => ({ name, content, mode });
const deep = (levels: number) =>
  Array.from({ length: levels }, (_, index) => directory("d/".repeat(index + 1)));
const paxed = (path: string, entry: RawEntry): RawEntry[] => {
  const rest = ` path=${path}\n`;
  const length = rest.length + String(rest.length + 5).length;
  return [{ name: "p", flag: "x", content: `${length}${rest}` }, entry];
};

describe.each(["root", "an ordinary user"] as const)("as %s", (who) => {
  describe("a link from an earlier cp is not followed:", () => {
    const earlier: [attack: string, contents: Contents, second: string, exitCode: number][] = [
      ["a directory of its name", { "/x": [directory("./"), file("file")] }, "/x", 1],
      ["an empty directory of its name", { "/x": [directory("./")] }, "/x", 1],
      ["a file below it", { "/two": [file("x/file")] }, "/two/.", 1],
      ["a directory below it", { "/two": [directory("x/new/")] }, "/two/.", 1],
      ["a directory in its place", { "/two": [directory("x/", 0o777)] }, "/two/.", 1],
      ["a hard link to a file below it", { "/two": [hard("y", "x/file"), file("y")] }, "/two/.", 1],
      ["a file in its place", { "/two": [file("x")] }, "/two/.", 0],
      ["a single file in its place", { "/x": "owned" }, "/x", 0],
      ["a link in its place", { "/two": [link("x", "canary")] }, "/two/.", 0],
    ];
    test.each(rowsFor(who, earlier, ["a file below it", "a single file in its place"]))(
      "%s",
      async (_, contents, second, exitCode) => {
        const { canary, copy, directory: place } = makePlace(who);
        const before = canary.state();
        const service = await serve({ "/one": [directory("./"), link("x", "../canary")], ...contents });
        expect((await copy(service, "/one/.")).exitCode).toBe(0);
        expect(readlinkSync(join(place, "to/x"))).toBe("../canary");
        const ended = await copy(service, second);
        if (exitCode === 1) expect(ended.stderr).toMatch(/link|which is not a file in the archive/);
        expect(ended.exitCode).toBe(exitCode);
        expect(canary.state()).toBe(before);
      },
    );
  });

  describe("an archive changes nothing outside of the destination:", () => {
    const archives: [attack: string, archive: readonly RawEntry[], exitCode: number][] = [
      ["an absolute name", [file("/CANARY/file")], 1],
      ["a name with ..", [file("../canary/file")], 1],
      ["a name with .. in it", [directory("a/"), file("a/../../canary/file")], 1],
      ["a PAX name with ..", paxed("../canary/file", file("harmless")), 1],
      ["a link, and a file through it", [link("l", "../canary"), file("l/file")], 1],
      ["an absolute link, and a file through it", [link("l", "CANARY"), file("l/file")], 1],
      ["a link over a link", [link("a", ".."), link("a/b", "canary"), file("a/b/file")], 1],
      ["a link, and its directory", [link("l", "../canary"), directory("l/", 0o777)], 1],
      ["a directory, and a link in its place", [directory("l/"), link("l", "../canary"), file("l/file")], 1],
      ["a hard link to an absolute name", [hard("h", "/CANARY/file"), file("h")], 1],
      ["a hard link with ..", [hard("h", "../canary/file")], 1],
      ["a hard link through a link", [link("l", "../canary"), hard("h", "l/file")], 1],
      ["a hard link to a link", [link("l", "../canary/file"), hard("h", "l"), file("h")], 1],
      ["a link, and a file in its place", [link("l", "../canary/file"), file("l")], 0],
      ["a link, and modes for it", [link("l", "../canary"), { ...link("l", "../canary"), mode: 0o777 }], 0],
      [
        "names with line ends and control sequences",
        [file("a\n[INFO] all is well\u001b[2J"), { name: "\u001b[2J", flag: "6" }],
        0,
      ],
      ["a hard link to itself", [file("a"), hard("a", "a")], 0],
      [
        "a directory without permissions, after its files",
        [file("d/e/f"), directory("d/e/", 0), directory("d/", 0)],
        0,
      ],
      ["times that no file has", [{ ...file("a") }, ...paxed("b", file("b"))], 0],
      ["no entries", [], 0],
    ];
    const ofEachKind = [
      "a name with ..",
      "a link, and a file through it",
      "a hard link through a link",
      "a directory without permissions, after its files",
    ];
    test.each(rowsFor(who, archives, ofEachKind))("%s", async (_, archive, exitCode) => {
      const { canary, copy } = makePlace(who);
      const before = canary.state();
      const named = archive.map((entry) => ({
        ...entry,
        name: entry.name.replace("/CANARY", canary.path.slice(-90)),
        ...(entry.target === undefined
          ? {}
          : { target: entry.target.replace("/CANARY", canary.path).replace("CANARY", canary.path) }),
      }));
      const service = await serve({ "/x": named });
      expect((await copy(service, "/x")).exitCode).toBe(exitCode);
      expect(canary.state()).toBe(before);
      // Again, over the existing files.
      await copy(service, "/x");
      expect(canary.state()).toBe(before);
    });
  });

  test("copied files have no setuid bit, are not writable for all, and belong to the user", async () => {
    const { copy, directory: place } = makePlace(who);
    const archive = [
      file("s", "x", 0o6777),
      directory("d/", 0o7777),
      { name: "n", flag: "3" },
      { name: "b", flag: "4" },
    ];
    const service = await serve({ "/x": archive, "/file": "x" });
    expect(await copy(service, "/x")).toMatchObject({
      exitCode: 0,
      stderr: expect.stringContaining("is a device"),
    });
    expect(await copy(service, "/file")).toMatchObject({ exitCode: 0 });
    const mode = (path: string) => (lstatSync(join(place, "to", path)).mode & 0o7777).toString(8);
    expect(["x/s", "x/d", "file"].map(mode)).toEqual(["755", "755", "755"]);
    expect(lstatSync(join(place, "to/x/n"), { throwIfNoEntry: false })).toBeUndefined();
    const owner = lstatSync(join(place, "to"));
    expect(lstatSync(join(place, "to/x/s"))).toMatchObject({ uid: owner.uid, gid: owner.gid });
  });

  test("an existing directory keeps its mode", async () => {
    const { copy, directory: place } = makePlace(who);
    const mine = join(place, "to/mine");
    mkdirSync(mine);
    const { uid, gid } = lstatSync(place);
    chownSync(mine, uid, gid);
    chmodSync(mine, 0o700);
    const service = await serve({ "/x": [directory("mine/", 0o777), file("mine/f")] });
    expect((await copy(service, "/x/.")).exitCode).toBe(0);
    expect(lstatSync(mine).mode & 0o777).toBe(0o700);
    expect(readFileSync(join(mine, "f"), "utf8")).toBe("owned");
  });

  const tooLong: [attack: string, archive: readonly RawEntry[]][] = [
    ["a tree of thousands of levels", deepPaxed(3000)],
    ["a name that is too long", paxed("n".repeat(256), file("n"))],
    ["a name of a megabyte", paxed("n".repeat(1_000_000), file("n"))],
    ["a path of half a million levels", paxed("d/".repeat(500_000), file("n"))],
  ];
  test.each(rowsFor(who, tooLong, ["a name that is too long"]))("%s is an error", async (_, archive) => {
    const { copy } = makePlace(who);
    const { exitCode, stderr } = await copy(await serve({ "/x": archive }), "/x");
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/\[ERROR\] cannot write .*: its name or path is too long for this system/);
    expect(stderr.length).toBeLessThan(2000);
  });

  test("a tree of a thousand levels is copied", async () => {
    const { copy, directory: place } = makePlace(who);
    expect(await copy(await serve({ "/x": deepPaxed(1000) }), "/x")).toMatchObject({ exitCode: 0 });
    expect(lstatSync(join(place, "to/x", "d/".repeat(1000))).isDirectory()).toBe(true);
  });

  test("a destination that is a link to itself is an error", async () => {
    const { copy, directory: place } = makePlace(who);
    Bun.spawnSync(["ln", "-s", "loop", join(place, "loop")]);
    const service = await serve({ "/x": deep(1), "/file": "x" });
    for (const path of ["/x", "/file"]) {
      expect(await copy(service, path, "loop")).toMatchObject({
        exitCode: 1,
        stderr: expect.stringContaining("form a loop"),
      });
    }
  });
});

/** Returns nested directories. Names of more than a hundred characters need a PAX header. */
function deepPaxed(levels: number): RawEntry[] {
  return Array.from({ length: levels }, (_, index) => paxed("d/".repeat(index + 1), directory("d"))).flat();
}
