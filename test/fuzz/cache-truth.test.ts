import { afterAll, beforeAll, test } from "bun:test";
import { countEdits, type FuzzWorld, openFuzzWorld } from "./harness.ts";

let world: FuzzWorld;
beforeAll(async () => {
  world = await openFuzzWorld();
});
afterAll(() => world.close());

const { edits, timeout } = countEdits(20);
test(
  "a cached build comes to what a fresh one comes to",
  () => world.run({ edits, hasStages: false }),
  timeout,
);
