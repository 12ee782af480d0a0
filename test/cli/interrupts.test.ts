/** What Ctrl-C ends: the command that somebody looks after, or all of it. */
import { expect, test } from "bun:test";
import { createInterruptKey, type Interrupt } from "../../src/cli/process/interrupts.ts";

function pressing() {
  const ended: string[] = [];
  const own = new Set<Interrupt>();
  let now = 0;
  const press = createInterruptKey(
    own,
    () => ended.push("all"),
    () => now,
  );
  const after = async (milliseconds: number) => {
    now += milliseconds;
    await Bun.sleep(0);
  };
  const handle = (name: string, isDone: () => Promise<boolean>) =>
    own.add(() => {
      ended.push(name);
      return isDone();
    });
  return { ended, own, press, after, handle };
}

test("with nothing of one's own it ends all", () => {
  const { ended, press } = pressing();
  press();
  expect(ended).toEqual(["all"]);
});

test("the latest of one's own is ended, each time anew", async () => {
  const { ended, own, press, after, handle } = pressing();
  handle("first", async () => true);
  handle("second", async () => true);
  press();
  await after(1000);
  press();
  await after(1000);
  own.clear();
  press();
  expect(ended).toEqual(["second", "second", "all"]);
});

test.each([
  ["that can't be done", async () => false],
  ["that fails", () => Promise.reject(new Error("no"))],
])("what is %s ends all", async (_, isDone) => {
  const { ended, press, after, handle } = pressing();
  handle("own", isDone);
  press();
  await after(0);
  expect(ended).toEqual(["own", "all"]);
});

test("pressed again while that is not done it ends all; heard twice it is pressed once", async () => {
  const { ended, press, after, handle } = pressing();
  handle("own", () => new Promise(() => {}));
  press();
  await after(50);
  press();
  expect(ended).toEqual(["own"]);
  await after(300);
  press();
  expect(ended).toEqual(["own", "all"]);
});
