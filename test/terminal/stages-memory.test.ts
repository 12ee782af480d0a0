import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";

const program = join(import.meta.dir, "stages-memory-process.ts");
const mebibyte = 1024 * 1024;

test.each([
  ["plain", "lines", "\n"],
  ["plain", "one line", ""],
  ["live", "lines", "\n"],
  ["live", "one line", ""],
  ["live", "a progress bar", "\r"],
])(
  "%s: 192 MiB of %s in one stage, while another one prints, take at most 150 MiB of memory",
  async (view, _, lineEnd) => {
    const shown = Bun.spawn([process.execPath, program, view, lineEnd], { cwd: temporaryDirectory() });
    const { maxResident, longest } = JSON.parse(await shown.stdout.text());
    expect(maxResident).toBeLessThan(150 * mebibyte);
    expect(longest).toBeLessThan(2 * mebibyte);
  },
);
