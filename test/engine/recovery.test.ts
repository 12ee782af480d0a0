import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { makeLayout } from "../../src/engine/layout.ts";
import { recordContainer } from "../../src/engine/sandbox/containers.ts";
import { containerParent, ownHierarchies } from "../../src/engine/sandbox/limits/controllers.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import type { OperationRecord } from "../../src/service/wire/operation.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { TestEngine } from "../support/engine.ts";
import { removeHome } from "../support/homes.ts";
import { commandLines, lastingProcesses } from "../support/processes.ts";
import { seededRandom } from "../support/random.ts";

/** `ENGINE_KILLS` sets the number of kills, and `KILL_SEED` their moments. */
const kills = Number(process.env.ENGINE_KILLS ?? 12);

let scratch: string;
let layout: string;

beforeAll(async () => {
  scratch = mkdtempSync(join(tmpdir(), "bough-recovery-"));
  layout = await makeBusyboxLayout(join(scratch, "layout"));
});

afterAll(() => removeHome(scratch));

interface Report {
  about?: string;
  done?: string;
  image?: string;
  content?: string;
}

/** Builds in another process, which is killed some milliseconds after its first output, or after some steps. */
async function buildAndKill(
  directory: string,
  end: { milliseconds: number } | { steps: number },
): Promise<Report[]> {
  const child = Bun.spawn(
    [process.execPath, join(import.meta.dir, "../support/engine-child.ts"), directory, layout],
    {
      env: { PATH: process.env.PATH },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "inherit",
    },
  );
  let text = "";
  let killing: Promise<void> | undefined;
  for await (const chunk of child.stdout) {
    text += new TextDecoder().decode(chunk);
    if ("milliseconds" in end) killing ??= Bun.sleep(end.milliseconds).then(() => child.kill("SIGKILL"));
    else if (text.split('"content"').length > end.steps) child.kill("SIGKILL");
  }
  await killing;
  await child.exited;
  return text
    .split("\n")
    .filter((line) => line.endsWith("}"))
    .map((line) => JSON.parse(line) as Report);
}

async function expectClean(engine: TestEngine): Promise<void> {
  const { directory } = engine;
  expect(readFileSync("/proc/self/mounts", "utf8")).not.toContain(directory);
  expect(await lastingProcesses(directory, (line) => line.includes("bun"))).toEqual([]);
  for (const name of ["containers", "operations"])
    expect({ [name]: readdirSync(join(directory, name)) }).toEqual({ [name]: [] });
  for (const name of readdirSync(join(directory, "scratch")))
    expect(readdirSync(join(directory, "scratch", name))).toEqual([]);
  const operations = await engine.json<OperationRecord[]>("GET", "/v1/operations");
  for (const { status } of operations) expect(["SUCCESS", "FAILED"]).toContain(status);
  const groups = Bun.spawnSync(["find", "/sys/fs/cgroup", "-type", "d"]).stdout.toString();
  for (const { uuid } of operations) expect(groups).not.toContain(uuid);
}

test(`after ${kills} kills at random moments nothing reported as done is lost, and nothing is left behind`, async () => {
  const directory = join(scratch, "engine");
  const seed = Number(process.env.KILL_SEED ?? 1);
  process.stderr.write(`seed ${seed}: ${kills} kills\n`);
  const random = seededRandom(seed);
  const done: Report[] = [];
  for (let kill = 0; kill < kills; kill++) {
    // Every fourth build has a fresh directory, so that imports are killed too.
    if (kill % 4 === 3) removeHome(directory);
    if (kill % 4 === 3) done.length = 0;
    done.push(
      ...(await buildAndKill(directory, { milliseconds: Math.floor(random() * 400) })).filter(
        ({ done }) => done !== undefined,
      ),
    );
    const engine = await TestEngine.open({ directory });
    await engine.recover();
    await expectClean(engine);
    const { images } = await engine.json<{ images: ImageRecord[] }>("GET", "/v1/images");
    for (const { done: tag, image } of done)
      expect(images).toContainEqual(expect.objectContaining({ uuid: image, tag }));
    const last = done.at(-1);
    if (last?.content !== undefined) {
      const look = await engine.run(last.image ?? "", "cat /kept; tail -n 1 /numbers");
      expect(look.stdout).toBe(`${last.content}3000\n`);
    }
    await engine.engine.close();
  }
}, 120_000);

describe("an operation whose process was killed", () => {
  test("has failed for clients that request or follow it", async () => {
    const directory = join(scratch, "abandoned");
    mkdirSync(directory);
    const engine = await TestEngine.open({ directory });
    const base = await engine.importBase("base:1", layout);
    const script = `
      import { TestEngine } from ${JSON.stringify(join(import.meta.dir, "../support/engine.ts"))};
      const engine = await TestEngine.open({ directory: ${JSON.stringify(directory)} });
      const { uuid } = await engine.start({ image: ${JSON.stringify(base)}, command: "echo begun; sleep 61.8" });
      console.log(uuid);
      await engine.finish({ uuid });`;
    const child = Bun.spawn([process.execPath, "-e", script], {
      env: { PATH: process.env.PATH },
      stdout: "pipe",
    });
    const uuid = await firstLine(child.stdout);
    const following = engine.events(uuid);
    while (!readFileSync(join(directory, "events", `${uuid}.ndjson`), "utf8").includes("begun"))
      await Bun.sleep(5);
    child.kill("SIGKILL");
    await child.exited;
    const events = await following;
    expect(events.at(-1)).toMatchObject({ type: "completion", data: { status: "FAILED" } });
    expect(await engine.json("GET", `/v1/operations/${uuid}`)).toMatchObject({
      status: "FAILED",
      error: "the process that ran this operation was killed",
    });
    expect(commandLines().filter((line) => line.includes("sleep 61.8"))).toEqual([]);
    expect(existsSync(join(directory, "operations", uuid))).toBe(false);
    // Its control groups were removed too, and those that it had made ahead.
    expect(readdirSync(join(directory, "containers"))).toEqual([]);
    await engine.close();
  });
});

test.each([
  ["an operation that has ended", crypto.randomUUID()],
  ["an engine that is gone", `0-0.1.${crypto.randomUUID()}`],
])("a control group of %s stays noted until it can be removed", async (_, name) => {
  const directory = join(scratch, name);
  let slept = 0;
  const clock = {
    now: systemClock.now,
    async sleep(milliseconds: number) {
      slept += milliseconds;
    },
  };
  const open = async () => {
    const engine = await TestEngine.open({ directory, clock });
    await engine.recover();
    return engine;
  };
  await (await open()).engine.close();
  const [hierarchy] = ownHierarchies();
  if (hierarchy === undefined) throw new Error("there are no control groups");
  const group = join(containerParent(hierarchy), name);
  // The directory makes the group as busy as a process in it that waits for the disk.
  mkdirSync(join(group, "held"), { recursive: true });
  const layout = makeLayout(directory);
  recordContainer(layout, name, { pids: group });
  slept = 0;
  const engine = await open();
  // Each command that changes something waits for this removal, so the wait is limited.
  expect(slept).toBeLessThan(1000);
  await engine.engine.close();
  expect(readdirSync(layout.containers)).toEqual([name]);
  rmdirSync(join(group, "held"));
  await (await open()).engine.close();
  expect(readdirSync(layout.containers)).toEqual([]);
  expect(existsSync(group)).toBe(false);
});

test("several processes can use one directory concurrently", async () => {
  const directory = join(scratch, "shared");
  const builds = await Promise.all([1, 2, 3].map(() => buildAndKill(directory, { steps: 3 })));
  const engine = await TestEngine.open({ directory });
  await engine.recover();
  await expectClean(engine);
  const bases = new Set(builds.map((said) => said.find(({ done }) => done === "base:1")?.image));
  expect(bases.size).toBe(1);
  for (const said of builds)
    expect(said.filter(({ content }) => content !== undefined).length).toBeGreaterThanOrEqual(3);
  await engine.close();
});

async function firstLine(stream: ReadableStream<Uint8Array>): Promise<string> {
  let text = "";
  for await (const chunk of stream) {
    text += new TextDecoder().decode(chunk);
    if (text.includes("\n")) break;
  }
  return text.trim();
}
