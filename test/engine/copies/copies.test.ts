import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import type { ImageCopy } from "../../../src/service/wire/instance.ts";
import { TestEngine } from "../../support/engine.ts";
import { openUserEngine } from "../../support/user-engine.ts";

/** The tree of the Docker builds from which the expectations were taken. */
const sourceTree = `umask 0; rm -r /s/d /s/gone /s/x && chmod 2750 /s && mkdir -m 2750 /s/d && mkdir -m 700 /s/d/e && echo f > /s/f && echo g > /s/d/g &&
  chown 3:4 /s /s/d /s/f && chmod 4755 /s/f && ln /s/f /s/hard && ln -s f /s/link && ln -s /s/d /s/dlink && mkfifo /s/fifo &&
  ln -s /nowhere /s/dang && touch -d '2001-02-03 04:05:06' /s/f /s/d/g /s/d/e /s/d /s`;
/** A layer of which the next one removes everything but /s; a directory is made again, opaque. */
const removedTree = "mkdir -p /s/d/old /s/gone; touch /s/x /s/d/e /s/gone/x";
const baseTree = `umask 0; mkdir -m 711 /ex /ex/d /real; chown 7:8 /ex /ex/d; echo old > /ex/f; ln -s /real /lnk; ln -s /real/file /flnk;
  ln -s /real/none/deep /dlnk; mkdir -p /fd/f; echo x > /dfile; mkdir /dd; echo x > /dd/d; ln -s /real /ex/slink; ln -s loop /loop`;

const copied = [
  "d 2750 3:4 d",
  "d 700 0:0 d/e",
  "- 666 0:0 d/g",
  "l 777 0:4 dang",
  "l 777 0:4 dlink",
  "- 4755 3:4 f",
  "p 666 0:4 fifo",
  "- 4755 3:4 hard",
  "l 777 0:4 link",
];

const cases: [string, Omit<ImageCopy, "image">, string, string[]][] = [
  [
    "a directory to a new one, which root owns",
    { sources: ["/s"], destination: "/new" },
    "/new",
    ["d 755 0:0 .", ...copied],
  ],
  [
    "a directory to an existing one, whose attributes stay",
    { sources: ["/s"], destination: "/ex" },
    "/ex",
    ["d 711 7:8 .", ...copied, "l 777 0:0 slink"],
  ],
  [
    "--chown and --chmod",
    { sources: ["/s"], destination: "/n1/n2", uid: 9, gid: 10, chmod: "640" },
    "/n1",
    [
      "d 640 9:10 .",
      "d 640 9:10 n2",
      "d 640 9:10 n2/d",
      "d 640 9:10 n2/d/e",
      "- 640 9:10 n2/d/g",
      "l 777 9:10 n2/dang",
      "l 777 9:10 n2/dlink",
      "- 640 9:10 n2/f",
      "p 640 9:10 n2/fifo",
      "- 640 9:10 n2/hard",
      "l 777 9:10 n2/link",
    ],
  ],
  [
    "--chown of a user alone",
    { sources: ["/s/f"], destination: "/p/q/", uid: 9 },
    "/p",
    ["d 755 9:9 .", "d 755 9:9 q", "- 4755 9:9 q/f"],
  ],
  ["a file", { sources: ["/s/f"], destination: "/p/q" }, "/p", ["d 755 0:0 .", "- 4755 3:4 q"]],
  [
    "a source path that is cleaned first",
    { sources: ["/s/f"], destination: "/a/./b/../c" },
    "/a",
    ["d 755 0:0 .", "- 4755 3:4 c"],
  ],
  [
    "into a linked directory",
    { sources: ["/s/f"], destination: "/lnk" },
    "/real",
    ["d 711 0:0 .", "- 4755 3:4 f"],
  ],
  [
    "over a link's target",
    { sources: ["/s/f"], destination: "/flnk" },
    "/real",
    ["d 711 0:0 .", "- 4755 3:4 file"],
  ],
  [
    "to the missing target of a link",
    { sources: ["/s/f"], destination: "/dlnk" },
    "/real",
    ["d 711 0:0 .", "d 755 0:0 none", "- 4755 3:4 none/deep"],
  ],
  [
    "into the directory of a link's target",
    { sources: ["/s/f"], destination: "/ex/slink/." },
    "/real",
    ["d 711 0:0 .", "- 4755 3:4 f"],
  ],
  [
    "links that are sources",
    { sources: ["/s/link", "/s/dlink"], destination: "/t/" },
    "/t",
    ["d 755 0:0 .", "d 700 0:0 e", "- 666 0:0 g", "- 4755 3:4 link"],
  ],
  [
    "wildcards",
    { sources: ["/s/[fh]*", "/s/none*"], destination: "/t/" },
    "/t",
    ["d 755 0:0 .", "- 4755 3:4 f", "p 666 0:4 fifo", "- 4755 3:4 hard"],
  ],
  [
    "--exclude",
    { sources: ["/s"], destination: "/t", exclude: ["d", "!d/g", "*a*", "link"] },
    "/t",
    ["d 755 0:0 .", "d 2750 3:4 d", "- 666 0:0 d/g", "l 777 0:4 dlink", "- 4755 3:4 f", "p 666 0:4 fifo"],
  ],
  [
    "--parents",
    { sources: ["/s/d/g", "/s/./f*"], destination: "/t/", parents: true },
    "/t",
    ["d 755 0:0 .", "- 4755 3:4 f", "p 666 0:4 fifo", "d 2750 3:4 s", "d 2750 3:4 s/d", "- 666 0:0 s/d/g"],
  ],
];

const failures: [string, Omit<ImageCopy, "image">, string][] = [
  [
    "a file over a directory",
    { sources: ["/s/f"], destination: "/fd/" },
    "cannot replace to directory /fd/f with file",
  ],
  [
    "a directory over a file",
    { sources: ["/s"], destination: "/dfile" },
    "cannot copy to non-directory: /dfile",
  ],
  [
    "a directory over a file in the destination",
    { sources: ["/s"], destination: "/dd" },
    "cannot copy to non-directory: /dd/d",
  ],
  [
    "a file as destination directory",
    { sources: ["/s/f"], destination: "/dfile/" },
    "mkdir /dfile: not a directory",
  ],
  [
    "a file as parent of the destination",
    { sources: ["/s/f"], destination: "/dfile/x" },
    "mkdir /dfile: not a directory",
  ],
  ["a missing source", { sources: ["/s/nothing"], destination: "/t" }, '"/s/nothing": not found'],
  ["a dangling link as source", { sources: ["/s/dang"], destination: "/t" }, '"/s/dang": not found'],
  ["circular links", { sources: ["/s/f"], destination: "/loop" }, "/loop: too many symbolic links"],
];

describe.each(["root", "an ordinary user"])("copies from an image, as %s", (who) => {
  let engine: TestEngine;
  let source: string;
  let base: string;

  beforeAll(async () => {
    engine = await (who === "root" ? TestEngine.open() : openUserEngine());
    const busybox = who === "root" ? await engine.importBase() : "tag:busybox:latest";
    const removed = await engine.run(busybox, removedTree);
    const made = await engine.run(removed.image ?? "", sourceTree);
    if (made.exitCode !== 0) throw new Error(made.stderr);
    source = made.image ?? "";
    expect(made.operation.error).toBeNull();
    base = (await engine.run(busybox, baseTree)).image ?? "";
  });
  afterAll(() => engine.close());

  const copy = (image: string, copies: ImageCopy[], command = "") => engine.run(image, command, { copies });

  for (const command of ["", "true"]) {
    describe(command === "" ? "without a command" : "with a command", () => {
      for (const [name, request, directory, expected] of cases) {
        test(name, async () => {
          const { operation, image } = await copy(base, [{ image: source, ...request }], command);
          expect(operation.error).toBeNull();
          expect(await treeOf(engine, image ?? "", directory)).toEqual(expected);
        });
      }

      for (const [name, request, message] of failures) {
        test(`${name} is refused`, async () => {
          const { operation } = await copy(base, [{ image: source, ...request }], command);
          expect(operation).toMatchObject({ status: "FAILED", error: expect.stringContaining(message) });
        });
      }
    });
  }
});

/** Returns type, mode, owner and path of everything below a directory. */
async function treeOf(engine: TestEngine, image: string, directory: string): Promise<string[]> {
  const find = `cd ${directory} && find . -exec stat -c '%A %a %u:%g %n' {} + | sort -k 4`;
  const { stdout, stderr } = await engine.run(image, find, { disposable: true });
  if (stderr !== "") throw new Error(stderr);
  return stdout
    .trim()
    .split("\n")
    .map((line) => line.replace(/^(.)\S+/, "$1").replace(/ \.\//, " "));
}
