/** Reading archives: those that GNU tar writes in its formats, and damaged ones. */
import { describe, expect, test } from "bun:test";
import { relativeEntries } from "../../src/builder/operations/image-entries.ts";
import { numberAt } from "../../src/image/tar-header.ts";
import { readTar } from "../../src/image/tar-reader.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { inChunks, tarOf } from "../support/tar-bytes.ts";

interface Read {
  name: string;
  type: string;
  mode: string;
  size: number;
  target: string;
  sha256: string;
}

async function readAll(bytes: Uint8Array, chunkSize?: number): Promise<Read[]> {
  const entries: Read[] = [];
  for await (const entry of readTar(inChunks(bytes, chunkSize))) {
    const content = Buffer.alloc(entry.size);
    for await (const piece of entry.pieces()) content.set(piece.bytes, piece.offset);
    const { name, type, size, target } = entry;
    entries.push({ name, type, mode: entry.mode.toString(8), size, target, sha256: sha256(content) });
  }
  return entries;
}

const sha256 = (bytes: Uint8Array) => Bun.CryptoHasher.hash("sha256", bytes, "hex");

const long = "x".repeat(120);
const script = `
  mkdir -p dir/'${long}' && printf hello > dir/a && chmod 640 dir/a && : > dir/empty
  printf nested > dir/'${long}'/'${long}'
  ln -s a dir/link && ln dir/a dir/zhard && ln -s '${long}${long}' dir/longlink
  printf 'ü\\n' > "dir/ü 
name"
  truncate -s 5M dir/sparse && printf middle | dd of=dir/sparse bs=1 seek=2500000 conv=notrunc status=none
  head -c 100000 /dev/urandom > dir/random
  mkfifo dir/pipe`;

describe.each(["posix", "gnu"])("an archive of GNU tar in the format %s", (format) => {
  test.each([1, 511, 700, 1_000_000])("is read completely in chunks of %d bytes", async (chunkSize) => {
    const cwd = temporaryDirectory();
    const made = Bun.spawnSync(["sh", "-ec", script], { cwd });
    expect(made.stderr.toString()).toBe("");
    // One byte at a time is slow, so the large files are left out.
    const left = chunkSize === 1 ? ["--exclude=random", "--exclude=sparse"] : [];
    const options = ["--sparse", "--sort=name", ...left, "dir"];
    const tar = Bun.spawnSync(["tar", "-c", `--format=${format}`, ...options], {
      cwd,
    });
    const entries = await readAll(tar.stdout, chunkSize);
    const hash = (path: string) => sha256(Bun.spawnSync(["cat", path], { cwd }).stdout);
    const expected: [string, Partial<Read>][] = [
      ["dir/", { type: "directory", mode: "755" }],
      ["dir/a", { type: "file", mode: "640", size: 5 }],
      ["dir/empty", { type: "file", size: 0 }],
      ["dir/link", { type: "symlink", target: "a" }],
      ["dir/longlink", { type: "symlink", target: `${long}${long}` }],
      ["dir/pipe", { type: "other" }],
      ...(left.length > 0
        ? []
        : ([["dir/random", { size: 100_000, sha256: hash("dir/random") }]] as [string, Partial<Read>][])),
      ...(left.length > 0
        ? []
        : ([["dir/sparse", { size: 5 * 1024 * 1024, sha256: hash("dir/sparse") }]] as [
            string,
            Partial<Read>,
          ][])),
      [`dir/${long}/`, { type: "directory" }],
      [`dir/${long}/${long}`, { sha256: sha256(Buffer.from("nested")) }],
      ["dir/zhard", { type: "hardlink", target: "dir/a", size: 0 }],
      ["dir/ü \nname", { size: 3 }],
    ];
    expect(entries.map(({ name }) => name)).toEqual(expected.map(([name]) => name));
    expect(entries).toMatchObject(expected.map(([, entry]) => entry));
  });
});

/** An archive of one entry with PAX records before it. */
function withPax(records: string | string[], content: string): Uint8Array {
  const lines = [records].flat().map((record) => {
    const rest = ` ${record}\n`;
    const digits = String(rest.length + 2).length;
    return `${rest.length + digits}${rest}`;
  });
  return tarOf([
    { name: "p", flag: "x", content: lines.join("") },
    { name: "s", content },
  ]);
}

test.each(["gnu", "0.0", "0.1", "1.0"])(
  "a sparse file of many pieces is read in format %s",
  async (version) => {
    const cwd = temporaryDirectory();
    const pieces = Array.from(
      { length: 60 },
      (_, index) => `printf ${index} | dd of=s bs=1 seek=${index}00000`,
    );
    const script = pieces.map((piece) => `${piece} conv=notrunc status=none`).join("\n");
    Bun.spawnSync(["sh", "-ec", `${script}\ntruncate -s 7M s; truncate -s 3M hole`], { cwd });
    const format = version === "gnu" ? ["--format=gnu"] : ["--format=posix", `--sparse-version=${version}`];
    const tar = Bun.spawnSync(["tar", "-cS", ...format, "s", "hole"], { cwd });
    expect(tar.stdout.length).toBeLessThan(1_000_000);
    expect(await readAll(tar.stdout)).toMatchObject(
      ["s", "hole"].map((name) => ({ name, sha256: sha256(Bun.spawnSync(["cat", name], { cwd }).stdout) })),
    );
  },
);

/** An archive of a sparse file of `size` bytes, without its data. */
function withMap(map: string, size: number): Uint8Array {
  return withPax(
    ["GNU.sparse.major=1", "GNU.sparse.minor=0", `GNU.sparse.realsize=${size}`],
    map.padEnd(Math.ceil(map.length / 512) * 512, "\0"),
  );
}

test("reading a sparse map of 20 MB takes linear time", async () => {
  const count = 900_000;
  const map = `${count}\n${Array.from({ length: count }, (_, index) => `${1_000_000_000 + index * 10}\n0\n`).join("")}`;
  const started = process.cpuUsage();
  for await (const entry of readTar(inChunks(withMap(map, 1e12), 65_536))) {
    for await (const piece of entry.pieces()) expect(piece.bytes.byteLength).toBe(0);
  }
  // In quadratic time it would be minutes.
  const { user, system } = process.cpuUsage(started);
  expect(user + system).toBeLessThan(20_000_000);
});

test("an empty PAX record leaves the header's value", async () => {
  const [entry] = await readAll(withPax(["path=", "size=", "linkpath="], "12345"));
  expect(entry).toMatchObject({ name: "s", size: 5, target: "" });
});

test("GNU's long name applies if PAX records follow it", async () => {
  const bytes = tarOf([
    { name: "p", flag: "L", content: `${long}\0` },
    { name: "p", flag: "x", content: "9 uid=12\n" },
    { name: "short", content: "12345" },
  ]);
  expect(await readAll(bytes)).toMatchObject([{ name: long, size: 5 }]);
});

test("reads GNU's binary numbers, negative or too large for octal digits", () => {
  const numberOf = (hex: string) => numberAt(Buffer.from(hex, "hex"), 0, hex.length / 2);
  expect(numberOf("ffffffffffffffffffffffff")).toBe(-1);
  expect(numberOf("ffffffffffffffffffffff00")).toBe(-256);
  expect(numberOf("800000000000000200000000")).toBe(2 ** 33);
});

describe("refuses", () => {
  const whole = tarOf([{ name: "a", content: "x".repeat(2000) }]);
  test.each<[string, Uint8Array, string]>([
    ["an empty archive", new Uint8Array(), "it ends too early"],
    ["an archive cut off in a header", whole.subarray(0, 300), "it ends too early"],
    ["an archive cut off in a file", whole.subarray(0, 1000), "it ends too early"],
    ["an archive cut off before its end mark", tarOf([{ name: "a" }], { end: false }), "it ends too early"],
    ["a file that is not an archive", Buffer.from("<html>".repeat(200)), "a header's checksum is wrong"],
    [
      "an extended header of a megabyte",
      tarOf([{ name: "p", flag: "x", content: "x".repeat(1_100_000) }]),
      "a header is too large",
    ],
    [
      "a sparse file without a map",
      tarOf([
        { name: "p", flag: "x", content: "22 GNU.sparse.major=1\n" },
        { name: "s", content: "not a number\n" },
      ]),
      "map",
    ],
    [
      "200 extended headers without an entry",
      tarOf(Array(200).fill({ name: "p", flag: "x" })),
      "too many extended headers",
    ],
    ["a file of negative size", withPax("size=-1", ""), "a file's size is invalid"],
    ["a file whose size is not a safe integer", withPax("size=1e300", ""), "a file's size is invalid"],
    ["a sparse file of negative size", withMap("0\n", -1), "a file's size is invalid"],
    [
      "a sparse map beyond the data",
      withPax(["GNU.sparse.size=9", "GNU.sparse.map=0,6"], "12345"),
      "its size",
    ],
    ["an odd sparse map", withPax(["GNU.sparse.size=9", "GNU.sparse.map=0,1,2"], "12345"), "not a number"],
    ["a sparse map of words", withPax(["GNU.sparse.size=9", "GNU.sparse.map=0,x"], "12345"), "not a number"],
    [
      "a sparse file of an unknown format",
      withPax("GNU.sparse.major=2", "12345"),
      "a sparse file has an unsupported format",
    ],
    ["a sparse map that is cut off", withMap("2\n0\n1\n", 10), "not a number"],
    ["a sparse map that is missing", withMap("", 10), "a sparse file's map is missing"],
    ["a sparse map with a negative offset", withMap("1\n-5\n1\n", 10), "not a number"],
    ["a sparse map with a number of 600 digits", withMap("9".repeat(600), 10), "not a number"],
    ["a sparse map of 1,000,001 entries", withMap("1000001\n", 10), "more than 1000000 entries"],
    ["a sparse map with offsets out of order", withMap("2\n5\n1\n4\n1\n", 10), "does not fit"],
    ["a sparse map that extends past the end of the file", withMap("1\n8\n3\n", 10), "does not fit"],
    ["a sparse map of more bytes than the archive has", withMap("1\n0\n4096\n", 5000), "does not fit"],
  ])("%s", async (_, bytes, message) => {
    await expect(readAll(bytes)).rejects.toThrow(
      new RegExp(`^the archive from the service is damaged: .*${message}`),
    );
  });
});

test("skips the content of entries that the caller does not read", async () => {
  const names: string[] = [];
  const bytes = tarOf([{ name: "a", content: "x".repeat(3000) }, { name: "b", content: "y" }, { name: "c" }]);
  for await (const { name, pieces } of readTar(inChunks(bytes))) {
    names.push(name);
    if (name === "b") for await (const _ of pieces()) break;
  }
  expect(names).toEqual(["a", "b", "c"]);
});

describe("the archive of /srv/app", () => {
  const directory = (name: string) => ({ name, flag: "5" });
  const file = (name: string) => ({ name, content: "x" });
  async function namesOf(entries: Parameters<typeof tarOf>[0], listed: string[]): Promise<string[]> {
    const list = async () => listed.map((name) => ({ name }));
    const names: string[] = [];
    for await (const { name, target } of relativeEntries(
      readTar(inChunks(tarOf(entries))),
      "/srv/app/",
      list,
    ))
      names.push(target === "" ? name : `${name} -> ${target}`);
    return names;
  }

  test.each<[how: string, entries: Parameters<typeof tarOf>[0], listed: string[], names: string[]]>([
    [
      "with ./",
      [directory("./"), directory("./app/"), file("./app/f")],
      ["app"],
      ["./", "./app/", "./app/f"],
    ],
    ["with nothing", [file("app"), file("b")], ["app", "b"], ["app", "b"]],
    ["with its name", [directory("app/"), file("app/f"), directory("app/app")], ["f"], ["", "f", "app"]],
    ["with its path", [directory("srv/app"), file("srv/app/f")], [], ["", "f"]],
    ["with its absolute path", [directory("/srv/app/"), file("/srv/app/f")], [], ["", "f"]],
    [
      "with its name, with links",
      [
        ...[directory("app"), file("app/f")],
        { name: "app/h", flag: "1", target: "app/f" },
        { name: "app/s", flag: "2", target: "app/f" },
      ],
      [],
      ["", "f", "h -> f", "s -> app/f"],
    ],
    ["with a directory of its name in it", [directory("app/"), file("app/f")], ["app"], ["app/", "app/f"]],
  ])("may begin its names %s", async (_, entries, listed, names) => {
    expect(await namesOf(entries, listed)).toEqual(names);
  });

  test.each(["f", "app2/f"])("must not have the name %s after its own", async (name) => {
    const read = namesOf([directory("app/"), file(name)], []);
    await expect(read).rejects.toThrow(`begins with app, but contains "${name}"`);
  });
});
