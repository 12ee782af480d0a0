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

describe("the hashes of a context's files", () => {
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

  test("are known in the next build once they are saved", () => {
    const hashes = store.hashes.open("/c");
    hashes.set("/c/a", state, one);
    expect(known("/c", "/c/a")).toEqual([undefined]);
    hashes.save();
    expect(known("/c", "/c/a")).toEqual([one]);
    expect(known("/other", "/c/a")).toEqual([undefined]);
  });

  test("are not kept for a path with half of a surrogate pair, which would never be found", () => {
    const hashes = store.hashes.open("/c");
    hashes.set("/c/\ud83d", state, one);
    expect(hashes.unsaved).toBe(0);
  });

  describe("of two concurrent builds", () => {
    const builds = () =>
      [0, 1].map(() => {
        const hashes = store.hashes.open("/c");
        hashes.get("/c/old", state);
        return hashes;
      }) as [ContextHashes, ContextHashes];

    test.each([
      ["no hash was known before", []],
      ["one was known before", ["/c/old"]],
    ])("are all kept if %s", async (_, old) => {
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

    test("are not removed when the build that did not ask for them tidies up", () => {
      const before = store.hashes.open("/c");
      for (const path of ["/c/old", "/c/1", "/c/2"]) before.set(path, state, one);
      before.save();
      const [first, second] = builds();
      first.set("/c/a", state, two);
      first.save();
      second.removeUnqueried();
      expect(known("/c", "/c/a", "/c/1")).toEqual([two, one]);
    });
  });

  describe("during a save in parts", () => {
    const many = 10_000;
    /** Saves 10,000 hashes, and calls `meanwhile` at the first pause of the save. */
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

    test("are known, and changed ones are kept by the next save", async () => {
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

    test("are not saved twice by a second save", async () => {
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

    test("are merged with those that another build saves meanwhile", async () => {
      await saveMany(() => {
        const other = store.hashes.open("/c");
        other.set("/c/other", state, two);
        other.save();
      });
      expect(known("/c", "/c/0", last, "/c/other")).toEqual([one, one, two]);
    });

    test("do not replace newer ones that a complete save has stored meanwhile", async () => {
      await saveMany((hashes) => {
        hashes.set("/c/0", state, two);
        hashes.save();
      });
      expect(known("/c", "/c/0", last)).toEqual([two, one]);
    });

    test("stay unsaved if the save is interrupted", async () => {
      const hashes = store.hashes.open("/c");
      for (let index = 0; index < many; index++) hashes.set(`/c/${index}`, state, one);
      const interrupted = { step: () => Promise.reject(new Error("interrupted")) };
      await expect(hashes.saveIfDue(interrupted)).rejects.toThrow("interrupted");
      expect(known("/c", last)).toEqual([undefined]);
      hashes.save();
      expect(known("/c", last)).toEqual([one]);
    });
  });

  test("change one by one, and the others stay saved", () => {
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

  test("of files that a build did not ask for are removed if they are more than half", () => {
    const first = store.hashes.open("/c");
    for (const name of ["a", "b", "c", "d", "e"]) first.set(`/c/${name}`, state, one);
    first.save();
    const build = (...names: string[]) => {
      const hashes = store.hashes.open("/c");
      for (const name of names) hashes.get(`/c/${name}`, state);
      hashes.removeUnqueried();
    };
    build("a", "b", "c");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, one]);
    build("a", "b");
    expect(known("/c", "/c/a", "/c/e")).toEqual([one, undefined]);
  });

  test("are removed if their context was not built for three months", async () => {
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
