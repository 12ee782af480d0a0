/** Copies from an image on the engine, without its extension for copies: a command in the result shows its files. */
import { afterAll, beforeEach, expect, test } from "bun:test";
import type { Fetch } from "../../../src/service/service.ts";
import { temporaryDirectory } from "../../support/bough.ts";
import { openSharedEngine } from "../../support/shared-engine.ts";
import { createImageCopyBuild } from "./image-copy-build.ts";

const manyFiles = 1300;
const longName = "n".repeat(120);
const makeTree = `
  mkdir -p /src/bin /src/empty "/src/sp ace" && cd /src
  echo run > bin/run && chown 11:12 bin/run && chmod 4755 bin/run
  ln -s ../bin/run empty/link && chown -h 9:9 empty/link
  echo text > "sp ace/ü'\\"x" && ln bin/run hard
  chown 7:8 bin && chmod 1777 empty
  dd if=/dev/zero of=sparse bs=1 count=1 seek=3000000 2> /dev/null
  mkdir -p /many/${longName} && cd /many
  i=0; while [ $i -lt ${manyFiles} ]; do echo $i > $i; i=$((i + 1)); done
  echo long > ${longName}/${longName} && ln ${longName}/${longName} zlink && chown 5:6 1200 && chmod 4711 1200
  touch -d @1000000000 990
  ln -s 1200 link`;

const { engine, base } = await openSharedEngine();
const source = (await engine.run(base, makeTree)).image ?? "";
let calls: string[] = [];
const fetch: Fetch = async (input, init) => {
  const request = input instanceof Request ? input : new Request(input, init);
  calls.push(`${request.method} ${new URL(request.url).pathname}`);
  return engine.engine.fetch(request);
};
const build = createImageCopyBuild(temporaryDirectory(), { fetch, baseUrl: "http://engine" });
beforeEach(() => {
  calls = [];
});
afterAll(() => build.close());

async function outputIn(image: string, command: string): Promise<string> {
  const { stdout, stderr } = await engine.run(image, command, {
    disposable: true,
    truncate_output_at: 4_000_000,
  });
  expect(stderr).toBe("");
  return stdout;
}

/** A command that prints modes, owners, links and contents of everything below a directory. */
const describe = (directory: string) =>
  `cd ${directory} && find . -mindepth 1 ! -type f ! -type d -exec stat -c '%F %a %u:%g %N' {} + | sort
   find . -mindepth 1 -type f -exec stat -c '%a %u:%g %s %n' {} + | sort
   find . -mindepth 1 -type d -exec stat -c '%a %u:%g %n' {} + | sort
   find . -type f -exec md5sum {} + | sort`;

test("owners, modes, links and contents of a tree are kept", async () => {
  const image = await build.commit(await build.stage(["/src /dst"], { source, base }));
  expect(await outputIn(image, describe("/dst"))).toBe(await outputIn(source, describe("/src")));
  expect(await outputIn(image, "stat -c '%a %u:%g' /dst")).toBe("755 0:0\n");
});

/** A command that prints the names of regular files below a directory, those of one file on one line. */
const groups = (directory: string) =>
  `cd ${directory} && find . -type f -exec stat -c '%i %n' {} + | sort | awk '{ a[$1] = a[$1] " " $2 } END { for (i in a) print a[i] }' | sort`;

test("names of one file in one source stay one file, without another upload", async () => {
  const linked = await engine.run(
    base,
    "mkdir -p /h/sub && echo 1 > /h/a && ln /h/a /h/b && ln /h/a /h/sub/c && echo 2 > /h/d",
  );
  const staged = await build.stage(
    ["/h /x/y", "--chown=3:4 /h/sub /h /both/", "/h /x/y/../z", "/h/a /h/b /apart/"],
    {
      source: linked.image ?? "",
      base,
    },
  );
  calls = [];
  const image = await build.commit(staged);
  expect(calls.filter((call) => call === "POST /v1/files")).toEqual([]);
  const [one, other] = [" ./a ./b ./sub/c", " ./d"];
  expect(await outputIn(image, groups("/x/y"))).toBe(`${one}\n${other}\n`);
  expect(await outputIn(image, groups("/x/z"))).toBe(`${one}\n${other}\n`);
  expect(await outputIn(image, groups("/both"))).toBe(" ./a ./b ./sub/c\n ./c\n ./d\n");
  expect(await outputIn(image, groups("/apart"))).toBe(" ./a\n ./b\n");
  expect(await outputIn(image, "stat -c '%u:%g %h' /both/b && find / -maxdepth 1 -name '.bough*'")).toBe(
    "3:4 3\n",
  );
});

test("names of one file become separate files, with a warning, if the image has no shell", async () => {
  const bare = (await engine.run(base, "rm /bin/sh")).image ?? "";
  const linked = await engine.run(base, "mkdir /h && echo 1 > /h/a && ln /h/a /h/b");
  const shells = (await engine.run(base, "mkdir /s && cp -p /bin/busybox /s/sh")).image ?? "";
  build.events.length = 0;
  const staged = await build.stage(["/h /h"], { source: linked.image ?? "", base: bare });
  const { staged: shell } = await build.stage(["/s/sh /bin/sh"], { source: shells, base: bare });
  const both = { ...staged, staged: new Map([...staged.staged, ...shell]) };
  const image = await build.commit(both);
  expect(await outputIn(image, groups("/h"))).toBe(" ./a\n ./b\n");
  expect(build.events).toContainEqual({
    type: "warning",
    message:
      "the image has no shell, which is needed to make hard links: /h/a and /h/b become separate files",
    line: 2,
  });
});

test("a tree of many files is sent as one archive, which is removed from the image", async () => {
  const staged = await build.stage(["/many /opt/many/"], { source, base });
  const single = calls.filter((call) => call === "POST /v1/files").length;
  expect(single).toBe(1000);
  calls = [];
  const image = await build.commit(staged);
  expect(calls.filter((call) => call === "POST /v1/files")).toHaveLength(1);
  expect(await outputIn(image, describe("/opt/many"))).toBe(await outputIn(source, describe("/many")));
  expect(await outputIn(image, "find / -maxdepth 1 -name '.bough*'")).toBe("");
  // This file is in the archive.
  expect(await outputIn(image, "stat -c %Y /opt/many/990")).toBe("1000000000\n");

  // A second copy on another base transfers nothing.
  const other = (await engine.run(base, "echo other > /other")).image ?? "";
  calls = [];
  const again = await build.commit(await build.stage(["/many /opt/many/"], { source, base: other }));
  expect(calls.filter((call) => /^POST \/v1\/files|archive|download/.test(call))).toEqual([]);
  expect(await outputIn(again, "cat /opt/many/1299 /other")).toBe("1299\nother\n");
});

test("an image without tar gets each file separately", async () => {
  const bare = (await engine.run(base, "rm /bin/tar")).image ?? "";
  const image = await build.commit(await build.stage(["/many /opt/many/"], { source, base: bare }));
  expect(await outputIn(image, describe("/opt/many"))).toBe(await outputIn(source, describe("/many")));
});
