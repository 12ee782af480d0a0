import { describe, expect, test } from "bun:test";
import { makeLayout } from "../../../src/engine/layout.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";
import { expectRefusal } from "../refused-request.ts";

const { engine, base } = await openSharedEngine();

test("the extensions are announced", async () => {
  const { extensions } = await engine.json<{ extensions: string[] }>("GET", "/v1/whoami");
  expect(extensions).toEqual(expect.arrayContaining(["copies", "file-times", "hard-links"]));
});

const copy = { image: "BASE", sources: ["/etc/passwd"], destination: "/p" };

test.each<[string, object, number, string]>([
  ["an object as copies", { copies: copy }, 400, "copies must be a list"],
  ["an unknown field", { copies: [{ ...copy, from: 1 }] }, 400, "copies[0].from is not a known field"],
  ["no sources", { copies: [copy, { ...copy, sources: [] }] }, 400, "copies[1]: sources must not be empty"],
  [
    "a relative destination",
    { copies: [{ ...copy, destination: "p" }] },
    400,
    "copies[0]: destination must be an absolute path",
  ],
  [
    "a NUL",
    { copies: [{ ...copy, sources: ["/\0"] }] },
    400,
    "copies[0]: sources must not contain a NUL character",
  ],
  [
    "an owner that is not a number",
    { copies: [{ ...copy, uid: "root" }] },
    400,
    "copies[0]: uid must be a whole number",
  ],
  [
    "an invalid mode",
    { copies: [{ ...copy, chmod: "9" }] },
    400,
    "copies[0]: --chmod=9 is not a valid file mode",
  ],
  ["an invalid pattern", { copies: [{ ...copy, exclude: ["["] }] }, 400, "copies[0]: --exclude=["],
  ["an unknown image", { copies: [{ ...copy, image: "nobody" }] }, 404, "there is no image nobody"],
  [
    "an invalid time",
    { files: { "/a": { uuid: "UUID", mtime: "now" } } },
    400,
    "mtime must be a number of seconds",
  ],
  [
    "a hard link at a relative path",
    { files: { "/a": { uuid: "UUID", links: ["/b", "c"] } } },
    400,
    'files["/a"].links[1] must be the absolute path of a file',
  ],
])("%s is refused", (_, change, status, message) =>
  expectRefusal(engine, { image: base, ...change }, status, message),
);

test("the operation's record has its copies, and no command", async () => {
  const copies = [{ ...copy, image: base }];
  const { operation, exitCode, stdout } = await engine.run(base, "", { copies });
  expect(operation.metadata).toMatchObject({ command: "", copies });
  expect([exitCode, stdout]).toEqual([0, ""]);
  const events = await engine.events(operation.uuid);
  expect(events[0]?.data).toMatchObject({ runtime_path: "none" });
  const types = events.map(({ type }) => type);
  expect(types).toEqual(["init", "shutdown", "completion"]);
});

test("files with times are placed before copies, through the image's links and with new parents", async () => {
  const linked = (await engine.run(base, "mkdir /real; ln -s /real /link")).image ?? "";
  const { uuid } = await engine.upload("content");
  const file = { uuid, uid: 5, gid: 6, mode: "0640", mtime: 981_173_106.5 };
  for (const command of ["", "true"]) {
    const { image } = await engine.run(linked, command, {
      files: { "/link/a": file, "/made/for/b": file, "/etc/passwd": file },
      copies: [{ image: base, sources: ["/etc/passwd"], destination: "/made/for/b" }],
    });
    const shown = await engine.run(
      image ?? "",
      "stat -c '%a %u:%g %Y %n' /real/a /made/for /made/for/b; cat /etc/passwd",
    );
    expect(shown.stdout).toBe(
      "640 5:6 981173106 /real/a\n755 0:0 TIME /made/for\n644 0:0 1704067200 /made/for/b\ncontent".replace(
        "TIME",
        /\d+(?= \/made\/for\n)/.exec(shown.stdout)?.[0] ?? "",
      ),
    );
  }
});

test("an image that is copied from is in use until the operation ends", async () => {
  const source = (await engine.run(base, "touch /source")).image ?? "";
  const { imagesInUse } = await import("../../../src/engine/records/operations.ts");
  const { openDatabase } = await import("../../../src/database.ts");
  const { migrations } = await import("../../../src/engine/engine-directory.ts");
  const started = await engine.start({
    image: base,
    command: "read line",
    stdin: { value: "", encoding: "ascii", close: false } as never,
    copies: [{ image: source, sources: ["/source"], destination: "/" }],
  });
  const database = openDatabase(`${engine.directory}/engine.db`, migrations);
  const records = { database, layout: makeLayout(engine.directory) };
  expect(imagesInUse(records)).toEqual(new Set([base, source]));
  await engine.fetch("DELETE", `/v1/operations/${started.uuid}`);
  await engine.finish(started);
  expect(imagesInUse(records)).toEqual(new Set());
  database.close();
});

describe("the digest of a selection", () => {
  const digest = async (image: string, body: object) =>
    (await engine.json<{ digest: string }>("POST", `/v1/inspect/${image}/digest`, body)).digest;
  const make = async (command: string) => (await engine.run(base, command)).image ?? "";
  const tree = "mkdir /s /s/d; echo a > /s/a; echo b > /s/d/b; ln -s a /s/l";

  test("is the same for equal files, with other times and at other paths", async () => {
    const one = await digest(await make(tree), { sources: ["/s"] });
    expect(one).toMatch(/^[0-9a-f]{64}$/);
    expect(
      await digest(await make(`${tree}; touch -d '2001-01-01 00:00:00' /s/* /s`), { sources: ["/s"] }),
    ).toBe(one);
    expect(await digest(await make(tree.replaceAll("/s", "/other")), { sources: ["/other"] })).toBe(one);
    expect(await digest(await make(`${tree}; touch /s/d/x`), { sources: ["/s"], exclude: ["d/x"] })).toBe(
      one,
    );
  });

  test.each([
    ["a content", "echo c > /s/d/b"],
    ["a mode", "chmod 600 /s/a"],
    ["an owner", "chown 1 /s/d"],
    ["a link", "ln -sf d /s/l"],
    ["a name", "mv /s/a /s/c"],
    ["an empty directory", "mkdir /s/e"],
    ["names of one file", "cp -p /s/a /s/x; rm /s/a; ln /s/x /s/a"],
  ])("changes with %s", async (_, change) => {
    const [one, other] = [await make(tree), await make(`${tree}; ${change}`)];
    expect(await digest(one, { sources: ["/s"] })).not.toBe(await digest(other, { sources: ["/s"] }));
  });

  test.each([
    ["without sources is refused", {}, 400],
    ["with an unknown field is refused", { sources: ["/s"], destination: "/t" }, 400],
    ["of a missing source is 404", { sources: ["/nothing"] }, 404],
  ])("%s", async (_, body, status) => {
    expect((await engine.fetch("POST", `/v1/inspect/${base}/digest`, body)).status).toBe(status);
  });
});
