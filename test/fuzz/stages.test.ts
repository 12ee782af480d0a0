/** Builds of several stages, with copies as separate layers (on the engine) and with staged copies. */
import { test } from "bun:test";
import { hideExtensions } from "../docker/plain-service.ts";
import { countEdits, openFuzzWorld } from "./harness.ts";

test.each([
  ["on the engine", 12, undefined],
  ["on a service without extensions", 6, hideExtensions],
] as const)(
  "a cached build of several stages makes the same image as a fresh one, %s",
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
