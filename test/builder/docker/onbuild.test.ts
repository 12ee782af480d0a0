import { describe, expect, test } from "bun:test";
import { imageTriggers, withTrigger } from "../../../src/builder/interpreter/triggers.ts";
import { parseDockerfile } from "../../../src/dockerfile/parse.ts";

const [from] = parseDockerfile("\nFROM app:1\n", "Dockerfile").stages.map((stage) => stage.from);

function triggersOf(...OnBuild: string[]) {
  if (from === undefined) throw new Error("no FROM");
  return imageTriggers("app:1", { OnBuild }, from);
}

describe("triggers of a base image", () => {
  test("are instructions with the line of the FROM, in order", () => {
    const found = triggersOf("ARG A=1", "copy f /f");
    expect(found.map(({ name, range }) => [name, range.start])).toEqual([
      ["ARG", 2],
      ["COPY", 2],
    ]);
  });

  test.each([
    ["FROM busybox", "FROM isn't allowed as an ONBUILD trigger"],
    ["ONBUILD RUN a", "Chaining ONBUILD via `ONBUILD ONBUILD` isn't allowed"],
    ["NONSENSE x", "unknown instruction: NONSENSE"],
    ["COPY", "its trigger ONBUILD COPY is not valid"],
    ["RUN a\nRUN b", "should be a single instruction"],
  ])("%s is refused", (text, message) => {
    expect(() => triggersOf(text)).toThrow(message);
    expect(() => triggersOf(text)).toThrow("app:1: its trigger ONBUILD");
  });

  test.each([
    ["RUN --security=insecure a", "not supported: --security=insecure"],
    ["RUN --network=host a", "--network=host is not allowed in a trigger"],
  ])("%s is refused when it is performed", async (text, message) => {
    const [trigger] = triggersOf(text);
    if (trigger === undefined) throw new Error("no trigger");
    const performed = withTrigger(trigger, "app:1", () => Promise.resolve("performed"));
    await expect(performed).rejects.toThrow(message);
    await expect(performed).rejects.toThrow("(ONBUILD RUN");
  });
});
