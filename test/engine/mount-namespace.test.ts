/** An image's layers are mounted for one process, in its own mount namespace. */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Layout, makeLayout } from "../../src/engine/layout.ts";
import { enterMountNamespace, startNamespace } from "../../src/engine/sandbox/root/mount-namespace.ts";
import { noSwap } from "../../src/engine/sandbox/root/namespace-mount.ts";
import { endHelper, type Helper } from "../../src/programs/helper.ts";
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

function wordsFor(layout: Layout) {
  return { inUserNamespace: false, clock: systemClock, file: join(layout.scratch, "words") };
}

/** Returns what a change of this process's namespace, root or working directory would change. */
function ownView(): string[][] {
  return [readdirSync("."), readdirSync("/"), [process.cwd(), readlinkSync("/proc/self/ns/mnt")]];
}

test("a process mounts the layers and memory for itself, and nowhere else", async () => {
  const layout = makeLayers();
  const before = ownView();
  await withNamespace(layout, async (helper) => {
    // Linux before 6.4 refuses the last option.
    const options = `mode=0700,nosuid,nodev,size=1m${noSwap}`;
    const memory = { type: "tmpfs", options, place: layout.blobs } as const;
    const words = { ...wordsFor(layout), layers: [1], mounts: [memory] };
    const { root, machine } = await enterMountNamespace(layout, environment, helper, words);
    expect(readdirSync(root)).toEqual(["hello"]);
    expect(() => writeFileSync(join(root, "new"), "")).toThrow("EROFS");
    expect(statfsSync(join(machine, layout.blobs))).toMatchObject({ type: 0x01021994, blocks: 256 });
    const mounts = readFileSync(`/proc/${helper.pid}/mountinfo`, "utf8").split("\n");
    expect(mounts.find((line) => line.includes(layout.blobs))).toContain("nosuid,nodev,");
    expect([readdirSync(layout.root), readdirSync(layout.blobs)]).toEqual([[], []]);
    expect(readFileSync("/proc/self/mountinfo", "utf8")).not.toContain(layout.directory);
  });
  expect(ownView()).toEqual(before);
});

test("a missing layer is an error with mount's reason, and bough stays where it is", async () => {
  const layout = makeLayers();
  const before = ownView();
  await withNamespace(layout, async (helper) => {
    const words = { ...wordsFor(layout), layers: [2] };
    await expect(enterMountNamespace(layout, environment, helper, words)).rejects.toThrow(
      /^the image's layers could not be mounted: mount: /,
    );
  });
  expect(ownView()).toEqual(before);
});

test("nothing is mounted for a process that has ended", async () => {
  const layout = makeLayers();
  await withNamespace(layout, async (helper) => {
    endHelper(helper);
    await helper.exited;
    const words = { ...wordsFor(layout), layers: [1] };
    await expect(enterMountNamespace(layout, environment, helper, words)).rejects.toThrow(
      "the image's layers could not be mounted: the helper was stopped",
    );
  });
  expect(readdirSync(layout.root)).toEqual([]);
});
