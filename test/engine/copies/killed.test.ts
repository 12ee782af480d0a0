import { expect, test } from "bun:test";
import { mkdtempSync, readdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../../src/database.ts";
import { checkEngine } from "../../../src/engine/check/check.ts";
import { migrations } from "../../../src/engine/engine-directory.ts";
import { layerNames } from "../../../src/engine/records/layers.ts";
import { TestEngine } from "../../support/engine.ts";
import { removeHome } from "../../support/homes.ts";

test.each([0, 15, 60, 180])("a copy killed after %d ms leaves nothing behind", async (delay) => {
  const directory = mkdtempSync(join(tmpdir(), "bough-killed-"));
  try {
    const child = Bun.spawn(["bun", join(import.meta.dir, "copying-child.ts"), directory], {
      stdout: "pipe",
    });
    await child.stdout.getReader().read();
    await Bun.sleep(delay);
    child.kill("SIGKILL");
    await child.exited;

    const engine = await TestEngine.open({ directory });
    try {
      await engine.recover();
      const database = openDatabase(join(directory, "engine.db"), migrations);
      expect(readdirSync(join(directory, "operations"))).toEqual([]);
      expect(readdirSync(join(directory, "layers")).sort()).toEqual(layerNames(database).sort());
      database.close();
      const check = { signal: new AbortController().signal, onProgress() {} };
      expect((await checkEngine(directory, check)).damage).toEqual([]);
    } finally {
      await engine.close();
    }
  } finally {
    removeHome(directory);
  }
});
