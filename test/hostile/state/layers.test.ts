/** Layers that are missing, replaced or have a wrong record: their images do not exist, and cached steps are built again. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

interface Damaged {
  /** The directory of the layer. */
  path: string;
  id: number;
  database: Database;
  canary: Canary;
}

const attacks: readonly (readonly [name: string, attack: (damaged: Damaged) => void])[] = [
  ["its directory is gone", ({ path }) => rmSync(path, { recursive: true })],
  ["a link to a canary", ({ path, canary }) => replace(path, () => symlinkSync(canary.path, path))],
  ["a link to its own directory elsewhere", ({ path }) => moveBehindLink(path)],
  ["a file", ({ path }) => replace(path, () => writeFileSync(path, ""))],
  ["a pipe", ({ path }) => replace(path, () => Bun.spawnSync(["mkfifo", path]))],
  ["its record is gone", ({ database, id }) => void database.run("DELETE FROM layers WHERE id = ?", [id])],
  ["its record names itself as the parent", ({ database, id }) => setParent(database, id, id)],
  [
    "the machine stopped before it was completely on the disk",
    ({ path, database, id }) => {
      rmSync(path, { recursive: true });
      mkdirSync(path);
      database.run("INSERT INTO unsynced_layers (layer, boot) VALUES (?, 'an earlier one')", [id]);
    },
  ],
  ["its record names a missing parent", ({ database, id }) => setParent(database, id, 999)],
  ["its record names the last layer as the parent", ({ database, id }) => setParent(database, id, 4)],
  [
    "its record has another depth",
    ({ database, id }) => void database.run("UPDATE layers SET depth = 300 WHERE id = ?", [id]),
  ],
  [
    "its record has a negative depth",
    ({ database, id }) => void database.run("UPDATE layers SET depth = -1 WHERE id = ?", [id]),
  ],
];

/** Layers by number: the base, then one for each RUN. */
const dockerfile = "FROM busybox:1\nRUN echo one > /one\nRUN echo two > /two\nRUN echo three > /three\n";

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  let canary: Canary;
  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
    builder.writeContext({ Dockerfile: dockerfile });
    expect(await builder.bough(["build", "--tag", "app:1", "."])).toMatchObject({ exitCode: 0 });
    builder.keep();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  function damage(id: number, attack: (damaged: Damaged) => void): void {
    const database = new Database(join(builder.engine, "engine.db"));
    try {
      database.run("PRAGMA foreign_keys = OFF");
      attack({ path: join(builder.engine, "layers", id.toString(36)), id, database, canary });
    } finally {
      database.close();
    }
    builder.own(join(builder.engine, "layers"));
  }

  const commands = (log: string) => [...log.matchAll(/ op=\S+ RUN echo (\w+)/g)].map(([, word]) => word);
  const listed = async () =>
    JSON.parse((await builder.bough(["-f", "json", "images", "--all"])).stdout).length;

  const ofEachKind = [
    "a link to a canary",
    "its record is gone",
    "the machine stopped before it was completely on the disk",
  ];
  test.each(rowsFor(who, attacks, ofEachKind))(
    "a layer in the middle is built again: %s",
    async (_name, attack) => {
      const before = canary.state();
      damage(3, attack);
      const again = await builder.bough(["build", "--tag", "app:1", "."]);
      expect(again.stderr).not.toContain("[ERROR]");
      expect(again.exitCode).toBe(0);
      expect(again.stderr).toMatch(/image \S+ of layer:\S+ is gone/);
      const read = await builder.bough([
        "run",
        "--use",
        "app:1",
        "-D",
        "--",
        "cat",
        "/one",
        "/two",
        "/three",
      ]);
      expect(read).toMatchObject({ exitCode: 0, stdout: "one\ntwo\nthree\n" });
      expect((await builder.bough(["build", "--tag", "app:1", "."])).stderr).not.toContain("spawned");
      expect(canary.state()).toBe(before);
    },
  );

  const gone: [name: string, id: number, options: string[], expected: string[]][] = [
    ["the last layer is missing, with --tag", 4, ["--tag", "app:1"], ["three"]],
    ["the last layer is missing, without --tag", 4, [], ["three"]],
    ["the layer before the last is missing", 3, [], ["two", "three"]],
    ["the first layer above the base is missing", 2, [], ["one", "two", "three"]],
  ];
  test.each(rowsFor(who, gone, ["the layer before the last is missing"]))(
    "%s: only that layer and those above it are built again",
    async (_name, id, options, expected) => {
      damage(id, ({ path }) => rmSync(path, { recursive: true }));
      expect(await listed()).toBe(id - 1);
      const again = await builder.bough(["build", ...options, "."]);
      expect(again.exitCode).toBe(0);
      expect(commands(again.stderr)).toEqual(expected);
    },
  );

  test.each(rowsFor(who, attacks.slice(0, 5), ["a link to a canary"]))(
    "importing the base again repairs it: %s",
    async (_name, attack) => {
      const before = canary.state();
      damage(1, attack);
      expect(await listed()).toBe(0);
      const imported = await builder.bough(["images", "import", builder.layout, "--tag", "busybox:1"]);
      expect(imported).toMatchObject({ exitCode: 0 });
      const again = await builder.bough(["build", "."]);
      expect(again).toMatchObject({ exitCode: 0 });
      // Images built on it are valid again, too.
      expect(commands(again.stderr)).toEqual([]);
      expect(await builder.bough(["run", "--use", "app:1", "-D", "--", "cat", "/three"])).toMatchObject({
        stdout: "three\n",
      });
      expect(canary.state()).toBe(before);
    },
  );

  test("without any layers, commands report a missing image", async () => {
    rmSync(join(builder.engine, "layers"), { recursive: true });
    for (const words of [
      ["run", "--use", "app:1", "-D", "--", "true"],
      ["ls", "app:1:/"],
      ["tag", "app:1", "app:2"],
    ]) {
      const { exitCode, stderr } = await builder.bough(words);
      expect({ words, exitCode }).toEqual({ words, exitCode: 1 });
      expect(stderr).toContain("no image");
    }
  });
});

function setParent(database: Database, id: number, parent: number): void {
  database.run("UPDATE layers SET parent = ? WHERE id = ?", [parent, id]);
}

function replace(path: string, make: () => void): void {
  rmSync(path, { recursive: true });
  make();
}

function moveBehindLink(path: string): void {
  const elsewhere = join(path, "../../moved");
  mkdirSync(elsewhere, { recursive: true });
  renameSync(path, join(elsewhere, "layer"));
  symlinkSync(join(elsewhere, "layer"), path);
}
