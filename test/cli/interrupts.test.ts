/** Ctrl-C: it calls the latest handler, or ends everything. */
import { expect, test } from "bun:test";
import { createInterruptKey, type Interrupt } from "../../src/cli/process/interrupts.ts";

function createKey() {
  const ended: string[] = [];
  const handlers = new Set<Interrupt>();
  let now = 0;
  const press = createInterruptKey(
    handlers,
    () => ended.push("all"),
    () => now,
  );
  const after = async (milliseconds: number) => {
    now += milliseconds;
    await Bun.sleep(0);
  };
  const handle = (name: string, isDone: () => Promise<boolean>) =>
    handlers.add(() => {
      ended.push(name);
      return isDone();
    });
  return { ended, handlers, press, after, handle };
}

test("it ends everything if there is no handler", () => {
  const { ended, press } = createKey();
  press();
  expect(ended).toEqual(["all"]);
});

test("it calls the latest handler each time", async () => {
  const { ended, handlers, press, after, handle } = createKey();
  handle("first", async () => true);
  handle("second", async () => true);
  press();
  await after(1000);
  press();
  await after(1000);
  handlers.clear();
  press();
  expect(ended).toEqual(["second", "second", "all"]);
});

test.each([
  ["can't do it", async () => false],
  ["fails", () => Promise.reject(new Error("no"))],
])("it ends everything if the handler %s", async (_, isDone) => {
  const { ended, press, after, handle } = createKey();
  handle("own", isDone);
  press();
  await after(0);
  expect(ended).toEqual(["own", "all"]);
});

test("a second time during a handler it ends everything, but two signals at almost the same time count once", async () => {
  const { ended, press, after, handle } = createKey();
  handle("own", () => new Promise(() => {}));
  press();
  await after(50);
  press();
  expect(ended).toEqual(["own"]);
  await after(300);
  press();
  expect(ended).toEqual(["own", "all"]);
});
