/** Forged rows of the engine's database: no path in them leads out of the engine, and none stops a build. */
import { Database } from "bun:sqlite";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { existsSync } from "node:fs";
import { join, relative } from "node:path";
import { rowsFor } from "../../support/rows.ts";
import { type Canary, makeCanary } from "../canary.ts";
import { type Builder, builders } from "./builder.ts";

interface Attack {
  name: string;
  /** `out`: the canary's path relative to a folder of the engine. */
  sql: (out: string) => string;
  /** The commands that run again. */
  runs: string[];
}

const operation = (uuid: string, metadata = "{}", finished = "NULL") =>
  `INSERT INTO operations (uuid, kind, status, owner, metadata, result, created_at, finished_at)
   VALUES ('${uuid}', 'instance', 'EXECUTING', 'gone.1.1', '${metadata}', NULL, 1, ${finished})`;

const attacks: Attack[] = [
  { name: "an unfinished operation is named as a path to a canary", sql: (out) => operation(out), runs: [] },
  {
    name: "an unfinished operation is named as an absolute path",
    sql: (out) => operation(`/${out}`),
    runs: [],
  },
  { name: "an unfinished operation is named ..", sql: () => operation(".."), runs: [] },
  { name: "an unfinished operation has an empty name", sql: () => operation(""), runs: [] },
  {
    name: "a finished operation is named as a path to a canary",
    sql: (out) => operation(out, "{}", "1"),
    runs: [],
  },
  {
    name: "an unfinished operation's metadata is not JSON",
    sql: () => operation(crypto.randomUUID(), "{"),
    runs: [],
  },
  {
    name: "all metadata is not JSON",
    sql: () => "UPDATE operations SET metadata = 'x', result = '['",
    runs: [],
  },
  {
    name: "all operations have an invalid status",
    sql: () => "UPDATE operations SET status = 'NAPPING'",
    runs: [],
  },
  {
    name: "an uploaded file's hash is a path to a canary",
    sql: (out) => `UPDATE files SET sha256 = '../${out}/file'`,
    runs: [],
  },
  { name: "an uploaded file has another size", sql: () => "UPDATE files SET size = 1", runs: [] },
  { name: "an uploaded file has a negative size", sql: () => "UPDATE files SET size = -1", runs: [] },
  { name: "an uploaded file has an empty hash", sql: () => "UPDATE files SET sha256 = ''", runs: [] },
  {
    name: "the last image's configuration is not JSON",
    sql: () => "UPDATE images SET config = '{' WHERE layer = 4",
    runs: ["cat"],
  },
  {
    name: "the last image's configuration is a list",
    sql: () => "UPDATE images SET config = '[1]' WHERE layer = 4",
    runs: ["cat"],
  },
  {
    name: "the last image names a missing layer",
    sql: () => "UPDATE images SET layer = 99 WHERE layer = 4",
    runs: ["cat"],
  },
  {
    name: "the last image names a negative layer",
    sql: () => "UPDATE images SET layer = -1 WHERE layer = 4",
    runs: ["cat"],
  },
  {
    name: "a tag names a missing image",
    sql: () => "INSERT INTO tags (tag, image) VALUES ('evil:1', '../../canary')",
    runs: [],
  },
];

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  let canary: Canary;
  beforeAll(async () => {
    builder = await make();
    canary = makeCanary(builder.home);
    builder.own(canary.path);
    builder.writeContext({
      Dockerfile: "FROM busybox:1\nRUN echo one > /one\nCOPY a.txt /\nRUN cat /a.txt > /two\n",
      "a.txt": "content\n",
    });
    expect(await builder.bough(["build", "."])).toMatchObject({ exitCode: 0 });
    builder.keep();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  const ofEachKind = [
    "an unfinished operation is named as a path to a canary",
    "an uploaded file's hash is a path to a canary",
    "the last image names a missing layer",
  ];
  test.each(rowsFor(who, attacks, ofEachKind))("$name", async ({ sql, runs }) => {
    const before = canary.state();
    const out = relative(join(builder.engine, "operations"), canary.path);
    expect(existsSync(join(builder.engine, "operations", out))).toBe(true);
    const database = new Database(join(builder.engine, "engine.db"));
    database.run("PRAGMA foreign_keys = OFF");
    database.run(sql(out));
    database.close();
    builder.own(builder.engine);

    for (const options of [[], ["--no-cache"]]) {
      const again = await builder.bough(["build", ...options, "."]);
      expect(again).toMatchObject({ exitCode: 0 });
      const spawned = [...again.stderr.matchAll(/ op=\S+ RUN (\w+)/g)].map(([, word]) => word ?? "");
      expect(spawned).toEqual(options.length === 0 ? runs : ["echo", "cat"]);
    }
    for (const words of [
      ["ps", "--all"],
      ["images"],
      ["engine", "df"],
      ["engine", "prune", "-y"],
      ["build", "."],
    ])
      expect({ words, ...(await builder.bough(words)) }).toMatchObject({ words, exitCode: 0 });
    expect(canary.state()).toBe(before);
  });
});
