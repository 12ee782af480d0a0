import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";

const source = join(import.meta.dir, "../../src/cli/standard-streams.ts");

/** A process that writes `lines` numbered lines, with an error handler that ends it, and flushes. */
function writer(lines: number): string[] {
  const script = `
    import { createOutput } from ${JSON.stringify(source)};
    const output = createOutput({
      descriptor: 1, open: () => process.stdout, environment: {},
      onError: ({ code }) => { process.stderr.write(code); process.exit(7); },
    });
    process.stderr.write(output.isTerminal + " " + output.columns + "x" + output.rows + "\\n");
    for (let line = 0; line < ${lines}; line++) output.write("line " + line + "\\n");
    await output.flush();
    process.exit(0);`;
  return [process.execPath, "-e", script];
}

test.each([1, 1000, 100_000])("%d lines reach a slow reader whole and in order", async (lines) => {
  const child = Bun.spawn(["sh", "-c", '"$@" | { sleep 0.1; cat; }', "sh", ...writer(lines)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const text = await new Response(child.stdout).text();
  expect(text.trimEnd().split("\n")).toEqual(Array.from({ length: lines }, (_, line) => `line ${line}`));
  expect(await new Response(child.stderr).text()).toBe("false 80x24\n");
});

test("what can't be written is told", async () => {
  const script = '"$@" > /dev/full; echo $?';
  const child = Bun.spawn(["sh", "-c", script, "sh", ...writer(1)], { stdout: "pipe", stderr: "pipe" });
  expect(await new Response(child.stdout).text()).toBe("7\n");
  expect(await new Response(child.stderr).text()).toEndWith("ENOSPC");
});

test("a file gets everything", async () => {
  const path = join(temporaryDirectory(), "out");
  const child = Bun.spawn(["sh", "-c", `"$@" > '${path}'`, "sh", ...writer(20_000)]);
  expect(await child.exited).toBe(0);
  expect((await Bun.file(path).text()).trimEnd().split("\n")).toHaveLength(20_000);
});
