import { expect, test } from "bun:test";
import { join } from "node:path";

test("no descriptor stays open if a program can't be started on pipes, however many can be opened", () => {
  const script = `
    import { closeSync, openSync, readdirSync } from "node:fs";
    import { startOnPipes } from ${JSON.stringify(join(import.meta.dir, "../../src/programs/pipes.ts"))};
    const count = () => readdirSync("/proc/self/fd").length;
    const others = [];
    try {
      for (;;) others.push(openSync("/dev/null"));
    } catch {}
    const left = [];
    while (left.length < 10) {
      closeSync(others.pop());
      const before = count();
      try {
        startOnPipes(() => { throw new Error(); });
      } catch {}
      left.push(count() - before);
    }
    console.log(JSON.stringify(left));`;
  const child = Bun.spawnSync(["sh", "-c", 'ulimit -n 64; exec "$@"', "sh", process.execPath, "-e", script]);
  expect(child.stderr.toString()).toBe("");
  expect(JSON.parse(child.stdout.toString())).toEqual(new Array(10).fill(0));
});
