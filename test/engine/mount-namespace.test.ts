/** An image's layers are mounted for one process: by bough itself, or by mount(8) where bough can't. */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Layout, makeLayout } from "../../src/engine/layout.ts";
import { enterMountNamespace, startNamespace } from "../../src/engine/sandbox/root/mount-namespace.ts";
import { mountOverlay } from "../../src/engine/sandbox/root/mount-overlay.ts";
import { endHelper, type Helper } from "../../src/engine/system/helper.ts";
import { temporaryDirectory } from "../support/bough.ts";

const environment = { PATH: process.env.PATH };

/** Makes a layout with one layer, which has a file `hello`. */
function makeLayers(): Layout {
  const layout = makeLayout(temporaryDirectory());
  mkdirSync(join(layout.layers, "1"));
  writeFileSync(join(layout.layers, "1", "hello"), "world");
  return layout;
}

async function withNamespace(layout: Layout, use: (helper: Helper) => Promise<void>): Promise<void> {
  const helper = startNamespace(layout, environment, { forCommand: false });
  try {
    await use(helper);
  } finally {
    endHelper(helper);
    await helper.exited;
  }
}

/** Returns what a change of this process's root or working directory would change. */
function ownView(): string[][] {
  return [readdirSync("."), readdirSync("/"), [process.cwd()]];
}

test.each<[string, typeof mountOverlay, boolean]>([
  ["bough mounts the layers for a process, and nowhere else", mountOverlay, true],
  ["mount(8) mounts them where bough can't", () => false, false],
])("%s", async (_, mountFromHere, expected) => {
  const layout = makeLayers();
  const before = ownView();
  await withNamespace(layout, async (helper) => {
    const file = join(layout.scratch, "words");
    const words = { layers: [1], inUserNamespace: false, clock: systemClock, file };
    let isMounted: boolean | undefined;
    const { root } = await enterMountNamespace(layout, environment, helper, words, (...mount) => {
      isMounted = mountFromHere(...mount);
      return isMounted;
    });
    expect(isMounted).toBe(expected);
    expect(readdirSync(root)).toEqual(["hello"]);
    expect(() => writeFileSync(join(root, "new"), "")).toThrow("EROFS");
    expect(readdirSync(layout.root)).toEqual([]);
  });
  expect(ownView()).toEqual(before);
});

test("a missing layer is an error with mount's reason, and bough stays where it is", async () => {
  const layout = makeLayers();
  const before = ownView();
  await withNamespace(layout, async (helper) => {
    const file = join(layout.scratch, "words");
    const words = { layers: [2], inUserNamespace: false, clock: systemClock, file };
    await expect(enterMountNamespace(layout, environment, helper, words)).rejects.toThrow(
      /^the image's layers could not be mounted: mount: /,
    );
  });
  expect(ownView()).toEqual(before);
});

test("nothing is mounted for a process that has ended", async () => {
  const layout = makeLayers();
  const ended = Bun.spawn(["true"]);
  await ended.exited;
  const overlay = { from: layout.layers, place: "../root", options: "lowerdir=1:../empty" };
  expect(mountOverlay(ended.pid, overlay)).toBe(false);
  expect(readdirSync(layout.root)).toEqual([]);
});
