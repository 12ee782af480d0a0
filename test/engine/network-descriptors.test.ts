import { expect, test } from "bun:test";
import { join } from "node:path";

const source = join(import.meta.dir, "../../src");

test("too many open files fail a command instead of giving it the machine's network, and leave no process", () => {
  const script = `
    import { closeSync, openSync, readFileSync } from "node:fs";
    import { systemClock } from ${JSON.stringify(join(source, "clock.ts"))};
    import { Networks } from ${JSON.stringify(join(source, "engine/network/networks.ts"))};
    const warnings = [];
    const warn = (message) => warnings.push(message);
    const environment = { PATH: process.env.PATH };
    const children = () => readFileSync("/proc/self/task/" + process.pid + "/children", "utf8").trim();
    const others = [];
    try {
      for (;;) others.push(openSync("/dev/null"));
    } catch {}
    const codes = [];
    let networks;
    for (let network; network === undefined; ) {
      closeSync(others.pop());
      networks = new Networks({ environment, clock: systemClock, warn });
      try {
        network = networks.start("default");
        if (network === undefined) break;
      } catch (error) {
        codes.push(error.code);
        while (children() !== "") await Bun.sleep(1);
      }
    }
    for (const other of others) closeSync(other);
    await networks.close();
    while (children() !== "") await Bun.sleep(1);
    console.log(JSON.stringify({ warnings, codes: [...new Set(codes)], areMany: codes.length > 3 }));`;
  const child = Bun.spawnSync(["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", process.execPath, "-e", script]);
  expect(child.stderr.toString()).toBe("");
  expect(JSON.parse(child.stdout.toString())).toEqual({ warnings: [], codes: ["EMFILE"], areMany: true });
});
