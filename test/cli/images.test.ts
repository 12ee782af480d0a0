/** `bough images` and `bough images remove` on an engine that has built something. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { shortId } from "../../src/terminal/short-id.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { type Ended, runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const environment = { BOUGH_HOME: temporaryDirectory() };
const workingDirectory = temporaryDirectory();
const bough = (line: string, columns?: number): Promise<Ended> =>
  runBough(["--local", ...line.split(" ")], {
    ...{ workingDirectory, environment },
    ...(columns === undefined ? {} : { terminalColumns: columns }),
  });
const ids = async (line: string) => (await bough(`${line} -q`)).stdout.trimEnd().split("\n");

let base: string;
let built: string;

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  base = (await bough(`images import ${layout} --tag busybox:1 -q`)).stdout.trimEnd();
  writeFiles(workingDirectory, { Dockerfile: "FROM busybox:1\nRUN touch /a\nRUN touch /b\n" });
  built = (await bough("build -q")).stdout.trimEnd();
  await bough("-S work use busybox:1");
  await bough("-S work run -s -- date>/date");
});

afterAll(() => bough("engine prune --all -y"));

describe("bough images", () => {
  test("shows images with tags and current images of sessions, the newest first; --all shows every layer", async () => {
    const [worked, ...others] = await ids("images");
    expect(others).toEqual([built, base]);
    const all = await ids("images --all");
    expect(all).toHaveLength(4);
    expect(all).toEqual(expect.arrayContaining([worked, built, base]));
  });

  test("shows short ids, sizes and ages; --wide shows whole ids and times", async () => {
    const { stdout } = await bough("images");
    expect(stdout.split("\n")[0]).toMatch(/^IMAGE +TAG +SESSION +SIZE +CREATED$/);
    expect(stdout).toMatch(
      new RegExp(`^${shortId(built)} +- +build:\\w{16} +\\d.* [kM]B +\\d+ s(in)? ago$`, "m"),
    );
    expect(stdout).toMatch(new RegExp(`^${shortId(base)} +busybox:1 +- +\\d`, "m"));
    const wide = (await bough("images --wide", 40)).stdout;
    expect(wide).toMatch(new RegExp(`^${built} +- +build:\\w{16} .* \\d{4}-\\d\\d-\\d\\dT\\S+Z$`, "m"));
    expect(JSON.parse((await bough("images -f json")).stdout)[2]).toMatchObject({
      ...{
        uuid: base,
        tag: "busybox:1",
        sessions: [],
        size: expect.any(Number),
        own_size: expect.any(Number),
      },
    });
  });

  test.each(["images --all", "session list", "ps --all", "session show work"])(
    "%s fits 80 columns and 40",
    async (line) => {
      for (const columns of [80, 40]) {
        const rows = (await bough(line, columns)).stdout.trimEnd().split("\n");
        expect(Math.max(...rows.map((row) => Bun.stringWidth(row)))).toBeLessThanOrEqual(columns);
      }
    },
  );
});

test("images NAME lists the tags of that name, as docker does", async () => {
  const tags = async (line: string) =>
    JSON.parse((await bough(`${line} -f json`)).stdout).map(({ tag }: { tag: string }) => tag);
  const all: string[] = await tags("images --tagged");
  const [tag = ""] = all;
  const name = tag.slice(0, tag.lastIndexOf(":"));
  expect(await tags(`images ${name}`)).toEqual(all.filter((each) => each.startsWith(`${name}:`)));
  expect(await tags(`images ${tag}`)).toEqual([tag]);
  expect(await tags("images nothing-of-this-name")).toEqual([]);
});

describe("the first digits of an id name an image to", () => {
  test.each([
    ["-S other use ID", /other +main/],
    ["run --use ID -D -- cat /etc/passwd", /root/],
    ["ls ID:/etc", /passwd/],
    ["tag ID named:1", /named:1/],
    ["images export ID tar:-", /root:/],
    ["untag ID", /named:1/],
  ])("%s", async (line, expected) => {
    const { exitCode, stdout, stderr } = await bough(line.replace("ID", shortId(built)));
    expect({ exitCode, stdout, stderr }).toMatchObject({
      exitCode: 0,
      stdout: expect.stringMatching(expected),
    });
  });

  test("unless they are fewer than 8 or those of no image", async () => {
    for (const digits of [built.slice(0, 7), "ffffffffff"])
      expect((await bough(`-S other use ${digits}`)).stderr).toContain(`has no image ${digits}`);
  });
});

describe("Docker's other name of a tag", () => {
  const full = "index.docker.io/library/busybox:1";
  test.each([
    [`-S named use ${full}`, /named +main/],
    [`run -D ${full} cat /etc/passwd`, /root/],
    [`ls ${full}:/etc`, /passwd/],
    [`inspect ${full}`, /busybox/],
    [`images export ${full} tar:-`, /root:/],
    [`tag ${full} team/app:1`, /team\/app:1/],
    ["ls docker.io/team/app:1:/etc", /passwd/],
  ])("names its image: %s", async (line, expected) => {
    const { exitCode, stdout } = await bough(line);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: expect.stringMatching(expected) });
  });

  test("is one that FROM and COPY --from take, also if it is the full one that is stored", async () => {
    await bough(`tag ${base} docker.io/library/full:1`);
    const context = temporaryDirectory();
    const dockerfile = `FROM docker.io/library/busybox:1\nCOPY --from=full:1 /etc/passwd /x\nRUN true\n`;
    writeFiles(context, { Dockerfile: dockerfile });
    expect(await bough(`build --docker ${context}`)).toMatchObject({ exitCode: 0 });
    await bough("untag docker.io/library/full:1");
  });

  test.each(["rmi", "untag", "rmi --force"])("%s removes nothing by it, and says the tag", async (line) => {
    const { exitCode, stderr } = await bough(`${line} docker.io/team/app:1`);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("has no image docker.io/team/app:1\nDid you mean team/app:1?");
    expect((await bough("inspect team/app:1")).exitCode).toBe(0);
  });

  afterAll(async () => {
    await bough("untag team/app:1");
    await bough("session delete named");
  });
});

describe("bough images remove", () => {
  test("removes only the tag if the image has others, otherwise the image, too", async () => {
    for (const name of ["gone:1", "gone:2"]) await bough(`tag ${built} ${name}`);
    expect((await bough(`rmi ${built.slice(0, 8)}`)).stderr).toContain("has several tags: gone:1, gone:2");
    expect((await bough("rmi gone:1")).stdout).toContain("the image stays: it has other tags");
    await bough("session delete other");
    expect(JSON.parse((await bough("images remove gone:2 -f json")).stdout)).toEqual([
      {
        image: built,
        untagged: ["gone:2"],
        removed: true,
        freedBytes: expect.any(Number),
        cachedBytes: expect.any(Number),
      },
    ]);
    expect(await ids("images --all")).not.toContain(built);
    // No session names it any more, and the next build makes it again like any layer that is missing.
    const [session] = JSON.parse((await bough("session list --filter build: -f json")).stdout);
    const show = async () => (await bough(`session show ${session.key} --wide`)).stdout;
    expect(await show()).not.toContain(built);
    const again = await bough("build");
    expect(again.stderr).toMatch(/^\[INFO\] 3 steps, 1 of 2 layers cached/m);
    expect(again.stderr).not.toContain("[WARN]");
  });

  test("removes the current image of a session with --force only", async () => {
    const [image = ""] = await ids("-S work use");
    const refused = await bough(`rmi ${image}`);
    expect(refused.stderr).toContain(`image ${image} is used by session work on its branch main`);
    expect((await bough(`rmi -f ${image} nothing:1`)).stderr).toContain("has no image nothing:1");
    expect(await ids("images --all")).not.toContain(image);
  });
});

describe("an image and an operation are named by the service's own spelling of their id,", () => {
  test.each([
    ["a UUID in capitals", "3F2504E0-4F89-11D3-9A0C-0305E82C3301"],
    ["a UUID without dashes", "3f2504e04f8911d39a0c0305e82c3301"],
    ["another id", "img_7"],
  ])("%s", async (_, id) => {
    const fake = await startFakeService({
      intercept({ url }) {
        const { pathname, searchParams } = new URL(url);
        const isListed = !searchParams.has("tag") && (searchParams.get("uuid") ?? id) === id;
        if (pathname === "/v1/images") return Response.json({ images: isListed ? [{ uuid: id }] : [] });
        if (pathname === `/v1/images/${id}/tag`) return Response.json({ uuid: id, tag: "app:1" });
        if (pathname === "/v1/operations") return Response.json([{ uuid: id, status: "SUCCESS" }]);
        if (pathname === `/v1/operations/${id}`) return Response.json({ uuid: id, status: "SUCCESS" });
        return Response.json({ error: "there is no such thing" }, { status: 404 });
      },
    });
    const ask = (...words: string[]) =>
      runBough(["--url", fake.url, ...words], {
        ...{ workingDirectory, environment: { BOUGH_HOME: temporaryDirectory() } },
      });
    try {
      for (const given of [id, id.slice(0, 10)]) {
        expect((await ask("tag", given, "app:1")).stdout).toContain(id);
        expect((await ask("show", given)).stdout).toContain(id);
      }
    } finally {
      await fake.close();
    }
  });
});

test("images and ps list everything on a service with one entry to a page", async () => {
  const service = await startFakeService();
  service.intercept = ({ url, headers }, { path, query }) => {
    if ((path !== "/v1/images" && path !== "/v1/operations") || query.limit === "1") return undefined;
    return service.handle(new Request(url.replace(/limit=\d+/, "limit=1"), { headers }));
  };
  const call = async (...words: string[]) => {
    const home = { BOUGH_HOME: temporaryDirectory() };
    const line = ["--url", service.url, "--token", "t", ...words, "-q"];
    return (await runBough(line, { workingDirectory, environment: home })).stdout.trimEnd().split("\n");
  };
  const images = ["app:1", "app:2", "app:3"].map((tag) => service.state.addImage(tag));
  expect((await call("images")).toSorted()).toEqual(images.toSorted());
  for (const word of ["one", "two", "three"]) await call("run", "-D", "app:1", "echo", word);
  expect(await call("ps", "--all")).toHaveLength(3);
  await service.close();
});

test("images asks for the sizes of what it shows only", async () => {
  const extensions = ["image-sizes", "image-uuids"];
  const service = await startFakeService({ extensions });
  const options = { workingDirectory, environment: { BOUGH_HOME: temporaryDirectory() } };
  const inService = ["--url", service.url, "--token", "t0ken-t0ken"];
  const tagged = service.state.addImage("app:1");
  await runBough([...inService, "-S", "one", "use", "app:1"], options);
  await runBough([...inService, "-S", "one", "run", "-s", "--", "true"], options);
  service.clearRequests();
  const { stdout } = await runBough([...inService, "images", "-f", "json"], options);
  const shown: { uuid: string; tag: string | null; sessions: string[] }[] = JSON.parse(stdout);
  expect(shown).toContainEqual(expect.objectContaining({ uuid: tagged, tag: "app:1" }));
  const [ofSession] = shown.filter(({ sessions }) => sessions.length > 0);
  const asked = service
    .requestsTo("GET /v1/images")
    .map(({ query: { tagged, uuid } }) => (tagged === "1" ? "tagged" : uuid));
  expect(new Set(asked)).toEqual(new Set(["tagged", ofSession?.uuid]));
  await service.close();
});

test("a service that cannot remove images may remove tags", async () => {
  const service = await startFakeService();
  const words = ["--url", service.url, "--token", "t0ken-t0ken", "rmi", "app:1"];
  const { stderr } = await runBough(words, { workingDirectory, environment });
  expect(stderr).toContain("does not support removing images\n`bough untag TAG` removes a tag.");
  await service.close();
});

describe("on a service with only the specification's calls", () => {
  const cannotShow = "the service cannot show files of images: it does not support GET /v1/inspect/";
  const elsewhere = "build it there, with `bough --local build`.";
  test.each<{ line: string; error: string; hint: string; works?: string[] }>([
    { line: "ls app:1:/etc", error: cannotShow, hint: "app:1 -- ls -la /etc", works: ["ls", "-la", "/etc"] },
    { line: "ls", error: cannotShow, hint: "-S default run -D -- ls -la /`", works: ["ls", "-la", "/"] },
    { line: "cat app:1:/etc/a", error: cannotShow, hint: "app:1 -- cat /etc/a`", works: ["cat", "/etc/a"] },
    { line: "cp app:1:/a .", error: cannotShow, hint: "cat /a > FILE\n", works: ["cat", "/a"] },
    { line: "cp app:1:/a -", error: cannotShow, hint: "tar -cf - -C /a . > FILE.tar\n" },
    { line: "images export app:1 tar:a.tar", error: cannotShow, hint: elsewhere },
    { line: "images export app:1 oci:a", error: cannotShow, hint: elsewhere },
    { line: "push app:1 localhost:1/app:1", error: cannotShow, hint: elsewhere },
    { line: "rmi app:1", error: "does not support removing images", hint: "images\n" },
  ])("bough $line names what the service lacks, and what works instead", async (row) => {
    const service = await startFakeService({ sixCallsOnly: true });
    try {
      service.state.addImage("app:1");
      const inService = ["--url", service.url, "--token", "t0ken-t0ken"];
      const options = {
        workingDirectory: temporaryDirectory(),
        environment: { BOUGH_HOME: temporaryDirectory() },
      };
      await runBough([...inService, "use", "app:1"], options);
      const { exitCode, stderr } = await runBough([...inService, ...row.line.split(" ")], options);
      expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining(row.error) });
      expect(stderr).toContain(row.hint);
      expect(stderr).not.toContain("untag");
      if (row.works === undefined) return;
      // The line of the hint, as a user would paste it.
      const [, pasted = ""] = /bough (--url [^`>\n]+)/.exec(stderr) ?? [];
      const words = ["--token", "t0ken-t0ken", ...pasted.trim().split(" ")];
      expect(await runBough(words, options)).toMatchObject({ exitCode: 0 });
      const [command, ...args] = row.works;
      expect(service.state.instances.at(-1)).toMatchObject({
        image: "tag:app:1",
        command,
        args,
      });
    } finally {
      await service.close();
    }
  });
});
