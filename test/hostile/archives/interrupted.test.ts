/** Imports of archives that are cancelled, time out or are killed. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { existsSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createManualClock } from "../../fake-service/manual-clock.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { TestEngine } from "../../support/engine.ts";
import { archiveOf, dockerFiles } from "../../support/image-bytes.ts";
import { tarOf } from "../../support/tar-bytes.ts";

/** An archive that takes a while: 256 MiB, decompressed before it is read. */
let archive: string;
let engine: TestEngine;

beforeAll(async () => {
  archive = join(temporaryDirectory(), "large.tar.gz");
  const layer = tarOf([{ name: "zeros", content: new Uint8Array(256 * 1024 ** 2) }]);
  writeFileSync(archive, Bun.gzipSync(archiveOf(dockerFiles({ layers: [layer] })), { level: 1 }));
  engine = await TestEngine.open();
}, 180_000);
afterAll(() => engine.close());

const request = (more: object = {}) => ({ registry: { url: `docker-archive:${archive}` }, ...more });

/** True if the operation has begun to write its decompressed archive. */
const hasBegun = (directory: string, uuid: string) =>
  existsSync(join(directory, "operations", uuid, "archive.tar"));

async function expectNothingLeft(directory: string): Promise<void> {
  while (readdirSync(join(directory, "operations")).length > 0) await Bun.sleep(1);
  expect(readdirSync(join(directory, "layers"))).toEqual([]);
}

test("a cancelled import leaves no files", async () => {
  const { uuid } = await engine.json<{ uuid: string }>("POST", "/v1/images/import", request());
  while (!hasBegun(engine.directory, uuid)) await Bun.sleep(1);
  expect((await engine.fetch("DELETE", `/v1/operations/${uuid}`)).status).toBe(202);
  expect((await engine.finish({ uuid })).status).toBe("CANCELLED");
  await expectNothingLeft(engine.directory);
});

test("an import that times out leaves no files", async () => {
  const clock = createManualClock();
  const timed = await TestEngine.open({ clock });
  const { uuid } = await timed.json<{ uuid: string }>("POST", "/v1/images/import", request({ timeout: 60 }));
  while (!hasBegun(timed.directory, uuid)) await Bun.sleep(1);
  await clock.advance(60_000);
  expect((await timed.finish({ uuid })).error).toBe("the import did not end within 60 seconds");
  await expectNothingLeft(timed.directory);
  await timed.close();
});

test("the next start removes the files of a killed import", async () => {
  const directory = temporaryDirectory();
  const program = `
    import { TestEngine } from ${JSON.stringify(join(import.meta.dir, "../../support/engine.ts"))};
    const engine = await TestEngine.open({ directory: ${JSON.stringify(directory)} });
    const { uuid } = await engine.json("POST", "/v1/images/import", ${JSON.stringify(request())});
    console.log(uuid);
    await engine.finish({ uuid });`;
  const child = Bun.spawn([process.execPath, "-e", program], { stdout: "pipe", stderr: "inherit" });
  const { value } = await child.stdout.getReader().read();
  const uuid = new TextDecoder().decode(value).trim();
  while (!hasBegun(directory, uuid)) await Bun.sleep(1);
  child.kill("SIGKILL");
  await child.exited;
  const next = await TestEngine.open({ directory });
  await next.recover();
  await expectNothingLeft(directory);
  expect((await next.json<{ status: string }>("GET", `/v1/operations/${uuid}`)).status).toBe("FAILED");
  await next.engine.close();
});
