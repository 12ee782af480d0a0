/** An image's layers are mounted for one process: by bough itself, or by mount(8) where bough can't. */
import { expect, test } from "bun:test";
import { mkdirSync, readdirSync, readFileSync, readlinkSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type Layout, makeLayout } from "../../src/engine/layout.ts";
import { mountForProcess } from "../../src/engine/sandbox/root/mount-for-process.ts";
import { enterMountNamespace, startNamespace } from "../../src/engine/sandbox/root/mount-namespace.ts";
import { noSwap } from "../../src/engine/sandbox/root/namespace-mount.ts";
import { endHelper, type Helper } from "../../src/programs/helper.ts";
import { libc } from "../../src/programs/libc.ts";
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

const overlay = { type: "overlay", place: "../root", options: "lowerdir=1:../empty" } as const;

test.each<[string, typeof mountForProcess, number]>([
  ["bough mounts the layers and memory for a process, and nowhere else", mountForProcess, 2],
  ["mount(8) mounts what bough can't", () => 0, 0],
])("%s", async (_, mountFromHere, expected) => {
  const layout = makeLayers();
  const before = ownView();
  await withNamespace(layout, async (helper) => {
    // Linux before 6.4 refuses the last option.
    const options = `mode=0700,nosuid,nodev,size=1m${noSwap}`;
    const memory = { type: "tmpfs", options, place: layout.blobs } as const;
    const words = { ...wordsFor(layout), layers: [1], mounts: [memory] };
    let made: number | undefined;
    const { root, machine } = await enterMountNamespace(layout, environment, helper, words, (...mounts) => {
      made = mountFromHere(...mounts);
      return made;
    });
    expect(made).toBe(expected);
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
  const ended = Bun.spawn(["true"]);
  await ended.exited;
  expect(mountForProcess(ended.pid, layout.layers, [overlay])).toBe(0);
  expect(readdirSync(layout.root)).toEqual([]);
});

test.each<["mount" | "setns", number]>([
  ["mount", 1],
  // bough enters its own namespace, that of the process, and its own again.
  ["setns", 3],
])(
  "bough returns even if a thread starts before %s and shares its working directory",
  async (name, count) => {
    const layout = makeLayers();
    const before = ownView();
    const calls = libc();
    const { mount, setns } = calls;
    const workers: Worker[] = [];
    let left = count;
    const startThread = () => {
      left--;
      if (left === 0) workers.push(new Worker("data:text/javascript,"));
    };
    const changed = {
      mount(...words: Parameters<typeof mount>) {
        startThread();
        return mount(...words);
      },
      setns(...words: Parameters<typeof setns>) {
        startThread();
        return setns(...words);
      },
    };
    try {
      Object.assign(calls, { [name]: changed[name] });
      await withNamespace(layout, async (helper) => {
        await helper.stdout[Symbol.asyncIterator]().next();
        expect(mountForProcess(helper.pid, layout.layers, [overlay])).toBe(1);
        expect(readdirSync(`/proc/${helper.pid}/root${layout.root}`)).toEqual(["hello"]);
      });
    } finally {
      Object.assign(calls, { mount, setns });
      for (const worker of workers) worker.terminate();
    }
    expect(workers).toHaveLength(1);
    expect(ownView()).toEqual(before);
  },
);

/** Runs a script in a process of its own, which has `layout`, `helper` and bough's functions. */
function runScript(prefix: readonly string[], ...lines: string[]) {
  const source = (path: string) => JSON.stringify(join(import.meta.dir, "../../src/engine", path));
  const script = `
    import { readlinkSync } from "node:fs";
    import { mountForProcess } from ${source("sandbox/root/mount-for-process.ts")};
    import { startNamespace } from ${source("sandbox/root/mount-namespace.ts")};
    import { libc } from ${source("../programs/libc.ts")};
    const layout = ${JSON.stringify(makeLayers())};
    const helper = startNamespace(layout, { PATH: process.env.PATH }, { forCommand: false });
    await helper.stdout[Symbol.asyncIterator]().next();
    const before = readlinkSync("/proc/self/ns/mnt");
    const mount = () => mountForProcess(helper.pid, layout.layers, [${JSON.stringify(overlay)}]);
    ${lines.join("\n")}
    process.exit();`;
  const child = Bun.spawnSync([...prefix, process.execPath, "-e", script]);
  return { stdout: child.stdout.toString(), stderr: child.stderr.toString(), signal: child.signalCode };
}

test("nothing is mounted by a process that could not return to its own mount namespace", () => {
  // Root of a user namespace has no rights over a mount namespace from outside of it.
  const ended = runScript(
    ["unshare", "--user", "--map-root-user"],
    `console.log(mount(), readlinkSync("/proc/self/ns/mnt") === before);`,
  );
  expect(ended).toMatchObject({ stderr: "", stdout: "0 true\n" });
});

test("a process that can't return to its own mount namespace ends at once, and no handler runs", () => {
  const ended = runScript(
    [],
    `const { setns } = libc();
    let calls = 0;
    libc().setns = (...words) => ++calls < 3 ? setns(...words) : -1;
    process.on("exit", () => console.log("handled"));
    try { mount(); } catch { console.log("caught"); } finally { console.log("went on"); }`,
  );
  expect(ended).toEqual({
    stdout: "",
    stderr: "[ERROR] bough could not return to its own mount namespace, and stops\n",
    signal: "SIGKILL",
  });
});
