/**
 * A Dockerfile with every directive of the specification, built twice on services that have only the specification's six calls,
 * each in a different dialect. The first build runs each command once, the second runs nothing.
 */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startFaultyFront } from "../fake-service/faulty-front.ts";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import type { Dialect } from "./dialect.ts";
import { dialects } from "./dialects.ts";
import { startPlainService } from "./plain-service.ts";

let source: ReturnType<typeof Bun.serve>;
beforeAll(() => {
  source = Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    fetch: () => new Response("data", { headers: { etag: '"1"' } }),
  });
});
afterAll(() => source.stop(true));

function makeContext(): string {
  const context = join(temporaryDirectory(), "context");
  cpSync(join(import.meta.dir, "context"), context, { recursive: true });
  symlinkSync("tool", join(context, "tree/link"));
  const dockerfile = join(context, "Dockerfile");
  writeFileSync(dockerfile, readFileSync(dockerfile, "utf8").replace("SOURCE", `127.0.0.1:${source.port}`));
  return context;
}

async function startService(dialect: Dialect) {
  const service = startPlainService(dialect);
  const clock = createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000);
  const front =
    dialect.faults === undefined
      ? undefined
      : await startFaultyFront(service, { script: (call, count) => dialect.faults?.(call, count) });
  const context = makeContext();
  return {
    service,
    context,
    bough: (...words: string[]) =>
      runBough(["--url", front?.url ?? service.url, "--token", "tok-5ecret", ...words], {
        workingDirectory: context,
        clock,
        environment: { BOUGH_HOME: join(context, "..", "state") },
        ...(front === undefined ? {} : { fetch: front.fetch }),
      }),
    async close() {
      await front?.close();
      service.close();
    },
  };
}

/** The RUNs of the Dockerfile, in order. */
const runs = ["install 1", "use 1", "work"];

describe("a Dockerfile with every directive is built, then cached, on a service", () => {
  test.each(Object.entries(dialects))("%s", async (_, dialect) => {
    const { service, bough, close } = await startService(dialect);
    try {
      const first = await bough("build", ".", "--tag", "app:dev");
      expect(first).toMatchObject({ exitCode: 0 });
      const ran = service.commands.filter((command) => runs.some((run) => command.includes(run)));
      expect(new Set(ran).size).toBe(runs.length);
      if (dialect.mayRunTwice !== true) expect(ran).toHaveLength(runs.length);
      const image = first.stdout.split("\n")[1]?.split(/\s+/)[0];
      expect(service.tags.get("app:dev")).toBe(image ?? "");

      service.calls.length = 0;
      const second = await bough("build", ".", "--tag", "app:dev");
      expect(second).toMatchObject({ exitCode: 0 });
      expect(second.stdout).toBe(first.stdout);
      expect(service.calls.filter((call) => call.startsWith("POST"))).toEqual([]);
      // Only an ADD from a source without a Content-Length is sent in chunks.
      expect(service.chunked).toEqual([]);
    } finally {
      await close();
    }
  });
});

describe("on a service that lists only tagged images", () => {
  test("FROM, use and tag accept the UUID of an image that is not listed", async () => {
    const { service, context, bough, close } = await startService({});
    try {
      await bough("build", ".");
      const { stdout: made } = await bough("-q", "build", ".");
      const image = made.trim();
      writeFileSync(join(context, "Dockerfile"), `FROM ${image}\nRUN more\n`);
      expect(await bough("build", ".")).toMatchObject({ exitCode: 0 });
      // The command runs as the USER of the image.
      expect(service.commands.at(-1)).toBe("su -s /bin/sh -c more app");
      expect(await bough("-S", "work", "use", image)).toMatchObject({ exitCode: 0 });
      expect(await bough("tag", image, "app:1")).toMatchObject({ exitCode: 0 });
      expect(service.tags.get("app:1")).toBe(image);
    } finally {
      await close();
    }
  });

  test("an image that the service has lost is built again in the same build", async () => {
    const { service, context, bough, close } = await startService({});
    try {
      writeFileSync(join(context, "Dockerfile"), "FROM base:1\nRUN first\nRUN second\n");
      await bough("build", ".");
      const { stdout } = await bough("-q", "build", ".");
      service.removeImage(stdout.trim());
      // This build does not need the image, so it does not notice.
      expect(await bough("-q", "build", ".")).toMatchObject({ exitCode: 0, stdout });
      const tagged = await bough("-q", "build", ".", "--tag", "app:1");
      expect(tagged).toMatchObject({ exitCode: 0 });
      expect(service.commands).toEqual(["first", "second", "second"]);
      expect(service.tags.get("app:1")).toBe(tagged.stdout.trim());
    } finally {
      await close();
    }
  });

  test("a base image that is gone is imported again", async () => {
    const { service, context, bough, close } = await startService({});
    try {
      writeFileSync(join(context, "Dockerfile"), "FROM base:1\nRUN first\n");
      await bough("build", ".");
      service.removeImage(service.base);
      // This build needs no more than the layer of its RUN.
      expect(await bough("build", ".")).toMatchObject({ exitCode: 0 });
      expect(service.calls.filter((call) => call === "POST /v1/images/import")).toHaveLength(1);
      writeFileSync(join(context, "Dockerfile"), "FROM base:1\nRUN second\n");
      expect(await bough("build", ".")).toMatchObject({ exitCode: 0 });
      expect(service.calls.filter((call) => call === "POST /v1/images/import")).toHaveLength(2);
    } finally {
      await close();
    }
  });
});

test.each([401, 403])("%d from a call that a build needs is an error", async (status) => {
  const denied = { kind: "answer" as const, processed: false, status, body: '{"error":"no"}' };
  const dialect = { faults: (call: string) => (call === "POST /v1/instances" ? denied : undefined) };
  const { bough, close } = await startService(dialect);
  try {
    const { exitCode, stderr } = await bough("build", ".");
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`POST http://`);
    expect(stderr).toContain("The token that was sent is not accepted for this");
  } finally {
    await close();
  }
});
