/** The tree that an archive's entries make in its directory, also if the archive is hostile. */
import { describe, expect, test } from "bun:test";
import { createArchiveTree } from "../../../src/builder/archives/archive-tree.ts";
import { readTar } from "../../../src/image/tar-reader.ts";
import { inChunks, type RawEntry, tarOf } from "../../support/tar-bytes.ts";

/** Returns `path type content` of each entry in order. */
async function unpack(entries: readonly RawEntry[]): Promise<string[]> {
  const tree = createArchiveTree("a.tar");
  for await (const entry of readTar(inChunks(tarOf(entries)), "a.tar")) {
    let text = "";
    for await (const { bytes } of entry.pieces()) text += new TextDecoder().decode(bytes);
    tree.add(entry, entry.type === "file" ? text : undefined);
  }
  return tree.entries().map((entry) => {
    if (entry.type === "file")
      return [
        entry.path,
        entry.sha256,
        ...(entry.original === undefined ? [] : [`= ${entry.original}`]),
      ].join(" ");
    if (entry.type === "special") return `${entry.path} ${entry.kind}`;
    return entry.type === "directory"
      ? `${entry.path}/ ${entry.mode.toString(8)}`
      : `${entry.path} -> ${entry.target}`;
  });
}

const file = (name: string, content = "x"): RawEntry => ({ name, content });
const directory = (name: string, mode = 0o755): RawEntry => ({ name, flag: "5", mode });
const link = (name: string, target: string): RawEntry => ({ name, flag: "2", target });
const hardLink = (name: string, target: string): RawEntry => ({ name, flag: "1", target });

describe("unpacks an archive", () => {
  test.each<[string, RawEntry[], string[]]>([
    ["of a tree", [directory("./"), directory("./d/", 0o700), file("./d/f")], ["d/ 700", "d/f x"]],
    ["without its directories", [file("a/b/f")], ["a/ 755", "a/b/ 755", "a/b/f x"]],
    [
      "with names that lead out of it",
      [file("../../f"), file("/etc/g"), file("a/../../h")],
      ["f x", "etc/ 755", "etc/g x", "h x"],
    ],
    [
      "with a file below a link that leads out of it",
      [link("a", "/etc"), file("a/passwd")],
      ["a -> /etc", "etc/ 755", "etc/passwd x"],
    ],
    [
      "with a file below a link that leads up",
      [link("a", "../../.."), file("a/f")],
      ["a -> ../../..", "f x"],
    ],
    ["that replaces a file", [file("f", "1"), file("f", "2")], ["f 2"]],
    ["that replaces a link", [link("f", "/etc/passwd"), file("f")], ["f x"]],
    ["that replaces a directory", [file("d/f"), link("d", "e"), file("d/g")], ["d -> e", "e/ 755", "e/g x"]],
    [
      "with hard links",
      [file("f"), hardLink("g", "f"), hardLink("h", "../f")],
      ["f x", "g x = f", "h x = f"],
    ],
    [
      "with hard links to a file that is replaced later",
      [file("f"), hardLink("g", "f"), hardLink("h", "g"), file("f", "new")],
      ["f new", "g x", "h x = g"],
    ],
    [
      "with special files",
      [{ name: "null", flag: "3" }, { name: "sda", flag: "4" }, { name: "p", flag: "6" }, hardLink("q", "p")],
      ["null character-device", "sda block-device", "p pipe", "q pipe"],
    ],
    [
      "with a hard link in the place of another file",
      [file("f"), file("g", "old"), hardLink("h", "g"), hardLink("g", "f")],
      ["f x", "g x = f", "h old"],
    ],
  ])("%s", async (_, entries, expected) => {
    expect(await unpack(entries)).toEqual(expected);
  });

  test.each<[string, RawEntry[], string]>([
    ["an entry of an unknown type", [{ name: "v", flag: "V" }], 'contains v, whose type "V" is unknown'],
    ["a file below a file", [file("f"), file("f/g")], "a.tar contains f/g, but f is not a directory"],
    [
      "circular links",
      [link("a", "b"), link("b", "a"), file("a/f")],
      "a/f: too many levels of symbolic links",
    ],
    [
      "a hard link to a missing file",
      [hardLink("g", "f")],
      "contains g as a link to f, which is not a file in the archive",
    ],
    [
      "a hard link to a directory",
      [directory("d"), hardLink("g", "d")],
      "which is not a file in the archive",
    ],
    ["a name that is not UTF-8", [file("\ufffd")], "a name that is not UTF-8"],
  ])("refuses an archive with %s", async (_, entries, message) => {
    await expect(unpack(entries)).rejects.toThrow(message);
  });
});
