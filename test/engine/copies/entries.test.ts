/** Directories and links that a request makes: the extension `entries`. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { InstanceEntry } from "../../../src/service/wire/file.ts";
import { TestEngine } from "../../support/engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";

type Entries = Record<string, InstanceEntry>;

/** Requests, and the new lines of a listing of `/t` afterwards. */
const cases: [string, Entries, string[]][] = [
  [
    "directories with their parents",
    {
      "/t/a/b": { type: "directory", uid: 3, gid: 4 },
      "/t/c": { type: "directory", uid: 0, gid: 0, mode: "2750" },
    },
    ["d 755 0:0 a", "d 755 3:4 a/b", "d 2750 0:0 c"],
  ],
  ["an existing directory keeps its attributes", { "/t/there": { type: "directory", uid: 3, gid: 4 } }, []],
  [
    "an existing directory gets the entry's attributes if it has a mode",
    { "/t/there": { type: "directory", uid: 3, gid: 4, mode: "700" } },
    ["d 700 3:4 there"],
  ],
  [
    "links that replace links and files",
    {
      "/t/link": { type: "symlink", target: "new", uid: 5, gid: 6 },
      "/t/file": { type: "symlink", target: "/x y", uid: 0, gid: 0 },
      "/t/d/deep": { type: "symlink", target: "../link", uid: 0, gid: 0 },
    },
    ["d 755 0:0 d", "l 777 0:0 d/deep -> ../link", "l 777 0:0 file -> /x y", "l 777 5:6 link -> new"],
  ],
  [
    "entries that replace what is there, unless both are directories",
    {
      "/t/there": { type: "directory", uid: 1, gid: 2, mode: "700", replaces: true },
      "/t/out": { type: "directory", uid: 3, gid: 4, mode: "750", replaces: true },
      "/t/out/d": { type: "directory", uid: 0, gid: 0 },
      "/t/file": { type: "directory", uid: 0, gid: 0, replaces: true },
      "/t/elsewhere": { type: "symlink", target: "there", uid: 0, gid: 0, replaces: true },
      "/t/link": { type: "special", kind: "pipe", mode: "600", uid: 5, gid: 6, replaces: true },
    },
    [
      "l 777 0:0 elsewhere -> there",
      "d 755 0:0 file",
      "p 600 5:6 link",
      "d 750 3:4 out",
      "d 755 0:0 out/d",
      "d 700 1:2 there",
    ],
  ],
  [
    "a directory below a link, inside the image",
    { "/t/out/x": { type: "directory", uid: 1, gid: 1 } },
    ["d 755 1:1 elsewhere/x"],
  ],
];

const device = { type: "special", mode: "600", major: 0, minor: 0 };

const failures: [string, Entries, string][] = [
  [
    "a directory over a file",
    { "/t/file": { type: "directory", uid: 0, gid: 0 } },
    "cannot make the directory /t/file: /t/file in the image is not a directory",
  ],
  [
    "a link over a directory",
    { "/t/there": { type: "symlink", target: "x", uid: 0, gid: 0 } },
    "cannot make the link /t/there: there is a directory in the image",
  ],
  [
    "a link below a file",
    { "/t/file/x": { type: "symlink", target: "x", uid: 0, gid: 0 } },
    "cannot make the link /t/file/x: /t/file in the image is not a directory",
  ],
];

describe.each(["root", "an ordinary user"])("entries, as %s", (who) => {
  let engine: TestEngine;
  let base: string;

  beforeAll(async () => {
    engine = await (who === "root" ? TestEngine.open() : openUserEngine());
    const busybox = who === "root" ? await engine.importBase() : "tag:busybox:latest";
    const made =
      "mkdir -p -m 755 /t/elsewhere && mkdir -m 711 /t/there && echo f > /t/file && ln -s old /t/link && ln -s ../../t/elsewhere /t/out";
    base = (await engine.run(busybox, made)).image ?? "";
  });
  afterAll(() => engine.close());

  const listed = async (image: string) => {
    const find = `cd /t && find . -exec sh -c 'for path; do echo "$(stat -c "%A %a %u:%g" "$path") $path$([ -L "$path" ] && echo " -> $(readlink "$path")")"; done' sh {} + | sort -k 4`;
    const { stdout } = await engine.run(image, find, { disposable: true });
    return stdout
      .trim()
      .split("\n")
      .map((line) => line.replace(/^(.)\S+/, "$1").replace(/ \.\//, " "));
  };

  for (const command of ["", "true"]) {
    describe(command === "" ? "without a command" : "with a command", () => {
      for (const [name, entries, expected] of cases) {
        test(name, async () => {
          const { operation, image } = await engine.run(base, command, { entries });
          expect(operation.error).toBeNull();
          const before = new Set(await listed(base));
          expect((await listed(image ?? "")).filter((line) => !before.has(line))).toEqual(expected);
        });
      }

      for (const [name, entries, message] of failures) {
        test(`${name} is refused`, async () => {
          const { operation } = await engine.run(base, command, { entries });
          expect(operation).toMatchObject({ status: "FAILED", error: expect.stringContaining(message) });
        });
      }
    });
  }

  test.each<[string, unknown, string]>([
    ["a relative path", { t: { type: "directory" } }, "must be an absolute path"],
    ["a path upwards", { "/t/..": { type: "directory" } }, "must be an absolute path"],
    ["an unsupported type", { "/t/x": { type: "fifo" } }, "must be directory, symlink or special"],
    ["the mark of a deleted file", { "/t/x": { ...device, kind: "character-device" } }, "must not both be 0"],
    ["a device without a number", { "/t/x": { ...device, kind: "block-device", major: "1" } }, "the numbers"],
    ["an attribute that is no text", { "/t/x": { ...device, kind: "pipe", attributes: { a: 1 } } }, "base64"],
    ["a link without a target", { "/t/x": { type: "symlink" } }, "target"],
    ["an unknown field", { "/t/x": { type: "directory", acl: 1 } }, "acl"],
    ["a list of entries", ["/t/x"], "entries"],
  ])("%s is a bad request", async (_, entries, message) => {
    const response = await engine.fetch("POST", "/v1/instances", { image: base, command: "", entries });
    expect(response.status).toBe(400);
    expect(await response.text()).toContain(message);
  });
});
