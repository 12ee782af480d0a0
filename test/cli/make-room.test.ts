/** The engine makes room on its disk by itself. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { makeOrdinaryUser } from "../support/ordinary-user.ts";

const main = [process.execPath, join(import.meta.dir, "../../src/main.ts")];
const home = temporaryDirectory();
const context = temporaryDirectory();
const environment = { BOUGH_HOME: home };

beforeAll(() => {
  writeFiles(context, {
    Dockerfile: "FROM base:1\nARG NUMBER\nRUN echo $NUMBER; head -c 12000000 /dev/zero > /big\n",
  });
  Bun.spawnSync(["mount", "-t", "tmpfs", "-o", "size=60m", "tmpfs", home]);
});
afterAll(() => {
  Bun.spawnSync(["umount", "--lazy", home]);
});

const bough = (words: readonly string[], more: Record<string, string> = {}) =>
  runBough(["--local", ...words], { workingDirectory: context, environment: { ...environment, ...more } });
const numbered = (number: number) => ["build", "--build-arg", `NUMBER=${number}`];
const freeShare = () => statfsSync(home).bavail / statfsSync(home).blocks;

test("a build on a nearly full disk starts a process that removes the least recently used; the next one says so, once", async () => {
  await bough(["images", "import", await makeBusyboxLayout(temporaryDirectory()), "--tag", "base:1"]);
  for (const number of [1, 2, 3]) {
    const tag = number === 1 ? ["--tag", "kept:1"] : [];
    expect(await bough([...numbered(number), ...tag])).toMatchObject({ exitCode: 0 });
  }
  expect(freeShare()).toBeGreaterThan(0.2);

  const fourth = Bun.spawn([...main, "--local", ...numbered(4)], {
    ...{ cwd: context, env: { PATH: process.env.PATH ?? "", ...environment } },
    ...{ stdin: "ignore", stdout: "pipe", stderr: "pipe" },
  });
  expect(await endOf(fourth)).toMatchObject({ exitCode: 0 });
  while (freeShare() < 0.3) await Bun.sleep(20);

  let told = "";
  while (!told.includes("made room")) told = (await bough(numbered(4))).stderr;
  expect(told).toMatch(/\[INFO\] made room on the disk: removed 12 MB .* BOUGH_KEEP/);
  expect(told).toContain("1 of 1 layer cached");
  const again = (await bough(numbered(3))).stderr;
  expect(again).toContain("1 of 1 layer cached");
  expect(again).not.toContain("made room");
  expect((await bough(numbered(1))).stderr).toContain("1 of 1 layer cached");
});

test.each([
  ["keeps everything: off", "off", "would remove nothing: 0 B"],
  ["sets how much stays: 1MB", "1MB", "would remove 2 images, 2 layers: 24 MB"],
  ["sets how much stays: 30MB", "30MB", "would remove 1 image, 1 layer: 12 MB"],
  ["that is set to nothing is the default", "", "would remove nothing: 0 B"],
])("BOUGH_KEEP %s", async (_, value, expected) => {
  await bough(["-S", "work", "use", "base:1"]);
  const { stdout } = await bough(["engine", "prune", "--auto"], { BOUGH_KEEP: value });
  expect(stdout.split("\n")[0]).toBe(expected);
});

test("BOUGH_KEEP that is no size is an error before anything runs", async () => {
  expect(await bough(numbered(9), { BOUGH_KEEP: "much" })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining('BOUGH_KEEP takes a size, not "much"'),
  });
});

test("an ordinary user's engine makes room in its user namespace", async () => {
  const user = makeOrdinaryUser();
  try {
    const program = user.giveBough();
    const made = temporaryDirectory();
    await makeBusyboxLayout(made);
    const layout = user.give(made, "layout");
    const place = user.give(context, "context");
    const environment = [`HOME=${user.home}`, `PATH=${process.env.PATH}`];
    const run = (words: readonly string[], keep = "off") =>
      endOf(
        Bun.spawn([...user.prefix, "env", "-i", ...environment, `BOUGH_KEEP=${keep}`, program, ...words], {
          ...{ cwd: "/", stdin: "ignore", stdout: "pipe", stderr: "pipe" },
        }),
      );
    await run(["images", "import", `oci:${layout}:latest`, "--tag", "base:1"]);
    expect(await run(["build", place])).toMatchObject({ exitCode: 0 });
    expect(await run(["build", place, "--build-arg", "NUMBER=2"], "1kB")).toMatchObject({ exitCode: 0 });
    const note = join(user.home, ".local/state/bough/made-room.json");
    while (!readFileSync(note, "utf8").includes("freedBytes")) await Bun.sleep(20);
    expect((await run(["build", place])).stderr).toContain("made room on the disk: removed 12 MB");
  } finally {
    user.remove();
  }
});
