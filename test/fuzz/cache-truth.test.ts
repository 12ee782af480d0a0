import { afterAll, beforeAll, test } from "bun:test";
import { countEdits, type FuzzWorld, openFuzzWorld } from "./harness.ts";

let world: FuzzWorld;
beforeAll(async () => {
  world = await openFuzzWorld();
});
afterAll(() => world.close());

const { edits, timeout } = countEdits(20);
test(
  "a cached build makes the same image as a fresh one",
  () => world.run({ edits, hasStages: false }),
  timeout,
);
