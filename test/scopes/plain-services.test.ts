/** On services without the calls that scopes need, a build warns, and works without scopes. */
import { expect, test } from "bun:test";
import { dialects } from "../dialects/dialects.ts";
import { startPlainService } from "../dialects/plain-service.ts";
import { runBough } from "../support/bough.ts";
import { newMachine } from "./machines.ts";

test.each([
  "that has only the six calls",
  "that ignores filters",
  "that returns lists without an object around them",
  "that supports only the query tag",
  "that uses id for uuid",
  "that responds with 403 to unknown routes",
  "that responds with 501 to unknown routes",
  "that responds with a page to unknown routes",
])("a build works without scopes on a service %s", async (name) => {
  const service = startPlainService(dialects[name] ?? {});
  for (const machine of [1, 2].map(() => newMachine({ Dockerfile: "FROM base:1\nRUN make\n" }))) {
    const words = ["--url", service.url, "--token", "t0ken", "build", ".", "--tag", "app"];
    const { exitCode, stderr } = await runBough([...words, "--cache-from", "main", "--cache-to", "main"], {
      workingDirectory: machine.context,
      environment: { BOUGH_HOME: machine.home },
    });
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 0, stderr: expect.stringContaining("tagged ") });
    expect(stderr).not.toContain("[ERROR]");
    expect(stderr).toContain(
      "[WARN] cache: nothing is written to scope main: the service can't read files of an image",
    );
  }
  expect(service.commands).toEqual(["make", "make"]);
  expect([...service.tags.keys()].filter((tag) => tag.includes("cache"))).toEqual([]);
  service.close();
});
