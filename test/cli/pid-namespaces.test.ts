/**
 * Several processes with one state directory in different PID and mount namespaces, like containers with a shared volume: none
 * disturbs a build of another.
 */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Ended, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { removeHome } from "../support/homes.ts";

let home: string;
/** Where the other container has its volume. */
let elsewhere: string;
const layout = await makeBusyboxLayout(temporaryDirectory());
/** A cache that a command waits in until the test lets it go on. */
const waits =
  "RUN --mount=type=cache,target=/gate touch /gate/begun; until [ -e /gate/open ]; do sleep 0.02; done";

beforeEach(async () => {
  home = temporaryDirectory();
  elsewhere = temporaryDirectory();
  expect(await inContainer("images", "import", layout, "--tag", "base:1")).toMatchObject({ exitCode: 0 });
});

afterEach(() => removeHome(home));

/** Some containers, such as those of systemd, have a boot ID of their own. */
const bootId = join(temporaryDirectory(), "boot_id");
writeFileSync(bootId, `${crypto.randomUUID()}\n`);
const container = ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", "--mount", "sh", "-ec"];

function start(words: readonly string[], prefix: readonly string[] = [], place = home) {
  return Bun.spawn([...prefix, compileBough(), "--local", ...words], {
    env: { PATH: process.env.PATH ?? "", BOUGH_HOME: place },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
}

const startInContainer = (...words: string[]) =>
  start(
    words,
    [
      ...container,
      `mount --bind '${home}' '${elsewhere}'; mount --bind '${bootId}' /proc/sys/kernel/random/boot_id; exec "$@"`,
      "sh",
    ],
    elsewhere,
  );
const inContainer = (...words: string[]): Promise<Ended> => endOf(startInContainer(...words));

function contextOf(...lines: string[]): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: ["FROM base:1", ...lines].join("\n") });
  return context;
}

const entriesOf = (name: string) => readdirSync(join(home, "engine", name));
const gate = (name: string) =>
  entriesOf("caches")
    .map((cache) => join(home, "engine/caches", cache, name))
    .find((path) => existsSync(path) || existsSync(join(path, "../begun")));

async function untilBegun(): Promise<void> {
  while (!existsSync(gate("begun") ?? "")) await Bun.sleep(5);
}

function openGate(): void {
  writeFileSync(gate("open") ?? "", "");
}

describe("while a build runs, in another container", () => {
  test("reading, pruning and building leave it alone", async () => {
    const context = contextOf("RUN echo one > /one", waits, "RUN cat /one");
    const building = start(["build", "--docker", context]);
    await untilBegun();
    for (const words of [
      ["images"],
      ["ps"],
      ["engine", "df"],
      ["engine", "prune", "--all"],
      ["engine", "prune", "-y"],
      ["engine", "prune", "--sessions", "-y"],
      ["engine", "prune", "--all", "-y"],
      ["build", contextOf("RUN echo other > /other")],
    ]) {
      expect({ words, ...(await inContainer(...words)) }).toMatchObject({ words, exitCode: 0 });
      expect({ words, operations: entriesOf("operations").length }).toEqual({ words, operations: 1 });
    }
    openGate();
    expect(await endOf(building)).toMatchObject({ exitCode: 0 });
    expect((await inContainer("build", "--docker", context)).stderr).toContain("3 of 3 layers cached");
  });

  test("its session can't be deleted", async () => {
    const building = start(["build", "--docker", contextOf("RUN echo one > /one", waits)]);
    await untilBegun();
    const [{ key }] = JSON.parse((await inContainer("-f", "json", "session", "list")).stdout);
    expect(await inContainer("session", "delete", key)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining(`session ${key} is in use: a build is running in it`),
    });
    openGate();
    expect(await endOf(building)).toMatchObject({ exitCode: 0 });
    expect(await inContainer("session", "delete", key)).toMatchObject({ exitCode: 0 });
  });

  test("`bough kill` ends its command", async () => {
    const building = start(["build", "--docker", contextOf(waits)]);
    await untilBegun();
    const [{ uuid }] = JSON.parse((await inContainer("-f", "json", "ps")).stdout);
    expect(await inContainer("kill", uuid)).toMatchObject({ exitCode: 0, stdout: `${uuid}\n` });
    expect(await endOf(building)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("cancelled"),
    });
  });

  test("its image can't be removed", async () => {
    const building = start(["build", "--docker", contextOf(waits)]);
    await untilBegun();
    const removed = await inContainer("rmi", "base:1");
    expect(removed).toMatchObject({ exitCode: 1 });
    expect(removed.stderr).toContain("is in use: an operation runs on it");
    openGate();
    expect(await endOf(building)).toMatchObject({ exitCode: 0 });
  });

  test("a locked cache is waited for", async () => {
    const locked = "RUN --mount=type=cache,id=c,sharing=locked,target=/c";
    const context = contextOf(
      `RUN --mount=type=cache,target=/gate --mount=type=cache,id=c,sharing=locked,target=/c ${waits.replace(/.*?gate /, "")}; echo done > /c/done`,
    );
    const building = start(["build", "--docker", context]);
    await untilBegun();
    const second = startInContainer("build", "--docker", contextOf(`${locked} cat /c/done`));
    const ended = endOf(second);
    while (entriesOf("operations").length < 2) await Bun.sleep(5);
    openGate();
    expect(await endOf(building)).toMatchObject({ exitCode: 0 });
    expect(await ended).toMatchObject({ exitCode: 0 });
  });
});

describe("what a killed build has left", () => {
  const leftBehind = () => ({
    operations: entriesOf("operations").length,
    scratch: entriesOf("scratch").length,
    locks: entriesOf("locks").length,
  });

  async function killBuild(): Promise<void> {
    const building = start(["build", "--docker", contextOf(waits)]);
    await untilBegun();
    building.kill("SIGKILL");
    await endOf(building);
  }

  test("stays as it is while other commands only read, which know that it has failed", async () => {
    await killBuild();
    const before = leftBehind();
    const listed = await inContainer("-f", "json", "ps", "--all");
    expect(JSON.parse(listed.stdout)).toMatchObject([
      { status: "FAILED", error: "the process that ran this operation was killed" },
      { status: "SUCCESS" },
    ]);
    expect(await inContainer("engine", "df")).toMatchObject({ exitCode: 0 });
    expect(leftBehind()).toEqual(before);
    expect(before).toEqual({ operations: 1, scratch: 1, locks: 1 });
  });

  test("is recovered by the next command that writes, in another container, while a third build goes on", async () => {
    await killBuild();
    const context = contextOf(waits.replace("/gate", "/gate,id=third").replaceAll("begun", "going"));
    const third = start(["build", "--docker", context]);
    const going = () =>
      entriesOf("caches").find((name) => existsSync(join(home, "engine/caches", name, "going")));
    while (going() === undefined) await Bun.sleep(5);
    expect(await inContainer("build", contextOf("RUN true"))).toMatchObject({ exitCode: 0 });
    expect(leftBehind()).toEqual({ operations: 1, scratch: 1, locks: 1 });
    writeFileSync(join(home, "engine/caches", going() ?? "", "open"), "");
    expect(await endOf(third)).toMatchObject({ exitCode: 0 });
    expect(leftBehind()).toEqual({ operations: 0, scratch: 0, locks: 0 });
    expect(entriesOf("containers")).toEqual([]);
    expect(readdirSync(join(home, "running-builds"))).toEqual([]);
  });
});
