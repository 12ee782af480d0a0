/** What every call of the seam does, whichever way the engine is reached: a table for `service.test.ts`. */
import { expect } from "bun:test";
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { readTar } from "../../src/image/tar-reader.ts";
import { Secret } from "../../src/secret.ts";
import type { Service } from "../../src/service/client.ts";
import { NotFoundError } from "../../src/service/http/errors.ts";
import type { EventListener, OperationOutcome, OutputChunk } from "../../src/service/service.ts";
import type { InstanceRequest } from "../../src/service/wire/instance.ts";
import { cacheKeyOf, type InstanceMount } from "../../src/service/wire/mount.ts";
import { rejection } from "../service/client.ts";

export interface Seam {
  service: Service;
  /** An image of busybox with the tag `busybox:latest`. */
  base: string;
  /** The address of an image to import. */
  importable: string;
  /** A directory for files of the test. */
  directory: string;
  /** Another service on the same engine, whose calls can be interrupted. */
  interruptible(): { service: Service; interrupt: () => void };
}

const nobody = "00000000-0000-4000-8000-000000000000";

function spawn({ service, base }: Seam, command: string, request: Partial<InstanceRequest> = {}) {
  return service.spawn({ image: base, command, shell: true, cwd: "/", disposable: true, ...request });
}

async function run(
  seam: Seam,
  command: string,
  request: Partial<InstanceRequest> = {},
  listener?: EventListener,
): Promise<OperationOutcome> {
  return seam.service.follow(await spawn(seam, command, request), undefined, listener);
}

/** Runs a command whose changes are kept, and returns the image. */
async function make(seam: Seam, command: string, request: Partial<InstanceRequest> = {}): Promise<string> {
  const { image = "" } = await run(seam, command, { disposable: false, ...request });
  return image;
}

/** Fills a cache with one file, which is larger than what is read ahead. */
async function makeCache(seam: Seam): Promise<{ key: string; mounts: InstanceMount[] }> {
  const owner = { id: crypto.randomUUID(), uid: 0, gid: 0 };
  const mounts: InstanceMount[] = [
    { type: "cache", target: "/c", sharing: "locked", mode: "0755", ...owner },
  ];
  await run(seam, "head -c 20000000 /dev/urandom > /c/f", { mounts });
  return { key: cacheKeyOf({ ...owner, mode: 0o755 }), mounts };
}

async function readAll(reader: { read(): Promise<{ done: boolean }> }): Promise<void> {
  while (!(await reader.read()).done);
}

async function textOf(stream: ReadableStream<Uint8Array> | undefined): Promise<string | undefined> {
  return stream && (await new Response(stream).text());
}

function fileOf({ directory }: Seam, name: string, content: string) {
  const absolutePath = join(directory, name);
  writeFileSync(absolutePath, content);
  return { absolutePath, sha256: sha256Of(content), size: content.length };
}

function sha256Of(text: string | Uint8Array): string {
  return new Bun.CryptoHasher("sha256").update(text).digest("hex");
}

export const cases: readonly [name: string, run: (seam: Seam) => Promise<void>][] = [
  [
    "finds an image by its UUID in any spelling, by its tag, and by its tag without `latest`",
    async ({ service, base }) => {
      const found = await service.findImage(base);
      expect(found).toMatchObject({ uuid: base, config: { Env: expect.any(Array) } });
      expect(found).toHaveProperty("identity");
      for (const reference of [base.toUpperCase(), "busybox", "busybox:latest", "tag:busybox:latest"])
        expect(await service.findImage(reference)).toEqual(found as never);
      for (const reference of [nobody, "busybox:2", "busy", "BUSYBOX", "a b"])
        expect(await service.findImage(reference)).toBeUndefined();
    },
  ],
  [
    "says which images and platforms of a tag there are",
    async ({ service, base }) => {
      expect(await service.hasImage(base)).toBe(true);
      expect(await service.hasImage(nobody)).toBe(false);
      const platform = await service.capabilities.platform();
      expect(await service.platformsOf("busybox:latest")).toEqual([platform as string]);
      expect(await service.platformsOf("busybox:2")).toEqual([]);
      expect(await service.findImage("busybox", platform)).toMatchObject({ uuid: base });
    },
  ],
  [
    "imports an image, under a tag, and reports what goes wrong",
    async ({ service, base, importable }) => {
      const request = { url: importable, timeoutSeconds: 60 };
      expect(await service.importImage({ ...request, tag: "imported:1" })).toBe(base);
      expect(await service.findImage("imported:1")).toMatchObject({ uuid: base });
      await service.removeTag(base, "imported:1");
      const missing = await rejection(service.importImage({ ...request, url: `${importable}-missing` }));
      expect(missing).toMatchObject({
        message: expect.stringContaining(`importing ${importable}-missing failed: `),
        hint: "Check the path and its contents.",
      });
      expect(await rejection(service.importImage({ ...request, tag: "A B" }))).toMatchObject({
        message: expect.stringContaining('"A B" is not a valid tag'),
      });
    },
  ],
  [
    "ends an import that takes longer than it may",
    async ({ service }) => {
      const { promise: end, resolve } = Promise.withResolvers<Response>();
      const silent = Bun.serve({ port: 0, hostname: "127.0.0.1", idleTimeout: 0, fetch: () => end });
      const url = `docker://${silent.url.host}/silent:1`;
      const late = await rejection(service.importImage({ url, timeoutSeconds: 1 }));
      expect(late).toMatchObject({
        message: `importing ${url} failed: the import did not end within 1 second`,
      });
      resolve(new Response());
      await silent.stop(true);
    },
  ],
  [
    "sets, moves and removes tags",
    async (seam) => {
      const { service, base } = seam;
      const other = await make(seam, "echo > /tagged");
      await service.tagImage(base, "moved:1");
      await service.tagImage(other, "moved:1");
      await service.tagImage(other, "moved:2");
      const tags = async () => (await service.listImages({ uuid: other })).map(({ tag }) => tag);
      expect(await tags()).toEqual(["moved:1", "moved:2"]);
      await service.removeTag(other, "moved:1");
      expect(await tags()).toEqual(["moved:2"]);
      await service.untagImage(other);
      expect(await tags()).toEqual([null]);
      for (const call of [() => service.tagImage(nobody, "moved:1"), () => service.untagImage(nobody)])
        expect(await rejection(call())).toBeInstanceOf(NotFoundError);
    },
  ],
  [
    "lists images by tag, UUID and time, with sizes on request",
    async ({ service, base }) => {
      expect((await service.listImages({ tag: "busy" })).map(({ uuid }) => uuid)).toEqual([base]);
      const [record] = await service.listImages({ uuid: base, sizes: true });
      expect(record).toMatchObject({ uuid: base, tag: "busybox:latest", size: expect.any(Number) });
      expect((await service.listImages({ uuids: [base, nobody] })).map(({ uuid }) => uuid)).toEqual([base]);
      expect(await service.listImages({ tagged: true, until: "2001-01-01T00:00:00Z" })).toEqual([]);
      expect(await service.listImages({ uuid: nobody })).toEqual([]);
    },
  ],
  [
    "removes an image, except one that is gone",
    async (seam) => {
      const { service } = seam;
      const image = await make(seam, "head -c 100000 /dev/zero > /removed");
      expect((await service.removeImage(image)).freedBytes).toBeGreaterThanOrEqual(100_000);
      expect(await service.hasImage(image)).toBe(false);
      expect(await rejection(service.removeImage(image))).toBeInstanceOf(NotFoundError);
    },
  ],
  [
    "configures an image: the same request has the same result",
    async ({ service, base }) => {
      const config = { Env: ["A=1"], WorkingDir: "/tmp" };
      const origin = { author: "me", history: [{ created_by: "test" }] };
      const image = await service.configureImage(base, config, origin);
      expect(await service.configureImage(base, config, origin)).toBe(image);
      expect(await service.findImage(image)).toMatchObject({ uuid: image, config, origin });
      expect(await rejection(service.configureImage(nobody, config))).toBeInstanceOf(NotFoundError);
    },
  ],
  [
    "stores each content once, and none that has changed",
    async (seam) => {
      const { service } = seam;
      const [one, same, other] = ["one", "one", "other"].map((text, index) =>
        fileOf(seam, `f${index}`, text),
      );
      if (one === undefined || same === undefined || other === undefined) throw new Error("no files");
      const reused: boolean[] = [];
      const onFile = (_: string, isReused: boolean) => reused.push(isReused);
      const ids = await service.uploadFiles([one, same, other], undefined, { onFile });
      expect([...ids.keys()].sort()).toEqual([one.sha256, other.sha256].sort());
      expect(reused).toEqual([false, false]);
      expect(await service.findFile(one.sha256)).toBe(ids.get(one.sha256) as string);
      expect(await service.findFile(sha256Of("nothing"))).toBeUndefined();
      const changed = fileOf(seam, "changed", "before");
      appendFileSync(changed.absolutePath, "!");
      expect(await rejection(service.uploadFiles([changed]))).toMatchObject({
        message: `${changed.absolutePath} changed while it was being read`,
      });
      const files = { "/a/one": { uuid: ids.get(one.sha256) ?? "", uid: 7, gid: 8, mode: "0640" } };
      const { stdout } = await run(seam, "cat /a/one; stat -c ' %a %u:%g' /a/one", { files });
      expect(stdout.text).toBe("one 640 7:8\n");
    },
  ],
  [
    "stores a stream, unless its hash is refused",
    async ({ service }) => {
      const body = () => new Blob(["streamed ", "text"]).stream();
      let bytes = 0;
      const progress = (taken: number) => {
        bytes = taken;
      };
      const stored = await service.uploadStream(body, { progress });
      expect(stored).toMatchObject({ sha256: sha256Of("streamed text"), size: 13 });
      expect([bytes, await service.findFile(stored.sha256)]).toEqual([13, stored.uuid]);
      const refusing = service.uploadStream(() => new Blob(["refused"]).stream(), {
        inspect(sha256) {
          throw new Error(`not ${sha256}`);
        },
      });
      expect(await rejection(refusing)).toMatchObject({ message: `not ${sha256Of("refused")}` });
      expect(await service.findFile(sha256Of("refused"))).toBeUndefined();
    },
  ],
  [
    "reports a command's output as it comes, byte for byte, and its end",
    async (seam) => {
      const { service } = seam;
      const chunks: OutputChunk[] = [];
      const bytes: Uint8Array[] = [];
      let hasStarted = false;
      const uuid = await spawn(seam, String.raw`printf 'a\303\251\377'; echo err >&2; exit 3`);
      const outcome = await service.follow(uuid, (chunk) => chunks.push(chunk), {
        onBytes: (stream, chunk) => void (stream === "stdout" && bytes.push(chunk)),
        onStart: () => {
          hasStarted = true;
        },
      });
      expect(outcome).toMatchObject({
        ...{ operation: uuid, status: "SUCCESS", exitCode: 3, timedOut: false, limitsHit: [] },
        stdout: { text: "aé\ufffd", truncated: false },
        stderr: { text: "err\n", truncated: false },
        served: { seconds: expect.any(Number) },
      });
      expect(outcome.error).toBeUndefined();
      expect(hasStarted).toBe(true);
      expect(Buffer.concat(bytes)).toEqual(Buffer.from([0x61, 0xc3, 0xa9, 0xff]));
      const seen = chunks.map(({ stream, text }) => `${stream}: ${text}`).sort();
      expect(seen.join("|")).toBe("stderr: err\n|stdout: aé\ufffd");
    },
  ],
  [
    "keeps what a command changes as an image, and names the image itself if it changes nothing",
    async (seam) => {
      const image = await make(seam, "echo kept > /kept");
      expect(await textOf(await seam.service.openFile(image, "/kept"))).toBe("kept\n");
      expect(await make(seam, "true")).toBe(seam.base);
      expect((await run(seam, "echo > /dropped")).image).toBeUndefined();
    },
  ],
  [
    "says that output was cut, and passes none on twice to who takes all",
    async (seam) => {
      const rest: OutputChunk[] = [];
      const onRest = (chunk: OutputChunk) => rest.push(chunk);
      const outcome = await run(seam, "head -c 1000 /dev/zero | tr '\\0' x", { truncate_output_at: 100 });
      expect(outcome.stdout.truncated).toBe(true);
      const taken = await run(seam, "echo all", {}, { onRest });
      expect([taken.stdout, rest]).toEqual([{ text: "", truncated: false }, []]);
    },
  ],
  [
    "stops a command at its timeout",
    async (seam) => {
      expect(await run(seam, "sleep 100", { timeout: 1 })).toMatchObject({ timedOut: true });
    },
  ],
  [
    "refuses a request about what is not there, or that is wrong",
    async (seam) => {
      const { service } = seam;
      for (const call of [
        () => spawn({ ...seam, base: nobody }, "true"),
        () => spawn(seam, "true", { files: { "/a": { uuid: nobody, uid: 0, gid: 0, mode: "0644" } } }),
        () => service.follow(nobody),
        () => service.hasEnded(nobody),
        () => service.getOperation(nobody),
      ])
        expect(await rejection(call())).toBeInstanceOf(NotFoundError);
      for (const [request, message] of [
        [{ cwd: "relative" }, "cwd must be an absolute path"],
        [{ mounts: [{ type: "tmpfs", target: "/" }] }, "mounts[0].target must not be the root directory"],
        [{ env: { "A=": "" } }, 'env has a variable with the name "A="'],
      ] satisfies [Partial<InstanceRequest>, string][])
        expect(await rejection(spawn(seam, "true", request))).toMatchObject({
          message: expect.stringContaining(message),
        });
    },
  ],
  [
    "mounts secrets and files, which are in no layer",
    async (seam) => {
      const ids = await seam.service.uploadFiles([fileOf(seam, "mounted", "mounted")]);
      const file = { uuid: [...ids.values()][0] ?? "", uid: 0, gid: 0, mode: "0644" };
      const mounts: InstanceMount[] = [
        { type: "bind", target: "/m", files: { "a/b": file }, readonly: true },
        { type: "secret", target: "/s", value: Secret.of("secret \u00e9"), env: "S" },
        { type: "tmpfs", target: "/t" },
      ];
      const { image = "", stdout } = await run(seam, 'cat /m/a/b /s; echo " $S"; echo > /t/x; echo > /kept', {
        ...{ mounts, disposable: false },
      });
      expect(stdout.text).toBe("mountedsecret \u00e9 secret \u00e9\n");
      const names = (await seam.service.listFiles(image, "/")).map(({ name }) => name);
      expect(names.filter((name) => ["m", "s", "t"].includes(name))).toEqual([]);
    },
  ],
  [
    "cancels an operation, and one that has ended counts as cancelled",
    async (seam) => {
      const { service } = seam;
      const uuid = await spawn(seam, "sleep 100");
      const outcome = service.follow(uuid);
      expect(await service.hasEnded(uuid)).toBe(false);
      expect(await service.cancel(uuid)).toBe(true);
      expect(await outcome).toMatchObject({ status: "CANCELLED" });
      expect(await service.hasEnded(uuid)).toBe(true);
      expect(await service.cancel(uuid)).toBe(true);
    },
  ],
  [
    "rejects with the reason of an interruption, and can cancel after it",
    async (seam) => {
      const { service, interrupt } = seam.interruptible();
      const uuid = await spawn({ ...seam, service }, "echo begun; sleep 100");
      const begun = Promise.withResolvers<void>();
      const followed = rejection(service.follow(uuid, () => begun.resolve()));
      await begun.promise;
      interrupt();
      expect(await followed).toMatchObject({ message: "interrupted" });
      expect(await rejection(service.listImages())).toMatchObject({ message: "interrupted" });
      expect(await service.cancel(uuid)).toBe(true);
      expect((await seam.service.follow(uuid)).status).toBe("CANCELLED");
    },
  ],
  [
    "leaves no cache taken by a stream whose opening is interrupted, or its reading",
    async (seam) => {
      const { key, mounts } = await makeCache(seam);
      for (const isOpen of [false, true]) {
        const { service, interrupt } = seam.interruptible();
        const opening = service.openCache(key).then((stream) => stream.getReader());
        if (isOpen) await (await opening).read();
        interrupt();
        const read = opening.then((reader) => readAll(reader));
        expect(await rejection(read)).toMatchObject({ message: "interrupted" });
        // It waits for the cache.
        expect((await run(seam, "ls /c", { mounts })).stdout.text).toBe("f\n");
      }
    },
  ],
  [
    "keeps commands from a cache while it is read, and says that others use it",
    async (seam) => {
      const { service } = seam;
      const { key, mounts } = await makeCache(seam);
      const reader = (await service.openCache(key)).getReader();
      await reader.read();
      expect(await rejection(service.openCache(key))).toMatchObject({
        ...{ status: 409, message: expect.stringContaining("another command is using the cache") },
      });
      await reader.cancel();
      expect((await run(seam, "ls /c", { mounts })).stdout.text).toBe("f\n");
      expect(await rejection(service.openCache("none"))).toBeInstanceOf(NotFoundError);
    },
  ],
  [
    "refuses to remove an image that a command uses",
    async (seam) => {
      // Another client: the other cases have asked theirs to follow what does not exist, after which it may wait for the end.
      const { service } = seam.interruptible();
      const image = await make(seam, "echo > /used");
      const started = Promise.withResolvers<void>();
      const uuid = await spawn({ ...seam, service, base: image }, "echo used; sleep 100");
      const ended = service.follow(uuid, () => started.resolve());
      await started.promise;
      expect(await rejection(service.removeImage(image))).toMatchObject({ status: 409 });
      expect(await service.hasImage(image)).toBe(true);
      await service.cancel(uuid);
      await ended;
      await service.removeImage(image);
    },
  ],
  [
    "finds the operation of a request that was sent before",
    async (seam) => {
      const { service } = seam;
      const since = Date.now();
      const requestId = Math.floor(Math.random() * 2 ** 20);
      const sent = { requestId, truncateAt: 1000, since };
      expect(await service.findSpawned(sent)).toBeUndefined();
      const request = { image: seam.base, command: "true", shell: false, cwd: "/", disposable: true };
      const uuid = await service.spawn({ ...request, truncate_output_at: 1000 }, { requestId });
      expect(await service.findSpawned(sent)).toBe(uuid);
      const repeats = { isOfAnother: (operation: string) => operation === uuid };
      expect(await service.findSpawned({ ...sent, repeats })).toBeUndefined();
      await service.follow(uuid);
    },
  ],
  [
    "shows operations, their output and their events afterwards",
    async (seam) => {
      const { service } = seam;
      const uuid = await spawn(seam, "echo out; exit 2", { args: ["word"] });
      await service.follow(uuid);
      const shown = {
        ...{ uuid, kind: "instance", status: "SUCCESS", error: null, image: seam.base },
        ...{ command: "echo out; exit 2 word", exitCode: 2, timedOut: false },
        createdAt: expect.any(String),
        durationSeconds: expect.any(Number),
      };
      expect((await service.listOperations({ limit: 1000 })).find((one) => one.uuid === uuid)).toEqual(shown);
      expect(await service.getOperation(uuid)).toEqual({
        ...shown,
        ...{ hasEnded: true, resultImage: null, resultTag: null },
      });
      const { stdout, stderr } = await service.recordedOutput(uuid);
      expect([Buffer.from(stdout).toString(), stderr.length]).toEqual(["out\n", 0]);
      const bytes: Uint8Array[] = [];
      const onBytes = (_: string, chunk: Uint8Array) => void bytes.push(chunk);
      expect(await service.readEventsSoFar(uuid, { onBytes })).toBe(true);
      expect(Buffer.concat(bytes).toString()).toBe("out\n");
      expect((await service.listOperations({ limit: 1 })).length).toBe(1);
      expect(
        await service.listOperations({ kind: "instance", until: "2001-01-01T00:00:00Z", limit: 5 }),
      ).toEqual([]);
    },
  ],
  [
    "passes later input on, until the command no longer reads it",
    async (seam) => {
      const { service } = seam;
      const stdin = { bytes: Buffer.from("first "), close: false };
      const uuid = await spawn(seam, "cat", { stdin });
      const outcome = service.follow(uuid);
      expect(await service.writeInput(uuid, Buffer.from("later \u00e9"))).toBe("taken");
      expect(await service.writeInput(uuid, new Uint8Array(), true)).toBe("taken");
      expect((await outcome).stdout.text).toBe("first later \u00e9");
      expect(await service.writeInput(uuid, Buffer.from("x"))).toBe("ended");
    },
  ],
  [
    "shows a command's terminal, and none of a command that has ended",
    async (seam) => {
      const { service } = seam;
      const size = { columns: 80, rows: 24 };
      const uuid = await spawn(seam, "stty size; echo é", { terminal: size });
      expect(await textOf(await service.openTerminal(uuid))).toBe("24 80\né\n");
      await service.follow(uuid);
      expect(await service.openTerminal(uuid)).toBeUndefined();
      expect(await service.resizeTerminal(uuid, size)).toBe(false);
    },
  ],
  [
    "looks into an image, through its links",
    async (seam) => {
      const { service } = seam;
      const image = await make(
        seam,
        "mkdir -p /d/e; echo in > /d/f; chown 7:8 /d/f; ln -s /d /l; ln -s no /d/n",
      );
      expect(await service.pathType(image, "/l/f")).toBe("file");
      expect(await service.pathType(image, "/l")).toBe("directory");
      for (const path of ["/none", "/d/n", "/d/f/g"])
        expect(await service.pathType(image, path)).toBeUndefined();
      expect(await service.listEntries(image, "/l")).toEqual(
        new Map([
          ["e", { type: "directory", target: undefined }],
          ["f", { type: "file", target: undefined }],
          ["n", { type: "symlink", target: "no" }],
        ]) as never,
      );
      expect(Buffer.from((await service.readFile(image, "/l/f")) as Uint8Array).toString()).toBe("in\n");
      for (const path of ["/none", "/d"]) expect(await service.readFile(image, path)).toBeUndefined();
      const listed = await service.listFiles(image, "/d/f");
      expect(listed).toMatchObject([{ name: "f", type: "file", uid: 7, gid: 8, size: 3, target: null }]);
      expect(await textOf(await service.openFile(image, "/l/f"))).toBe("in\n");
      expect(await service.openFile(image, "/d")).toBeUndefined();
      const names: string[] = [];
      for await (const { name } of readTar(await service.openArchive(image, "/l"))) names.push(name);
      expect(names.sort()).toEqual(["./", "./e/", "./f", "./n"]);
      const digest = await service.digestFiles(image, { sources: ["/d/f"] });
      expect(await service.digestFiles(image, { sources: ["/l/f"] })).toBe(digest);
      for (const call of [
        () => service.listFiles(image, "/none"),
        () => service.openFile(image, "/none"),
        () => service.openArchive(image, "/none"),
        () => service.digestFiles(image, { sources: ["/none"] }),
      ])
        expect(await rejection(call())).toMatchObject({
          name: "NotFoundError",
          message: `/none: there is no such file in image ${image}`,
        });
      for (const call of [() => service.pathType(nobody, "/"), () => service.listFiles(nobody, "/")])
        expect(await rejection(call())).toMatchObject({
          name: "NotFoundError",
          message: `image ${nobody} is gone`,
        });
    },
  ],
  [
    "shows an image's layers and what they change",
    async (seam) => {
      const { service } = seam;
      const image = await make(seam, "echo new > /new; rm /bin/busybox");
      const layers = await service.listLayers(image);
      const [below, top] = layers.slice(-2);
      expect([below?.is_imported, top?.is_imported]).toEqual([true, false]);
      const id = top?.id ?? "";
      expect((await service.layerSizes(image)).map((layer) => layer.id)).toEqual([id]);
      const names: string[] = [];
      for await (const { name } of readTar(await service.openLayer(image, id, 0))) names.push(name);
      expect(names).toEqual(expect.arrayContaining(["new", "bin/.wh.busybox"]));
      const summary = (await service.summarizeChanges(image)).at(-1);
      expect(summary).toMatchObject({ id, added: { files: 1, bytes: 4 }, deleted: { files: 1 } });
      const { changes, total } = await service.listChanges(image, id, 1);
      expect([changes.length, total]).toEqual([1, 2]);
      expect(changes[0]).toMatchObject({ kind: "deleted", path: "/bin/busybox", type: "file" });
      expect(await rejection(service.listChanges(image, "none", undefined))).toBeInstanceOf(NotFoundError);
      expect(await rejection(service.openLayer(image, "none", 0))).toBeInstanceOf(NotFoundError);
    },
  ],
  [
    "reads trees and packs layers here, if the service is in this process",
    async (seam) => {
      const { service, directory } = seam;
      const image = await make(seam, "mkdir -p /d/e; echo in > /d/f; ln -s f /d/l");
      const layer = (await service.listLayers(image)).at(-1)?.id ?? "";
      const path = join(directory, `packed-${crypto.randomUUID()}`);
      writeFileSync(path, "");
      const packed = await service.packLayer(image, layer, {
        ...{ path, position: 0, clampTo: undefined, compression: "none" },
        onRead: () => undefined,
      });
      const tree = await service.openTree(image, "/d");
      if (!service.isInThisProcess) return expect([packed, tree]).toEqual([undefined, undefined]);
      const bytes = await Bun.file(path).bytes();
      expect(packed).toMatchObject({ size: bytes.length, digest: `sha256:${sha256Of(bytes)}` });
      const names: string[] = [];
      for await (const { name } of readTar(new Blob([bytes]).stream())) names.push(name);
      expect(names).toContain("d/f");
      const entries = tree && (await Array.fromAsync(tree, ({ name, type }) => [name, type]));
      expect(entries).toEqual([
        ["e", "directory"],
        ["f", "file"],
        ["l", "symlink"],
      ]);
      for (const wrong of ["/d/f", "/none"]) expect(await service.openTree(image, wrong)).toBeUndefined();
      expect(await service.openTree(nobody, "/")).toBeUndefined();
    },
  ],
  [
    "knows a declared image, whose layers are elsewhere",
    async ({ service, base }) => {
      const [layer] = await service.listLayers(base);
      if (layer?.blob === undefined) throw new Error("the base has no blob");
      const request = { source: "docker://127.0.0.1:1/nothing", layers: [layer.blob], config: { Env: [] } };
      const declared = await service.declareImage(request);
      expect(declared).toEqual({ image: expect.any(String), missing: 0 });
      expect(await service.declareImage(request)).toEqual(declared);
      expect(await service.probeImage(declared.image)).toBe(true);
      const wrong = { ...request, layers: [{ ...layer.blob, media_type: "text/plain" }] };
      expect(await rejection(service.declareImage(wrong))).toMatchObject({
        message: expect.stringContaining("layers[0].media_type is not that of a layer"),
      });
    },
  ],
  [
    "says what it can do, and what its client may do",
    async ({ service }) => {
      const extensions = await service.capabilities.extensions();
      for (const name of ["copies", "entries", "mounts", "configure", "layers"])
        expect(extensions).toContain(name);
      expect(await service.capabilities.takesUserNumbers()).toBe(true);
      expect(await service.capabilities.maxTimeoutSeconds()).toBeGreaterThan(3600);
      expect((await service.whoami()).permissions).toContain("spawn");
    },
  ],
];
