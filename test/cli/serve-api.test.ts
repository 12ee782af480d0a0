/**
 * The calls of a published client of the service's API, one after the other, to `bough serve` over HTTP with compression.
 */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { isTerminal, type OperationRecord } from "../../src/service/wire/operation.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type ServerProcess, startServer } from "../support/server.ts";

const environment = { BOUGH_HOME: "" };
let server: ServerProcess;
let base = "";

beforeAll(async () => {
  environment.BOUGH_HOME = temporaryDirectory();
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const words = ["--local", "-q", "images", "import", layout, "--tag", "busybox:1"];
  base = (await runBough(words, { workingDirectory: "/", environment })).stdout.trim();
  server = await startServer(environment);
});
afterAll(() => server.stop());

async function call(method: string, path: string, body?: unknown, headers: Record<string, string> = {}) {
  const isBytes = body instanceof Uint8Array;
  return fetch(`${server.url}/v1/${path}`, {
    method,
    headers: { Authorization: `Bearer ${server.token}`, "Accept-Encoding": "gzip", ...headers },
    ...(body === undefined ? {} : { body: isBytes ? body : JSON.stringify(body) }),
  });
}

/** The fields that tests read; each response has some of them. */
interface ResponseBody {
  uuid: string;
  sha256: string;
  files: Record<string, unknown>[];
  images: { uuid: string; tag: string | null }[];
}

async function json<Body = ResponseBody>(method: string, path: string, body?: unknown) {
  const response = await call(method, path, body);
  const answer = (await response.json()) as Body;
  return { status: response.status, body: answer, location: response.headers.get("location") };
}

async function waitFor(operation: string): Promise<OperationRecord> {
  for (;;) {
    const { body } = await json<OperationRecord>("GET", `operations/${operation}`);
    if (isTerminal(body.status)) return body;
    await Bun.sleep(10);
  }
}

const spawn = (request: object) =>
  json("POST", "instances", { image: base, shell: true, cwd: "/", disposable: false, ...request });

interface Frame {
  id: number;
  spid: number;
  type: string;
  data: Record<string, unknown>;
}

async function readEvents(operation: string, lastEventId?: number): Promise<Frame[]> {
  const headers = lastEventId === undefined ? {} : { "Last-Event-Id": String(lastEventId) };
  const response = await call("GET", `operations/${operation}/events?follow=true`, undefined, headers);
  expect(response.headers.get("content-type")).toContain("text/event-stream");
  const frames = (await response.text()).split("\n\n").flatMap((frame) => {
    const data = /^data: (.*)$/m.exec(frame)?.[1];
    return data === undefined ? [] : [JSON.parse(data) as Frame];
  });
  return frames;
}

test("whoami has permissions and limits", async () => {
  const { status, body } = await json("GET", "whoami");
  expect(status).toBe(200);
  expect(body).toMatchObject({
    permissions: expect.any(Object),
    limits: { instance_max_timeout: expect.any(Number) },
  });
});

test("uploads, spawns with the file, follows events to completion, resumes them, reads the record", async () => {
  const content = new TextEncoder().encode("uploaded\n");
  const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
  expect((await call("HEAD", `files/${sha256}`)).status).toBe(404);
  const stored = await json("POST", "files", content);
  expect(stored).toMatchObject({ status: 201, body: { sha256, size: 9 } });
  expect((await call("HEAD", `files/${sha256}`)).status).toBe(200);
  expect((await json("GET", `files/${sha256}`)).body).toMatchObject({
    uuid: stored.body.uuid,
    sha256,
    size: 9,
  });
  expect((await json("GET", `files?sha256=${sha256}`)).body.files).toHaveLength(1);

  const files = { "/in/put.txt": { uuid: stored.body.uuid, uid: 5, gid: 6, mode: "0640" } };
  const command = "cat /in/put.txt; sleep 0.1; stat -c '%u %g %a' /in/put.txt; echo bad >&2; exit 4";
  const spawned = await spawn({ command, files, env: { A: "1" }, timeout: 30 });
  expect(spawned.status).toBe(201);
  expect(spawned.location).toBe(`/v1/operations/${spawned.body.uuid}`);

  const events = await readEvents(spawned.body.uuid);
  expect(events.map(({ id }) => id)).toEqual([...events.map(({ id }) => id)].sort((a, b) => a - b));
  const types = events.map(({ type }) => type);
  for (const type of ["init", "spawn", "stdout", "stderr", "exit", "completion"])
    expect(types).toContain(type);
  expect(types.at(-1)).toBe("completion");
  const decode = ({ data }: Frame) =>
    Buffer.from(String(data.value), data.encoding === "base64" ? "base64" : "utf8").toString();
  expect(
    events
      .filter(({ type }) => type === "stdout")
      .map(decode)
      .join(""),
  ).toBe("uploaded\n5 6 640\n");
  expect(events.find(({ type }) => type === "exit")?.data).toMatchObject({ code: 4, timed_out: false });
  const middle = events[2]?.id ?? 0;
  expect(await readEvents(spawned.body.uuid, middle)).toEqual(events.filter(({ id }) => id > middle));

  const record = await waitFor(spawned.body.uuid);
  expect(record).toMatchObject({
    kind: "instance",
    status: "SUCCESS",
    error: null,
    metadata: { result: { state: { exit_code: 4, timed_out: false } } },
  });
  expect(record.result_image_uuid).toBe(record.result?.image ?? "");
});

test("cancelling responds with 202, sets CANCELLED, and then responds with 409", async () => {
  const { body } = await spawn({ command: "sleep 1000", disposable: true });
  expect((await call("DELETE", `operations/${body.uuid}`)).status).toBe(202);
  expect((await waitFor(body.uuid)).status).toBe("CANCELLED");
  expect((await call("DELETE", `operations/${body.uuid}`)).status).toBe(409);
});

test("downloads, archives and lists files of the resulting image", async () => {
  const { body } = await spawn({
    command: "mkdir -p /d/e; echo inside > /d/e/f; ln -s e/f /d/link; chmod 4711 /d/e/f",
  });
  const image = (await waitFor(body.uuid)).result_image_uuid;
  const inspect = (call_: string, path: string) =>
    `inspect/${image}/${call_}?path=${encodeURIComponent(path)}`;
  expect(await (await call("GET", inspect("download", "/d/e/f"))).text()).toBe("inside\n");
  expect((await call("HEAD", inspect("download", "/d/e/f"))).status).toBe(200);
  expect((await call("GET", inspect("download", "/nothing"))).status).toBe(404);
  const archive = await (await call("GET", inspect("archive", "/d"))).bytes();
  const names = Bun.spawnSync(["tar", "-tf", "-"], { stdin: archive }).stdout.toString();
  for (const name of ["e/f", "link"]) expect(names).toContain(name);
  const { files } = (await json("GET", inspect("list", "/d/e"))).body;
  expect(files).toHaveLength(1);
  expect(files[0]).toMatchObject({
    size: 7,
    uid: 0,
    gid: 0,
    is_regular: true,
    is_dir: false,
    is_symlink: false,
  });
});

test("sets, moves and removes a tag, and lists images in pages", async () => {
  const made: string[] = [];
  for (const number of [1, 2, 3]) {
    const { body } = await spawn({ command: `echo ${number} > /number` });
    made.push((await waitFor(body.uuid)).result_image_uuid ?? "");
  }
  const tagged = async (tag: string) =>
    (await json("GET", `images?tag=${tag}`)).body.images.map(({ uuid }) => uuid);
  expect((await json("PATCH", `images/${made[0]}/tag`, { tag: "paged:1" })).body).toMatchObject({
    uuid: made[0],
    tag: "paged:1",
  });
  expect(await tagged("paged:1")).toEqual(made.slice(0, 1));
  await call("PATCH", `images/${made[1]}/tag`, { tag: "paged:1" });
  expect(await tagged("paged:1")).toEqual(made.slice(1, 2));
  expect((await call("DELETE", `images/${made[1]}/tag`)).status).toBe(204);
  expect(await tagged("paged:1")).toEqual([]);

  const all = (await json("GET", "images?limit=1000")).body.images;
  const pages: ResponseBody["images"] = [];
  for (let offset = 0; offset < all.length; offset += 2) {
    pages.push(...(await json("GET", `images?limit=2&offset=${offset}`)).body.images);
  }
  expect(pages).toEqual(all);
  expect((await json("GET", "images?limit=0")).status).toBe(400);
  expect((await json("GET", "operations?kind=instance&status=SUCCESS&limit=2")).body).toHaveLength(2);
});

test("errors are JSON with the status", async () => {
  for (const [method, path, status] of [
    ["GET", "operations/00000000-0000-4000-8000-000000000000", 404],
    ["GET", "nothing", 404],
    ["DELETE", "whoami", 405],
    ["POST", "instances", 400],
  ] as const) {
    const answer = await json(method, path, method === "POST" ? {} : undefined);
    expect(answer).toMatchObject({ status, body: { error: expect.any(String), status } });
  }
});
