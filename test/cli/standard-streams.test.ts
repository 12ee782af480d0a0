import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";

const source = join(import.meta.dir, "../../src/cli/process/standard-streams.ts");

/** The command of a process that writes `lines` numbered lines, one by one or at once, flushes, and ends at an error. */
function writer(lines: number, how: "singly" | "at once" | "alone" = "singly"): string[] {
  const script = `
    import { createOutput } from ${JSON.stringify(source)};
    const output = createOutput({
      descriptor: 1, open: () => process.stdout, environment: {},
      onError: ({ code }) => { process.stderr.write(code); process.exit(7); },
    });
    process.stderr.write(output.isTerminal + " " + output.columns + "x" + output.rows + "\\n");
    const all = Array.from({ length: ${lines} }, (_, line) => "line " + line + "\\n");
    if (${how === "alone"}) output.writeAlone(() => all.join(""));
    else for (const text of ${how === "singly"} ? all : [all.join("")]) output.write(text);
    await output.flush();
    process.exit(0);`;
  return [process.execPath, "-e", script];
}

test.each([
  [1, "singly"],
  [1000, "singly"],
  [100_000, "singly"],
  [1000, "at once"],
  [100_000, "at once"],
  [1, "alone"],
  [100_000, "alone"],
] as const)("a slow reader gets all of %d lines in order, written %s", async (lines, how) => {
  const child = Bun.spawn(["sh", "-c", '"$@" | { sleep 0.1; cat; }', "sh", ...writer(lines, how)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  const text = await new Response(child.stdout).text();
  expect(text.trimEnd().split("\n")).toEqual(Array.from({ length: lines }, (_, line) => `line ${line}`));
  expect(await new Response(child.stderr).text()).toBe("false 80x24\n");
});

test.each([
  [1, "at once"],
  [100_000, "at once"],
  [1, "alone"],
  [100_000, "alone"],
] as const)("an error of writing %d lines %s is reported", async (lines, how) => {
  const script = '"$@" > /dev/full; echo $?';
  const child = Bun.spawn(["sh", "-c", script, "sh", ...writer(lines, how)], {
    stdout: "pipe",
    stderr: "pipe",
  });
  expect(await new Response(child.stdout).text()).toBe("7\n");
  expect(await new Response(child.stderr).text()).toEndWith("ENOSPC");
});

test("a terminal without a size counts as 80x24", async () => {
  let text = "";
  const decoder = new TextDecoder();
  const ended = Promise.withResolvers<void>();
  Bun.spawn(["sh", "-c", 'stty cols 0 rows 0; exec "$@"', "sh", ...writer(1)], {
    terminal: {
      data: (_, bytes) => {
        text += decoder.decode(bytes, { stream: true });
      },
      exit: () => ended.resolve(),
    },
  });
  await ended.promise;
  expect(text).toStartWith("true 80x24\r\n");
});

test("a file gets everything", async () => {
  const path = join(temporaryDirectory(), "out");
  const child = Bun.spawn(["sh", "-c", `"$@" > '${path}'`, "sh", ...writer(20_000)]);
  expect(await child.exited).toBe(0);
  expect((await Bun.file(path).text()).trimEnd().split("\n")).toHaveLength(20_000);
});
