import { beforeEach, describe, expect, test } from "bun:test";
import { join } from "node:path";
import type { Clock } from "../../src/clock.ts";
import { createPace } from "../../src/pace.ts";
import type { ContextHashes } from "../../src/store/hashes.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { state } from "../support/file-state.ts";

const one = "1".repeat(64);
const two = "2".repeat(64);

describe("a context's hashes", () => {
  let store: Store;
  let clock: Clock & { advance(milliseconds: number): Promise<void> };
  beforeEach(() => {
    clock = createManualClock();
    store = openStore(join(temporaryDirectory(), "state.db"), clock);
  });
  const known = (context: string, ...paths: string[]) => {
    const hashes = store.hashes.open(context);
    return paths.map((path) => hashes.get(path, state));
  };

  test("are there in the next build, once they were saved", () => {
    const hashes = store.hashes.open("/c");
    hashes.set("/c/a", state, one);
    expect(known("/c", "/c/a")).toEqual([undefined]);
    hashes.save();
    expect(known("/c", "/c/a")).toEqual([one]);
    expect(known("/other", "/c/a")).toEqual([undefined]);
  });

  test("of a path that is half a character short are not kept: it would never be found", () => {
    const hashes = store.hashes.open("/c");
    hashes.set("/c/\ud83d", state, one);
    expect(hashes.unsaved).toBe(0);
  });

  describe("of two builds at once", () => {
    const builds = () =>
      [0, 1].map(() => {
        const hashes = store.hashes.open("/c");
        hashes.get("/c/old", state);
        return hashes;
      }) as [ContextHashes, ContextHashes];

    test.each([
      ["none was known", []],
      ["some were known", ["/c/old"]],
    ])("are all kept, where %s", async (_, old) => {
      const before = store.hashes.open("/c");
      for (const path of old) before.set(path, state, one);
      before.save();
      const [first, second] = builds();
      first.set("/c/a", state, one);
      second.set("/c/b", state, two);
      first.save();
      await second.saveIfDue(createPace(undefined));
      first.set("/c/c", state, two);
      first.save();
      second.set("/c/d", state, one);
      second.save();
      expect(known("/c", "/c/a", "/c/b", "/c/c", "/c/d", ...old)).toEqual([
        one,
        two,
        two,
        one,
        ...old.map(() => one),
      ]);
    });

    test("are not tidied away by the one that has not found them out", () => {
      const before = store.hashes.open("/c");
      for (const path of ["/c/old", "/c/1", "/c/2"]) before.set(path, state, one);
      before.save();
      const [first, second] = builds();
      first.set("/c/a", state, two);
      first.save();
      second.tidy();
      expect(known("/c", "/c/a", "/c/1")).toEqual([two, one]);
    });
  });

  describe("while they are saved, a part at a time", () => {
    const many = 10_000;
    /** Saves many, and calls `meanwhile` once the saving gives way. */
    async function saveMany(meanwhile: (hashes: ContextHashes) => void) {
      const hashes = store.hashes.open("/c");
      for (let index = 0; index < many; index++) hashes.set(`/c/${index}`, state, one);
      let pauses = 0;
      const pace = createPace(undefined);
      await hashes.saveIfDue({
        step() {
          if (pauses++ === 0) meanwhile(hashes);
          return pace.step() ?? Promise.resolve();
        },
      });
      expect(pauses).toBeGreaterThan(0);
      return hashes;
    }
    const last = `/c/${many - 1}`;

    test("are known, and those that are set wait for the next time", async () => {
      const hashes = await saveMany((hashes) => {
        expect(hashes.get("/c/0", state)).toBe(one);
        hashes.set("/c/0", state, two);
        hashes.set("/c/new", state, two);
        expect(hashes.get("/c/0", state)).toBe(two);
      });
      expect(known("/c", "/c/0", last, "/c/new")).toEqual([one, one, undefined]);
      expect([hashes.unsaved, hashes.get("/c/0", state)]).toEqual([2, two]);
      hashes.save();
      expect(known("/c", "/c/0", last, "/c/new")).toEqual([two, one, two]);
    });

    test("are not saved a second time", async () => {
      let second: Promise<void> | undefined;
      const step = () => {
        throw new Error("it is saved already");
      };
      await saveMany((hashes) => {
        second = hashes.saveIfDue({ step });
      });
      await second;
      expect(known("/c", last)).toEqual([one]);
    });

    test("are kept beside what another build has saved meanwhile", async () => {
      await saveMany(() => {
        const other = store.hashes.open("/c");
        other.set("/c/other", state, two);
        other.save();
      });
      expect(known("/c", "/c/0", last, "/c/other")).toEqual([one, one, two]);
    });

    test("are not written over what was saved at once meanwhile", async () => {
      await saveMany((hashes) => {
        hashes.set("/c/0", state, two);
        hashes.save();
      });
      expect(known("/c", "/c/0", last)).toEqual([two, one]);
    });

    test("stay where the saving is interrupted", async () => {
      const hashes = store.hashes.open("/c");
      for (let index = 0; index < many; index++) hashes.set(`/c/${index}`, state, one);
      const interrupted = { step: () => Promise.reject(new Error("interrupted")) };
      await expect(hashes.saveIfDue(interrupted)).rejects.toThrow("interrupted");
      expect(known("/c", last)).toEqual([undefined]);
      hashes.save();
      expect(known("/c", last)).toEqual([one]);
    });
  });

  test("stay where an instruction asks for some of them only, and change one by one", () => {
    const first = store.hashes.open("/c");
    for (const name of ["a", "b", "c", "d"]) first.set(`/c/${name}`, state, one);
    first.save();
    const second = store.hashes.open("/c");
    second.set("/c/b", state, two);
    second.set("/c/e", state, two);
    second.save();
    expect(second.get("/c/b", state)).toBe(two);
    expect(known("/c", "/c/a", "/c/b", "/c/e")).toEqual([one, two, two]);
  });

  test("of files that builds no longer ask for go once they are most of it", () => {
    const first = store.hashes.open("/c");
    for (const name of ["a", "b", "c", "d", "e"]) first.set(`/c/${name}`, state, one);
    first.save();
    const build = (...names: string[]) => {
      const hashes = store.hashes.open("/c");
      for (const name of names) hashes.get(`/c/${name}`, state);
      hashes.tidy();
    };
    build("a", "b", "c");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, one]);
    build("a", "b");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, undefined]);
  });

  test("go with the context that nobody has built for three months", async () => {
    const write = (context: string) => {
      const hashes = store.hashes.open(context);
      hashes.set("a", state, one);
      hashes.save();
    };
    write("/old");
    await clock.advance(91 * 24 * 60 * 60 * 1000);
    write("/new");
    expect([known("/old", "a"), known("/new", "a")]).toEqual([[undefined], [one]]);
  });
});
