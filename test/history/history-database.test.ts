import { Database } from "bun:sqlite";
import { describe, expect, test } from "bun:test";
import { chmodSync, existsSync, statSync, writeFileSync } from "node:fs";
import { historyPath, openExistingHistory, openHistory } from "../../src/history/history-database.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { recordOf, start, stepOf } from "./builds.ts";

const bounds = { builds: 1000, bytes: 1_000_000, ageMilliseconds: 86_400_000 };

test("a build is stored with the output of its steps, and replaced when it has ended", () => {
  const home = temporaryDirectory();
  expect(openExistingHistory(home)).toBeUndefined();
  using history = openHistory(home, bounds);
  history.save(recordOf("a", [], { status: "running" }), "owner", new Map([[2, "two\n"]]));
  const ended = recordOf("a", [stepOf(1, "RUN x", { outcome: "failed" })], {
    ...{ status: "failed", error: { message: "line one\nline two", hint: null } },
  });
  history.save(ended, "owner", new Map([[3, "three\n"]]));
  expect(history.record("a")).toEqual(ended);
  expect([2, 3, 4].map((step) => history.output("a", step))).toEqual(["two\n", "three\n", undefined]);
  expect(history.list()).toMatchObject([
    { id: "a", status: "failed", layers: 1, cached: 0, error: "line one" },
  ]);
  history.remove(["a"]);
  expect(history.output("a", 2)).toBeUndefined();
  expect([history.count(), history.bytesOf(["a"])]).toEqual([0, 0]);
  expect(statSync(historyPath(home)).mode & 0o777).toBe(0o600);
});

describe("the oldest builds go", () => {
  const kept = (given: Partial<typeof bounds>, count: number) => {
    using history = openHistory(temporaryDirectory(), { ...bounds, ...given });
    for (let number = 0; number < count; number++) {
      const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(10_000))).toString("latin1");
      const record = recordOf(`b${number}`, [], { startedAt: start + number * 3_600_000 });
      history.save(record, "", new Map([[1, noise]]));
    }
    const ids = history.list().map(({ id }) => id);
    expect(history.bytesOf(ids)).toBeLessThan(given.bytes ?? bounds.bytes);
    return ids;
  };

  test("beyond the number", () => {
    expect(kept({ builds: 3 }, 5)).toEqual(["b4", "b3", "b2"]);
  });

  test("beyond the bytes, but never the newest", () => {
    expect(kept({ bytes: 45_000 }, 5)).toEqual(["b4", "b3", "b2"]);
    using history = openHistory(temporaryDirectory(), { ...bounds, bytes: 10 });
    history.save(recordOf("large"), "", new Map([[1, "text"]]));
    expect(history.list()).toHaveLength(1);
  });

  test("beyond the age", () => {
    expect(kept({ ageMilliseconds: 2.5 * 3_600_000 }, 5)).toEqual(["b4", "b3", "b2"]);
  });
});

test("a damaged history is thrown away: no build needs it", () => {
  const home = temporaryDirectory();
  openHistory(home, bounds)[Symbol.dispose]();
  writeFileSync(historyPath(home), "no database ".repeat(1000));
  using history = openHistory(home, bounds);
  history.save(recordOf("a"), "", new Map());
  expect(history.list()).toHaveLength(1);
});

test("several processes write at once", async () => {
  const home = temporaryDirectory();
  openHistory(home, bounds)[Symbol.dispose]();
  const program = `
    import { openHistory } from "${import.meta.dir}/../../src/history/history-database.ts";
    import { recordOf } from "${import.meta.dir}/builds.ts";
    for (let number = 0; number < 20; number++) {
      using history = openHistory(${JSON.stringify(home)});
      history.save(recordOf(process.argv[2] + number), "", new Map([[1, "output"]]));
    }`;
  const file = `${temporaryDirectory()}/writer.ts`;
  writeFileSync(file, program);
  const writers = ["a", "b", "c"].map((name) =>
    Bun.spawn([process.execPath, file, name], { stderr: "inherit" }),
  );
  expect(await Promise.all(writers.map(({ exited }) => exited))).toEqual([0, 0, 0]);
  using history = openHistory(home, bounds);
  expect(history.list()).toHaveLength(60);
});

test("a directory that others can write to is refused, and nothing is made there", () => {
  const home = temporaryDirectory();
  chmodSync(home, 0o777);
  expect(() => openHistory(home, bounds)).toThrow("can be written to by others");
  expect(existsSync(historyPath(home))).toBe(false);
});

describe("while another process writes", () => {
  test("removed builds are gone, and their space is given back the next time", () => {
    const home = temporaryDirectory();
    using history = openHistory(home, bounds);
    const noise = Buffer.from(crypto.getRandomValues(new Uint8Array(50_000))).toString("latin1");
    history.save(recordOf("a"), "", new Map([[1, noise]]));
    history.remove(["a"]);
    using other = new Database(historyPath(home));
    other.run("BEGIN IMMEDIATE");
    history.compact();
    expect(history.freeBytes()).toBeGreaterThan(50_000);
    other.run("ROLLBACK");
    history.compact();
    expect(history.freeBytes()).toBe(0);
    // Nothing is to be given back: no lock is needed.
    other.run("BEGIN IMMEDIATE");
    const begun = performance.now();
    history.compact();
    expect(performance.now() - begun).toBeLessThan(1500);
    other.run("ROLLBACK");
  });

  test("opening the history takes a few seconds at most", () => {
    const home = temporaryDirectory();
    using other = new Database(historyPath(home), { create: true });
    other.run("BEGIN EXCLUSIVE");
    const begun = performance.now();
    expect(() => openHistory(home, bounds)).toThrow("locked");
    expect(performance.now() - begun).toBeLessThan(10_000);
  });
});
