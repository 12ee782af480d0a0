/** The number of old records does not slow down a cached build, because the engine reads only what it needs. */
import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import type { ImageRecord } from "../../src/service/wire/image.ts";
import { openAnsweringEngine, TestEngine } from "../support/engine.ts";

const bytesRead = () => Number(/^rchar: (\d+)$/m.exec(readFileSync("/proc/self/io", "utf8"))?.[1]);

test("opening the engine and finding an image does not read thousands of other records", async () => {
  const kept = await TestEngine.open();
  const base = await kept.importBase("base:1");
  const records = 2_000;
  const padding = "x".repeat(2_000);
  const database = new Database(join(kept.directory, "engine.db"));
  database.run(
    `WITH RECURSIVE number (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM number WHERE n < ${records})
     INSERT INTO images (uuid, layer, config, operation, created_at)
     SELECT 'image ' || n, layer, json_object('Author', '${padding}'), NULL, n FROM number, images WHERE uuid = '${base}'`,
  );
  database.run(
    `INSERT INTO operations (uuid, kind, status, owner, metadata, created_at, finished_at)
     SELECT lower(hex(randomblob(16))), 'instance', 'SUCCESS', 'boot.1.1', json_object('command', '${padding}'), 1, 2
     FROM images LIMIT ${records}`,
  );
  database.close();

  const before = bytesRead();
  const engine = await openAnsweringEngine({
    directory: kept.directory,
    clock: systemClock,
    environment: { PATH: process.env.PATH },
  });
  const response = await engine.fetch(new Request("http://engine/v1/images?tag=base:1"));
  const { images } = (await response.json()) as { images: ImageRecord[] };
  const read = bytesRead() - before;
  await engine.close();
  await kept.close();

  expect(images.map(({ uuid }) => uuid)).toEqual([base]);
  // All records together are some 8 MB.
  expect(read).toBeLessThan(1_000_000);
});
