import { expect, test } from "bun:test";
import { join } from "node:path";

const source = join(import.meta.dir, "../../src");

/** Runs a script with a limit of 128 open files, and returns what it prints. */
function runLimited(steps: string): unknown {
  const script = `
    import { closeSync, openSync, readFileSync } from "node:fs";
    import { systemClock } from ${JSON.stringify(join(source, "clock.ts"))};
    import { Networks } from ${JSON.stringify(join(source, "engine/network/networks.ts"))};
    const warnings = [];
    const warn = (message) => warnings.push(message);
    const environment = { PATH: process.env.PATH };
    const children = () => readFileSync("/proc/self/task/" + process.pid + "/children", "utf8").trim();
    const others = [];
    const openOthers = () => {
      try {
        for (;;) others.push(openSync("/dev/null"));
      } catch {}
    };
    const closeOthers = () => {
      for (const other of others.splice(0)) closeSync(other);
    };
    ${steps}`;
  const child = Bun.spawnSync(["sh", "-c", 'ulimit -n 128; exec "$@"', "sh", process.execPath, "-e", script]);
  expect(child.stderr.toString()).toBe("");
  return JSON.parse(child.stdout.toString());
}

test("too many open files fail a command instead of giving it the machine's network, and leave no process", () => {
  const result = runLimited(`
    openOthers();
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
    closeOthers();
    await networks.close();
    while (children() !== "") await Bun.sleep(1);
    console.log(JSON.stringify({ warnings, codes: [...new Set(codes)], areMany: codes.length > 3 }));`);
  expect(result).toEqual({ warnings: [], codes: ["EMFILE"], areMany: true });
});

test("so do files opened while the network is made, and the next command gets a network of its own", () => {
  const result = runLimited(`
    const networks = new Networks({ environment, clock: systemClock, warn });
    const { ready } = networks.provide("default");
    // A sandbox can fail before it waits for the network.
    networks.provide("default");
    openOthers();
    const outcome = await ready.then(({ kind }) => kind, (error) => error.code);
    closeOthers();
    while (children() !== "") await Bun.sleep(1);
    const { kind } = await networks.provide("default").ready;
    await networks.close();
    console.log(JSON.stringify({ warnings, outcome, kind }));`);
  expect(result).toEqual({ warnings: [], outcome: "EMFILE", kind: "private" });
});
