import { expect, test } from "bun:test";
import { createTurns } from "../../src/terminal/live-view.ts";

test("an action runs at once, but after a gap in the next turn and in order", async () => {
  let time = 0;
  const done: string[] = [];
  const turns = createTurns({ now: () => time });
  turns.soon(() => done.push("at once"));
  expect(done).toEqual(["at once"]);
  time += 1000;
  for (const name of ["one", "two"]) turns.soon(() => done.push(name));
  expect(done).toEqual(["at once"]);
  await new Promise<void>((resolve) => setImmediate(resolve));
  expect(done).toEqual(["at once", "one", "two"]);

  turns.next(() => done.push("four"));
  turns.soon(() => done.push("five"));
  turns.finish();
  expect(done.slice(-2)).toEqual(["four", "five"]);
});
