import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { join } from "node:path";
import { temporaryDirectory } from "./support/bough.ts";

test.each(["store", "engine"])("the %s waits while another process creates its database", async (owner) => {
  const path = join(temporaryDirectory(), "shared.db");
  const other = new Database(path, { create: true });
  // SQLite's busy timeout does not apply to the switch to write-ahead logging while another process holds the write lock.
  other.run("BEGIN IMMEDIATE");
  const program = join(import.meta.dir, "support/database-process.ts");
  const child = Bun.spawn([process.execPath, program, owner, path], { stdout: "pipe", stderr: "pipe" });
  const reader = child.stdout.getReader();
  const read = async () => new TextDecoder().decode((await reader.read()).value);
  expect(await read()).toBe("opening\n");
  await Bun.sleep(50);
  other.run("COMMIT");
  other.close();
  expect(await read()).toBe("wal\n");
  expect(await child.exited).toBe(0);
});
