/** On services that know little, it is said that there are no scopes, and the build is what it would be without. */
import { expect, test } from "bun:test";
import { dialects } from "../dialects/dialects.ts";
import { startPlainService } from "../dialects/plain-service.ts";
import { runBough } from "../support/bough.ts";
import { newMachine } from "./machines.ts";

test.each([
  "that knows the six calls",
  "that passes over filters",
  "that lists by themselves",
  "that knows no query but tag",
  "that says id for uuid",
  "that says 403 to what it does not know",
  "that says 501 to what it does not know",
  "that has a page for what it does not know",
])("a service %s", async (name) => {
  const service = startPlainService(dialects[name] ?? {});
  for (const machine of [1, 2].map(() => newMachine({ Dockerfile: "FROM base:1\nRUN make\n" }))) {
    const words = ["--url", service.url, "--token", "t0ken", "build", ".", "--tag", "app"];
    const { exitCode, stderr } = await runBough([...words, "--cache-from", "main", "--cache-to", "main"], {
      workingDirectory: machine.context,
      environment: { BOUGH_HOME: machine.home },
    });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("tagged ") });
    expect(stderr).not.toContain("[ERROR]");
    expect(stderr).toContain("[WARN] cache: nothing is written to scope main: the service can't show");
  }
  expect(service.commands).toEqual(["make", "make"]);
  expect([...service.tags.keys()].filter((tag) => tag.includes("cache"))).toEqual([]);
  service.close();
});
