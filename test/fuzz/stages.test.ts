/** The same of builds of several stages: where copies are layers of their own, and where they are staged. */
import { test } from "bun:test";
import { hideExtensions } from "../docker/plain-service.ts";
import { countEdits, openFuzzWorld } from "./harness.ts";

test.each([
  ["on the engine", 12, undefined],
  ["on a service without extensions", 6, hideExtensions],
] as const)(
  "a cached build of several stages comes to what a fresh one comes to, %s",
  async (_, usual, front) => {
    const world = await openFuzzWorld(front);
    try {
      await world.run({ edits: countEdits(usual).edits, hasStages: true });
    } finally {
      await world.close();
    }
  },
  countEdits(12).timeout,
);
