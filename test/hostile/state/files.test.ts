/** Stored files that have changed since their upload never get into an image: the same build sends them again. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  appendFileSync,
  closeSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

/** A text as long as the canary's, so that a link to the canary has the right size. */
const small = "the canary sank!\n";
const large = `${"large ".repeat(9_999)}\n`.repeat(12);

/** The files are here-documents, which are sent; files of the context would reach the engine by their paths. */
const dockerfile = `FROM busybox:1\nCOPY <<small <<large /\n${small}small\n${large}large\nRUN true\n`;

interface Stored {
  path: string;
  folder: string;
  canary: Canary;
}

const attacks: readonly (readonly [name: string, attack: (stored: Stored) => void])[] = [
  ["a flipped byte in the middle", ({ path }) => overwrite(path, Math.floor(statSync(path).size / 2))],
  ["a flipped first byte", ({ path }) => overwrite(path, 0)],
  ["a flipped last byte", ({ path }) => overwrite(path, statSync(path).size - 1)],
  ["zeros of the same length", ({ path }) => writeFileSync(path, Buffer.alloc(statSync(path).size))],
  ["the last byte cut off", ({ path }) => truncateSync(path, statSync(path).size - 1)],
  ["an empty file", ({ path }) => truncateSync(path, 0)],
  ["an additional byte", ({ path }) => appendFileSync(path, "!")],
  ["a missing file", ({ path }) => rmSync(path)],
  ["a missing folder", ({ folder }) => rmSync(folder, { recursive: true })],
  [
    "a link to a canary in its place",
    ({ path, canary }) => replace(path, () => symlinkSync(canary.file, path)),
  ],
  ["a link to a device in its place", ({ path }) => replace(path, () => symlinkSync("/dev/zero", path))],
  ["a pipe in its place", ({ path }) => replace(path, () => Bun.spawnSync(["mkfifo", path]))],
  [
    "a directory in its place",
    ({ path }) => replace(path, () => mkdirSync(join(path, "sub"), { recursive: true })),
  ],
  [
    "a link to a canary in its folder's place",
    ({ folder, canary }) => {
      rmSync(folder, { recursive: true });
      symlinkSync(canary.path, folder);
    },
  ],
  [
    "a link to its own bytes elsewhere",
    ({ path }) => {
      renameSync(path, `${path}.moved`);
      symlinkSync(`${path}.moved`, path);
    },
  ],
];

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  let canary: Canary;
  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
    builder.writeContext({ Dockerfile: dockerfile });
    expect(await builder.bough(["build", "-q", "."])).toMatchObject({ exitCode: 0 });
    builder.keep();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  const storedFiles = () =>
    readdirSync(join(builder.engine, "files"), { recursive: true, withFileTypes: true })
      .filter((entry) => /^[0-9a-f]{64}$/.test(entry.name))
      .map((entry) => join(entry.parentPath, entry.name));

  const ofEachKind = [
    "a flipped byte in the middle",
    "a missing file",
    "a link to a canary in its place",
    "a pipe in its place",
    "a link to a canary in its folder's place",
  ];
  test.each(rowsFor(who, attacks, ofEachKind))("a build replaces stored files: %s", async (_name, attack) => {
    const paths = storedFiles();
    expect(paths).toHaveLength(2);
    const before = canary.state();
    for (const path of paths) {
      attack({ path, folder: join(path, ".."), canary });
    }
    builder.own(join(builder.engine, "files"));

    const again = await builder.bough(["build", "--no-cache", "--progress", "plain", "."]);
    expect(again).toMatchObject({ exitCode: 0 });
    expect(again.stderr).toContain("2 uploaded files are gone: sending again");
    const [image = ""] = /^[0-9a-f-]{36}/m.exec(again.stdout) ?? [];
    expect((await builder.bough(["cat", `${image}:/small`])).stdout).toBe(small);
    expect((await builder.bough(["cat", `${image}:/large`])).stdout).toBe(large);
    for (const path of paths)
      expect(path).toEndWith(new Bun.CryptoHasher("sha256").update(readFileSync(path)).digest("hex"));
    expect(canary.state()).toBe(before);
  });

  test.each([
    ["flipped", (path: string) => overwrite(path, 0)],
    ["gone", (path: string) => rmSync(path)],
  ])("`bough run` replaces a stored file that is %s", async (_name, attack) => {
    builder.writeContext({ small, dir: "directory/" });
    const run = (...words: string[]) =>
      builder.bough(["run", "--use", "busybox:1", "-D", "-F", "small:/small", ...words]);
    expect(await run("--", "cat", "/small")).toMatchObject({ exitCode: 0, stdout: small });
    for (const words of [[], ["-F", "dir:/dir"]]) {
      for (const path of storedFiles()) attack(path);
      const ended = await run(...words, "--", "cat", "/small");
      expect(ended).toMatchObject({ exitCode: 0, stdout: small });
      expect(ended.stderr).toContain("1 uploaded file is gone: sending again");
    }
  });
});

function overwrite(path: string, position: number): void {
  const flipped = Buffer.from([(readFileSync(path)[position] ?? 0) ^ 1]);
  const descriptor = openSync(path, "r+");
  writeSync(descriptor, flipped, 0, 1, position);
  closeSync(descriptor);
}

function replace(path: string, make: () => void): void {
  rmSync(path);
  make();
}
