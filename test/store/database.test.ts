import type { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { openStateFile } from "../../src/store/database.ts";
import { openStore } from "../../src/store/store.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { saying } from "../support/saying.ts";

const migrations = ["CREATE TABLE one (id INTEGER PRIMARY KEY)", "CREATE TABLE two (id INTEGER PRIMARY KEY)"];
const tables = (database: Database) =>
  database
    .query<{ name: string }, []>("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
    .all()
    .map(({ name }) => name);

test("an older file gets the tables that it lacks, and keeps its rows", () => {
  const path = join(temporaryDirectory(), "state.db");
  const old = openStateFile(path, migrations.slice(0, 1));
  old.run("INSERT INTO one VALUES (7)");
  old.close();
  const database = openStateFile(path, migrations);
  expect(tables(database)).toEqual(["one", "two"]);
  expect(database.query("SELECT id FROM one").all()).toEqual([{ id: 7 }]);
});

test("a failed migration leaves the file unchanged", () => {
  const path = join(temporaryDirectory(), "state.db");
  openStateFile(path, migrations.slice(0, 1)).close();
  expect(() => openStateFile(path, [...migrations, "CREATE TABLE one (again TEXT)"])).toThrow(path);
  expect(tables(openStateFile(path, migrations))).toEqual(["one", "two"]);
});

test("a file written by a newer bough is refused and left unchanged", () => {
  const path = join(temporaryDirectory(), "state.db");
  openStateFile(path, migrations).close();
  expect(() => openStateFile(path, migrations.slice(0, 1))).toThrow("was written by a newer bough");
  expect(tables(openStateFile(path, migrations))).toEqual(["one", "two"]);
});

test("damage is found, also in a file that was checked before", () => {
  const path = join(temporaryDirectory(), "state.db");
  const later = { now: () => Date.now() + 60_000 };
  const damaged: string[] = [];
  const open = () =>
    openStateFile(path, migrations, { clock: later, onDamaged: (name) => void damaged.push(name) });
  open().close();
  const note = () => readFileSync(`${path}-whole`, "utf8");
  open().close();
  const noted = note();
  open().close();
  expect({ note: note(), damaged }).toEqual({ note: noted, damaged: [] });
  const bytes = readFileSync(path);
  writeFileSync(path, bytes.fill("garbage ", 4096));
  open().close();
  expect(damaged).toEqual([`${path}.damaged`]);
});

test("the directories have mode 0700 and all files 0600", () => {
  const directory = join(temporaryDirectory(), "a", "b");
  const database = openStateFile(join(directory, "state.db"), migrations);
  database.run("INSERT INTO one VALUES (1)");
  const mode = (path: string) => (statSync(path).mode & 0o777).toString(8);
  expect(mode(directory)).toBe("700");
  expect(readdirSync(directory).map((name) => [name, mode(join(directory, name))])).toEqual(
    readdirSync(directory).map((name) => [name, "600"]),
  );
  expect(existsSync(join(directory, "state.db-wal"))).toBe(true);
});

describe("an error has the path and a hint for", () => {
  test.each([
    [
      "a file that is not a database",
      (path: string) => writeFileSync(path, "no database ".repeat(100)),
      "file is not a database",
      /^The next `bough build` sets it aside/,
    ],
    [
      "a directory in its place",
      (path: string) => void openStateFile(join(path, "inside.db"), []),
      "it is a directory",
      /^Check its permissions/,
    ],
  ])("%s", (_, prepare, reason, hint) => {
    const path = join(temporaryDirectory(), "state.db");
    prepare(path);
    const message = `cannot open the state file ${path}: ${reason}`;
    const error = expect.objectContaining({ message, hint: saying(hint) });
    expect(() => openStateFile(path, migrations)).toThrow(error);
  });
});

test("several processes write concurrently, and nothing is lost", async () => {
  const path = join(temporaryDirectory(), "sessions", "service.db");
  const script = `
    import { openStore } from ${JSON.stringify(join(import.meta.dir, "../../src/store/store.ts"))};
    import { systemClock } from ${JSON.stringify(join(import.meta.dir, "../../src/clock.ts"))};
    const store = openStore(${JSON.stringify(path)}, systemClock);
    for (let number = 0; number < 25; number++) {
      store.sessions.commit("build:shared", "layer:" + process.argv.at(-1) + "-" + number, {
        parent: null, image: "image", kind: "run", title: "RUN", operation: null,
      });
    }`;
  const writers = Array.from({ length: 8 }, (_, index) =>
    Bun.spawn([process.execPath, "-e", script, String(index)], { stderr: "pipe" }),
  );
  for (const writer of writers) {
    expect(await new Response(writer.stderr).text()).toBe("");
    expect(await writer.exited).toBe(0);
  }
  const store = openStore(path, systemClock);
  expect(store.sessions.history("build:shared")).toHaveLength(200);
  expect(store.sessions.list("build:")).toMatchObject([{ key: "build:shared", branches: 200, entries: 200 }]);
  store.close();
});
