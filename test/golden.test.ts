import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "./support/bough.ts";
import { expectGolden } from "./support/golden.ts";

test.skipIf(process.env.UPDATE_GOLDEN === "1")(
  "a missing golden file fails a test without output, too",
  () => {
    const path = join(temporaryDirectory(), "missing");
    expect(() => expectGolden(path, "")).toThrow(`there is no ${path}: UPDATE_GOLDEN=1 writes it`);
  },
);
