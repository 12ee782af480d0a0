import { expect, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { unpackTree } from "../../src/cli/export/export-image.ts";
import type { Runtime } from "../../src/cli/process/runtime.ts";
import { systemClock } from "../../src/clock.ts";
import { temporaryDirectory } from "../support/bough.ts";

test("the cause of tar's failure is its first message", async () => {
  const programs = temporaryDirectory();
  const script = `#!/bin/sh
[ "$1" = --extract ] || exit 0
cat > /dev/null
echo "tar: ./a: Cannot open: Permission denied
tar: Exiting with failure status due to previous errors" >&2
exit 2
`;
  writeFileSync(join(programs, "tar"), script, { mode: 0o755 });
  const runtime = {
    environment: { PATH: `${programs}:${process.env.PATH}` },
    signal: new AbortController().signal,
    clock: systemClock,
    userId: 0,
  };
  const unpacking = unpackTree(new Blob(["x"]).stream(), temporaryDirectory(), runtime as unknown as Runtime);
  await expect(unpacking).rejects.toThrow(
    /^cannot unpack the image's files: tar: .\/a: Cannot open: Permission denied$/,
  );
});
