/**
 * Builds on services that have only the specification's six calls and return what they say in every form: a table with each form in
 * changing company, and shapes drawn at random. Each build sends the right requests and notices a command that fails.
 */
import { expect, test } from "bun:test";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { runs, seededRandom } from "../support/random.ts";
import type { Shape } from "./shape.ts";
import { printed, startShapedService } from "./shaped-service.ts";
import { shapeOf, table } from "./shapes.ts";

const dockerfile = "FROM base:1\nENV A=b\nCOPY a.txt /srv/\nRUN first\nRUN second\n";

async function buildOn(shape: Shape): Promise<void> {
  const service = startShapedService(shape);
  const directory = temporaryDirectory();
  const context = join(directory, "context");
  mkdirSync(context);
  writeFileSync(join(context, "a.txt"), "a\n");
  const bough = (...words: string[]) =>
    runBough(["--url", service.url, "--token", "tok-5ecret", ...words], {
      workingDirectory: context,
      clock: createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000),
      environment: { BOUGH_HOME: join(directory, "state") },
    });
  try {
    writeFileSync(join(context, "Dockerfile"), dockerfile);
    const first = await bough("build", ".", "--tag", "app:1");
    expect(first).toMatchObject({ exitCode: 0 });
    expect(service.instances.map(({ command, image }) => [command, image])).toEqual([
      ["first", service.base],
      ["second", service.made[0] ?? ""],
    ]);
    expect(Object.keys(service.instances[0]?.files ?? {})).toEqual(["/srv/a.txt"]);
    expect(service.tags.get("app:1")).toBe(service.made[1] ?? "");
    if (shape.output.form !== "nothing") expect(first.stderr).toContain(printed);
    expect(first.stderr.includes("reports no exit codes")).toBe(shape.exitCode === undefined);

    writeFileSync(join(context, "Dockerfile"), `${dockerfile}RUN fail\n`);
    const second = await bough("build", ".");
    expect(second).toMatchObject({ exitCode: 1 });
    if (shape.exitCode !== undefined) expect(second.stderr).toContain("failed with exit code 3");
    expect(service.instances.map(({ command }) => command)).toEqual(["first", "second", "fail"]);
  } finally {
    service.close();
  }
}

test("the table has 150 services or more", () => {
  expect(new Set(table.map((shape) => JSON.stringify(shape))).size).toBeGreaterThanOrEqual(150);
});

test.each(table.map((shape) => [JSON.stringify(shape), shape] as const))("%s", async (_, shape) => {
  await buildOn(shape);
});

test("services of any other shape", async () => {
  const random = seededRandom(42);
  for (let run = 0; run < runs(40); run++) {
    const shape = shapeOf((count) => Math.floor(random() * count));
    await buildOn(shape).catch((cause: unknown) => {
      throw new Error(`on ${JSON.stringify(shape)}`, { cause });
    });
  }
}, 120_000);
