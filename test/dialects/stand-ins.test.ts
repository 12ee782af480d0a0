/** Builds on the services of `stand-ins.ts`: each is built on right, its layers are reused, and its failures are noticed. */
import { describe, expect, test } from "bun:test";
import { join } from "node:path";
import { createManualClock } from "../fake-service/manual-clock.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { type StandIn, startStandIn } from "./stand-in.ts";
import { type RefusingStandIn, refusing, working } from "./stand-ins.ts";

const dockerfile = "FROM base:1\nCOPY a.txt /srv/\nRUN first\nRUN second\n";

function open(table: StandIn) {
  const service = startStandIn(table);
  const directory = temporaryDirectory();
  const context = join(directory, "context");
  const write = (text: string) => writeFiles(context, { "a.txt": "a\n", Dockerfile: text });
  const bough = (...words: string[]) =>
    runBough(["--url", service.url, "--token", "tok-5ecret", ...words], {
      workingDirectory: context,
      clock: createManualClock((milliseconds) => milliseconds < 15_000 && milliseconds !== 1000),
      environment: { BOUGH_HOME: join(directory, "state") },
    });
  return { service, write, bough };
}

describe("a build works, is cached, and a command that fails is noticed, on a service", () => {
  test.each(Object.entries(working))("%s", async (_, table) => {
    const { service, write, bough } = open(table);
    try {
      write(dockerfile);
      const first = await bough("build", ".", "--tag", "app:1");
      expect(first).toMatchObject({ exitCode: 0 });
      expect(service.commands).toEqual(["first", "second"]);
      expect(service.bases).toEqual([service.base, service.images[0] ?? ""]);
      expect([...service.tags]).toEqual([["app:1", service.images[1] ?? ""]]);
      // A command is started when the one before it has ended.
      expect(service.early).toEqual([]);
      if (table.isSilent !== true) expect(first.stderr).toContain("stdout:\nout of second\n");

      service.calls.length = 0;
      expect(await bough("build", ".", "--tag", "app:1")).toMatchObject({ exitCode: 0 });
      expect(service.calls.filter((call) => call.startsWith("POST"))).toEqual([]);

      write(`${dockerfile}RUN fail\n`);
      for (const number of [1, 2]) {
        const failed = await bough("build", ".", "--tag", "app:2");
        expect(failed).toMatchObject({ exitCode: 1 });
        if (table.showsNoExitCode !== true) expect(failed.stderr).toContain("failed with exit code 3");
        expect(service.commands).toHaveLength(2 + number);
        expect(service.tags.has("app:2")).toBe(false);
      }
      // Imported once, whatever a list says.
      expect(service.calls.filter((call) => call.endsWith("/import"))).toEqual([]);
    } finally {
      service.close();
    }
  });
});

describe("a build fails, shows the answer, and sends nothing again, on a service", () => {
  test.each(Object.entries<RefusingStandIn>(refusing))("%s", async (_, { shown, imports = 1, ...table }) => {
    const { service, write, bough } = open(table);
    try {
      write("FROM base:1\nRUN first\n");
      const runs = service.commands;
      for (const number of [1, 2]) {
        const { exitCode, stderr } = await bough("build", ".", "--tag", "app:1");
        expect(exitCode).toBe(1);
        for (const text of shown) expect(stderr).toContain(text);
        expect(service.tags.size).toBe(0);
        // Neither taken for done in the next build, nor sent twice in one.
        if (imports === 1) expect(runs).toHaveLength(number);
        else expect(service.calls.filter((call) => call.endsWith("/import"))).toHaveLength(number);
      }
    } finally {
      service.close();
    }
  });
});

test("output in a place that is not known is named, once", async () => {
  const { service, write, bough } = open({
    polls: ({ image, exitCode, output }) => [
      { json: { status: "done", exit_code: exitCode, image, transcript: output } },
    ],
  });
  try {
    write(dockerfile);
    const { exitCode, stderr } = await bough("build", ".");
    expect(exitCode).toBe(0);
    expect(stderr.match(/.*transcript.*/g)).toEqual([
      "[WARN] this service returns text as transcript, which bough does not know as output: it is not shown",
    ]);
  } finally {
    service.close();
  }
});
