import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { unpackTree } from "../../src/cli/export/export-image.ts";
import type { Runtime } from "../../src/cli/process/runtime.ts";
import { temporaryDirectory } from "../support/bough.ts";

const denied = "tar: ./a: Cannot open: Permission denied";

test.each([
  ["its first message", [denied], { message: `cannot unpack the image's files: ${denied}` }],
  [
    "the disk's error in a later one",
    ["tar: ./a: Wrote only 512 of 10240 bytes", "tar: ./b: Cannot write: No space left on device"],
    { message: "No space left on device", code: "ENOSPC" },
  ],
])("the cause of tar's failure is %s", async (_, said, cause) => {
  const programs = temporaryDirectory();
  const lines = [...said, "tar: Exiting with failure status due to previous errors"];
  const script = `#!/bin/sh\ncat > /dev/null\nprintf '%s\\n' ${lines.map((line) => `'${line}'`).join(" ")} >&2\nexit 2\n`;
  writeFileSync(join(programs, "tar"), script, { mode: 0o755 });
  const runtime = {
    environment: { PATH: `${programs}:${process.env.PATH}` },
    signal: new AbortController().signal,
    userId: 0,
  };
  const unpacking = unpackTree(new Blob(["x"]).stream(), temporaryDirectory(), runtime as unknown as Runtime);
  expect(await unpacking.catch((error: unknown) => error)).toMatchObject(cause);
});
