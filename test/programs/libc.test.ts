import { expect, test } from "bun:test";
import { join } from "node:path";

test("without memory for compiled code, the error names the limit that is probably too low", () => {
  const file = JSON.stringify(join(import.meta.dir, "../../src/programs/libc.ts"));
  const script = `
    import { libc } from ${file};
    try {
      libc();
    } catch (error) {
      console.log(error.message, error.hint);
    }`;
  const environment = { ...process.env, BUN_JSC_useJIT: "0" };
  const child = Bun.spawnSync([process.execPath, "-e", script], { env: environment });
  expect(child.stdout.toString()).toBe(
    "the engine cannot reserve memory for compiled code Raise the limit of virtual memory: `ulimit -v` shows it in kB, and 8 GB are enough.\n",
  );
});
