/** Responses made to take memory or time, or to redirect: each is refused with its address and the limit. */
import { describe, expect, onTestFinished, setDefaultTimeout, test } from "bun:test";
import { temporaryDirectory } from "../../support/bough.ts";
import { writeFiles } from "../../support/files.ts";
import {
  type Attack,
  deflatedSpaces,
  gzipHead,
  image,
  json,
  operation,
  poured,
  record,
  result,
  startHostileService,
  text,
} from "./hostile-service.ts";
import { runMeasured } from "./measured.ts";

setDefaultTimeout(120_000);

/** bough itself needs about 100 MB. */
const maxMegabytes = 450;
const maxSeconds = 100;

async function attack(words: readonly string[], attacks: Record<string, Attack>, directory?: string) {
  const service = await startHostileService(attacks);
  onTestFinished(() => service.close());
  const ended = await runMeasured(words, service.url, directory);
  expect(ended.stderr).not.toContain("bough itself failed");
  expect(ended.stderr).not.toMatch(/\n\s+at /);
  expect(ended.peakMegabytes).toBeGreaterThan(20);
  expect(ended.peakMegabytes).toBeLessThan(maxMegabytes);
  expect(ended.seconds).toBeLessThan(maxSeconds);
  return { ...ended, service };
}

function contextOf(dockerfile: string): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: dockerfile, a: "a" });
  return context;
}

const megabyte = Buffer.alloc(1024 * 1024, "x");
const members = (piece: string) => Buffer.from(piece.repeat(Math.ceil(2 ** 20 / piece.length)));
const images = ["-f", "json", "images"];
const uuid = (number: number) => `d0000000-0000-4000-8000-${String(number).padStart(12, "0")}`;
/** Responds with a page of images that no other page has. */
const page: Attack = (socket, target) => {
  const offset = Number(/offset=(\d+)/.exec(target)?.[1] ?? 0);
  const list = Array.from({ length: 1000 }, (_, index) => ({ uuid: uuid(offset + index), tag: null }));
  return json({ images: list })(socket, target);
};

/** Returns the requests for lists of images; bough also asks for the service's capabilities. */
const listings = ({ requests }: { requests: readonly string[] }) =>
  requests.filter((call) => call.startsWith("GET /v1/images"));

describe("a response to `bough images` is refused after one request:", () => {
  test.each<[attack: string, answer: Attack, message: string]>([
    [
      "3 MB of gzip, 3 GB of JSON",
      poured([gzipHead, deflatedSpaces, ""], 200, { encoding: "gzip" }),
      "responded with 200 and more than 64 MiB",
    ],
    [
      "endless JSON",
      poured(['{"images": ["', megabyte, ""], 4000),
      "responded with 200 and more than 64 MiB",
    ],
    [
      "endless spaces",
      poured(["", Buffer.alloc(2 ** 20, " "), ""], 4000),
      "responded with 200 and more than 64 MiB",
    ],
    ["nested lists", poured(["", members("["), ""], 40), "nested more than 256 deep"],
    ["nested objects", poured(["", members('{"a":'), ""], 40), "nested more than 256 deep"],
    ["millions of empty lists", poured(["[", members("[],"), "0]"], 50), "JSON of more than 4000000 values"],
    ["millions of numbers", poured(["[", members("0,"), "0]"], 50), "JSON of more than 4000000 values"],
    [
      "millions of keys",
      poured(["{", members('"__proto__":{},'), '"a":0}'], 60),
      "JSON of more than 4000000 values",
    ],
    [
      "an error of 3 GB",
      poured(["it is ", megabyte, ""], 3000, { status: "403 Forbidden" }),
      "responded with 403 Forbidden: it is xxx",
    ],
    [
      "an error of 3 MB of gzip, 3 GB of text",
      poured([gzipHead, deflatedSpaces, ""], 200, { status: "403 Forbidden", encoding: "gzip" }),
      "responded with 403 Forbidden",
    ],
    ["headers that never end", (socket) => headers(socket, 4000), "GET"],
    ["an endless redirect", text("", { Location: "/v1/images" }, "302 Found"), "redirects more than 5 times"],
    [
      "a redirect to another host",
      text("", { Location: "http://127.0.0.1:1/" }, "307 Temporary Redirect"),
      "which is not followed",
    ],
    [
      "status 429 with a Retry-After of a year",
      text("", { "Retry-After": "31536000" }, "429 Too Many Requests"),
      "responded with 429",
    ],
    [
      "a refusal for longer than there is time",
      text("", { "Retry-After": "9".repeat(400) }, "503 Service Unavailable"),
      "responded with 503",
    ],
  ])("%s", async (_, answer, message) => {
    // This service has never responded. For one that has, bough retries for a minute.
    const call = _.startsWith("headers") ? "*" : "GET /v1/images";
    const { exitCode, stderr, stdout, service } = await attack(images, { [call]: answer });
    expect(exitCode).toBe(1);
    expect(stdout).toBe("");
    expect(stderr).toContain(service.url);
    expect(stderr).toContain(message);
    expect(stderr.length).toBeLessThan(5000);
    if (!/redirect|headers|longer than there/.test(message + _)) expect(listings(service)).toHaveLength(1);
  });

  /** Sends headers of a kilobyte each. */
  async function headers(socket: Parameters<Attack>[0], count: number): Promise<void> {
    socket.write("HTTP/1.1 200 OK\r\n");
    for (let index = 0; index < count && !socket.destroyed; index++) {
      socket.write(`X-${index}: ${"x".repeat(1000)}\r\n`);
      if (index % 100 === 0) await Bun.sleep(1);
    }
    socket.end("\r\n{}");
  }

  test("endless pages", async () => {
    const { exitCode, stderr, service } = await attack(images, { "GET /v1/images": page });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`GET ${service.url}/v1/images does not end after 200000 images`);
    expect(listings(service)).toHaveLength(200);
  });
});

test("a list ends at a page that repeats the one before", async () => {
  const list = Array.from({ length: 1000 }, (_, index) => ({ uuid: uuid(index), tag: `t:${index}` }));
  const { exitCode, stdout, service } = await attack(images, { "GET /v1/images": json({ images: list }) });
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout)).toHaveLength(1000);
  expect(listings(service)).toHaveLength(2);
});

describe("a build succeeds by the operation's record, despite events with", () => {
  const events = `GET /v1/operations/${operation}/events`;
  const type = "text/event-stream";
  let id = 0;
  const frames = (count: number) =>
    Array.from({ length: count }, () => {
      const data = {
        id: ++id,
        spid: 1,
        type: "stdout",
        data: { value: "x".repeat(10_000), encoding: "ascii" },
      };
      return `id: ${id}\ndata: ${JSON.stringify(data)}\n\n`;
    }).join("");
  const sameFrames = Buffer.from(
    `data: {"type":"stdout","data":{"value":"${"x".repeat(10_000)}","encoding":"ascii"}}\n\n`.repeat(100),
  );

  test.each<[attack: string, answer: Attack, message: string]>([
    ["an endless line", poured(["data: ", megabyte, ""], 4000, { type }), "an event of more than 16 MiB"],
    [
      "an endless event",
      poured(["", Buffer.from("data: x\n".repeat(100_000)), ""], 4000, { type }),
      "an event of more than 16 MiB",
    ],
    [
      "an endless line without a field",
      poured(["", megabyte, ""], 4000, { type }),
      "events of more than 1 GiB",
    ],
    ["an endless comment", poured([":", megabyte, ""], 4000, { type }), "events of more than 1 GiB"],
    ["2.5 GB of output", poured(["", sameFrames, ""], 2500, { type }), "events of more than 1 GiB"],
    [
      "3 MB of gzip, 3 GB of events",
      poured([gzipHead, deflatedSpaces, ""], 200, { type, encoding: "gzip" }),
      "events of more than 1 GiB",
    ],
    ["an event of nested lists", poured(["data: ", members("["), "\n\n"], 12, { type }), ""],
    ["an event of millions of lists", poured(["data: [", members("[],"), "0]\n\n"], 12, { type }), ""],
    ["an id of a megabyte", poured(["id: ", megabyte, "\ndata: {}\n\n"], 1, { type }), ""],
    [
      "ids that are invalid in a header",
      poured(["", 'id: \u0001\u00ff\ndata: {"type":"stdout","data":{"value":"x"}}\n\n', ""], 9, { type }),
      "",
    ],
    [
      "ids of 20 digits",
      poured(["", 'id: 99999999999999999999\ndata: {"type":"stdout","data":{"value":"x"}}\n\n', ""], 9, {
        type,
      }),
      "",
    ],
    ["status 404 and 3 GB of text", poured(["", megabyte, ""], 3000, { status: "404 Not Found" }), ""],
    ["output that is sent again", poured(["", frames(100), ""], 1, { type }), ""],
  ])("%s", async (_, answer, message) => {
    const context = contextOf(`FROM ${image}\nRUN make\n`);
    const { exitCode, stderr, stdout, service } = await attack(["build", "."], { [events]: answer }, context);
    expect({ exitCode, stdout }).toMatchObject({ exitCode: 0, stdout: expect.stringContaining(result) });
    if (message !== "") expect(stderr).toContain(message);
    if (message !== "") expect(service.requests.filter((call) => call === events)).toHaveLength(1);
  });
});

describe("invalid ids", () => {
  test.each<[attack: string, id: unknown]>([
    ["..", ".."],
    ["an id with a line end", "a\n[INFO] all is well"],
    ["an id of a megabyte", "x".repeat(1_000_000)],
    ["an id with control sequences", "\u001b[2J"],
    ["a list", ["a"]],
    ["an object", { toString: "x" }],
    ["true", true],
    ["null", null],
  ])("the id of an operation is refused: %s", async (_, id) => {
    const context = contextOf(`FROM ${image}\nRUN make\n`);
    const attacks = { "POST /v1/instances": json({ uuid: id, operation_uuid: id }) };
    const { exitCode, stderr, service } = await attack(["build", "."], attacks, context);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("without the operation's id");
    expect(stderr).not.toMatch(/\u001b|^\[INFO\] all is well/m);
    expect(service.requests.filter((call) => !/images|instances|operations$|whoami/.test(call))).toEqual([]);
  });

  test("an id with slashes is escaped in paths", async () => {
    const context = contextOf(`FROM ${image}\nRUN make\n`);
    const escaped = "GET /v1/operations/..%2F..%2F..%2Fetc%2Fpasswd%252Fx";
    const spawned = json({ uuid: "../../../etc/passwd%2Fx" });
    const attacks = { "POST /v1/instances": spawned, [escaped]: json(record()) };
    const { service } = await attack(["build", "."], attacks, context);
    expect(service.requests).toContain(escaped);
  });

  test("images with invalid ids are left out of a list", async () => {
    const list = [
      { uuid: "..", tag: "a:1" },
      { uuid: "x\ny" },
      { uuid: 7 },
      null,
      [],
      { uuid: image, tag: "b:1" },
    ];
    const { stdout } = await attack(images, { "GET /v1/images": json({ images: list }) });
    expect(JSON.parse(stdout).map((each: { uuid: string }) => each.uuid)).toEqual([image]);
  });
});

describe("other responses", () => {
  const list = `GET /v1/inspect/${image}/list`;
  const download = `GET /v1/inspect/${image}/download`;

  test("an endless /etc/passwd is refused", async () => {
    const context = contextOf(`FROM ${image}\nCOPY --chown=somebody a /a\n`);
    const attacks = {
      [download]: poured(["root:x:0:0::/:\n", megabyte, ""], 4000, { type: "application/octet-stream" }),
    };
    const { exitCode, stderr } = await attack(["build", "."], attacks, context);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("/etc/passwd in the image is too large to look up names in it");
  });

  test.each<[attack: string, chown: string, table: string, message: string]>([
    [
      "a user of a negative group",
      "mallory",
      "mallory:x:1000:-1::/:/bin/sh\n",
      "the user mallory has no group in the image",
    ],
    ["a user without a group", "mallory", "mallory:x:1000\n", "the user mallory has no group in the image"],
    ["a negative user", "mallory", "mallory:x:-1:0::/:/bin/sh\n", "no user mallory in the image"],
    ["a user with the id 2^32", "mallory", "mallory:x:4294967296:0::/:/\n", "no user mallory in the image"],
    ["a negative group", "0:bad", "bad:x:-1:\n", "no group bad in the image"],
    ["the number 2^32", "4294967296", "", "4294967296 is out of range for a uid or gid"],
  ])("COPY --chown of %s is refused", async (_, chown, table, message) => {
    const context = contextOf(`FROM ${image}\nCOPY --chown=${chown} a /a\n`);
    const attacks = { [list]: json({ files: [] }), [download]: text(table) };
    const { stderr, service } = await attack(["build", "."], attacks, context);
    expect(stderr).toContain(message);
    expect(service.requests).not.toContain("POST /v1/instances");
  });

  test("a list of files may have numbers out of range and names of the prototype", async () => {
    const files = [
      { path: "a", is_regular: true, mtime: 1e300, size: -1e300, mode: 1e300, uid: 1.5, gid: "x" },
      { path: "__proto__", is_dir: true, mtime: -8.64e15 },
      { path: "constructor", is_symlink: true, symlink_to: "__proto__" },
    ];
    for (const format of ["table", "json"]) {
      const { exitCode, stdout } = await attack(["-f", format, "ls", `${image}:/`], {
        [list]: json({ files }),
      });
      expect(exitCode).toBe(0);
      expect(stdout).toContain("__proto__");
    }
  });

  test.each<[code: number | string, exitCode: number]>([
    [256, 1],
    [-1, 1],
    [1e300, 1],
    [2.5, 1],
    ["3", 3],
    [0, 0],
  ])("an operation's exit code %p becomes %p", async (code, expected) => {
    const ended = record({ metadata: { result: { state: { exit_code: code } } } });
    const words = ["run", "-D", "--use", image, "--", "true"];
    const { exitCode } = await attack(words, { [`GET /v1/operations/${operation}`]: json(ended) });
    expect(exitCode).toBe(expected);
  });

  test("keys of the prototype in an image's configuration change nothing", async () => {
    const config = `{"env": {"__proto__": "x", "constructor": "y", "A": "b"}, "shell": {"__proto__": []}, "__proto__": {"user": "z"}}`;
    const body = `{"images": [{"uuid": "${image}", "tag": "base:1", "config": ${config}, "__proto__": {"tag": "other:1"}}]}`;
    const context = contextOf("FROM base:1\nRUN echo $A\n");
    const { exitCode } = await attack(["build", "."], { "GET /v1/images": text(body) }, context);
    expect(exitCode).toBe(0);
  });

  test("an operation's error of 40 MB is cut", async () => {
    const error = "no image ".repeat(4_500_000);
    const context = contextOf(`FROM ${image}\nRUN make\n`);
    const ended = json(record({ status: "FAILED", error, result_image_uuid: null }));
    const { exitCode, stderr } = await attack(
      ["build", "."],
      { [`GET /v1/operations/${operation}`]: ended },
      context,
    );
    expect(exitCode).toBe(1);
    expect(stderr.length).toBeLessThan(200_000);
  });
});
