/** The embedded engine for a user without privileges: the compiled program, which enters a user namespace. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { ociFiles, writeRawFiles } from "../support/image-bytes.ts";
import { makeOrdinaryUser, type OrdinaryUser } from "../support/ordinary-user.ts";
import { tarOf } from "../support/tar-bytes.ts";

let user: OrdinaryUser;
let layout: string;

beforeAll(async () => {
  user = makeOrdinaryUser();
  user.giveBough();
  const made = temporaryDirectory();
  await makeBusyboxLayout(made, {
    prepare: (image) =>
      writeFiles(image, {
        "etc/group": "root:x:0:\nstaff:x:50:\n",
        "etc/passwd": "root:x:0:0::/root:/bin/sh\napp:x:1000:50::/:/bin/sh\n",
      }),
  });
  layout = `oci:${user.give(made, "layout")}:latest`;
});
afterAll(() => user.remove());

async function run(
  who: OrdinaryUser,
  words: readonly string[],
  directory = who.home,
  path = process.env.PATH ?? "",
) {
  const command = [
    "env",
    "-i",
    `PATH=${path}`,
    `HOME=${who.home}`,
    "sh",
    "-c",
    'cd "$0" && exec "$@"',
    directory,
    join(who.home, "bough"),
    ...words,
  ];
  return endOf(Bun.spawn([...who.prefix, ...command], { stdout: "pipe", stderr: "pipe", stdin: "ignore" }));
}

function giveContext(files: Record<string, string>): string {
  const context = temporaryDirectory();
  writeFiles(context, files);
  return user.give(context, `context-${Bun.randomUUIDv7()}`);
}

test("a context that is an archive with directories without permissions is removed completely", async () => {
  const place = giveContext({ "tmp/.keep": "" });
  const closed = { name: "closed", flag: "5", mode: 0o555 };
  const archive = tarOf([
    { name: "Dockerfile", content: "FROM base\nCOPY closed/file /\nRUN make\n" },
    closed,
    { ...closed, name: "closed/sealed", mode: 0 },
    { name: "closed/file", content: "text" },
  ]);
  writeFileSync(join(place, "context.tar"), archive);
  const script = 'TMPDIR=$PWD/tmp exec "$0" build - --check < context.tar';
  const command = ["env", "-C", place, "sh", "-c", script, join(user.home, "bough")];
  const child = Bun.spawn([...user.prefix, ...command], { stdout: "pipe", stderr: "pipe" });
  const { exitCode, stdout, stderr } = await endOf(child);
  expect({ stdout, stderr, exitCode }).toMatchObject({ exitCode: 0 });
  expect(readdirSync(join(place, "tmp"))).toEqual([".keep"]);
});

test("without HOME, the state is in the home that /etc/passwd names", () => {
  const other = makeOrdinaryUser();
  const command = ["env", "-i", `PATH=${process.env.PATH}`, other.giveBough(), "images"];
  const known = Bun.spawnSync([...other.prefix, ...command]);
  const unknown = Bun.spawnSync(["setpriv", "--reuid=61235", "--regid=61235", "--clear-groups", ...command]);
  const hasState = existsSync(join(other.home, ".local/state/bough/engine"));
  other.remove();
  expect([known.stderr.toString(), known.exitCode, hasState]).toEqual(["", 0, true]);
  expect([unknown.stderr.toString(), unknown.exitCode]).toEqual([
    "[ERROR] HOME is not set, and /etc/passwd has no entry for this user\nSet HOME to a directory of your own.\n",
    1,
  ]);
});

test("imports and builds; owners, other users and removed files are the same as for root", async () => {
  expect(await run(user, ["images", "import", layout, "--tag", "busybox:1"])).toMatchObject({ exitCode: 0 });
  const context = giveContext({
    Dockerfile: [
      "FROM busybox:1",
      "RUN id -u; touch /mine; chown 1000:50 /mine; mkdir /d; touch /d/file; chmod 4755 /d/file",
      "COPY --chown=app:staff a /a",
      "RUN stat -c '%u %g %a %n' /mine /a /d/file; rm -r /d",
      "USER app",
      "RUN id -un; cat /a; ls -d /d 2>/dev/null || echo gone",
    ].join("\n"),
    a: "content\n",
  });
  const built = await run(user, ["build", "."], context);
  expect(built).toMatchObject({ exitCode: 0 });
  const outputs = [...built.stderr.matchAll(/stdout:\n((?:(?!\[).*\n)*)/g)].map(([, text]) => text);
  expect(outputs).toEqual([
    "0\n",
    "1000 50 644 /mine\n1000 50 644 /a\n0 0 4755 /d/file\n",
    "app\ncontent\ngone\n",
  ]);
  expect((await run(user, ["build", "."], context)).stderr).not.toContain("spawned");
});

test.each([
  [
    "a pipe as a secret",
    "echo tok | bough build --docker --secret id=t,src=/dev/stdin secret",
    "4 /run/secrets/t",
  ],
  [
    "<(...) as a secret",
    "bough build --docker --no-cache --secret id=t,src=<(echo tok) secret",
    "4 /run/secrets/t",
  ],
  ["a pipe of variables", "echo A=1 | bough run --env-file /dev/stdin busybox:1 sh -c 'echo $A'", "1"],
  ["<(...) of variables", "bough run --env-file <(echo A=1) busybox:1 sh -c 'echo $A'", "1"],
  ["an archive", "tar -C plain -c . | bough build --docker -", "came from standard input"],
  ["a Dockerfile alone", "bough build --docker - < <(cat plain/Dockerfile)", "came from standard input"],
  [
    "a here-document",
    "bough build --docker --dockerfile - plain <<X\nFROM busybox:1\nRUN echo here\nX",
    "here",
  ],
  ["<(...) as a Dockerfile", "bough build --docker --dockerfile <(cat plain/Dockerfile) plain", "hi"],
  ["a bake file", "cat bake.json | bough bake -f -", "default: 2 steps"],
  ["another descriptor", "exec 7< <(cat bake.json); bough bake -f /dev/fd/7", "default: 2 steps"],
])("the engine's command reads %s", async (_, script, expected) => {
  const place = giveContext({
    "plain/Dockerfile": "FROM busybox:1\nRUN echo hi\n",
    "secret/Dockerfile": "FROM busybox:1\nRUN --mount=type=secret,id=t,required wc -c /run/secrets/t\n",
    "bake.json": '{"target": {"default": {"context": "plain"}}}',
  });
  await run(user, ["images", "import", layout, "--tag", "busybox:1"]);
  const environment = [
    "env",
    "-i",
    "-C",
    place,
    `PATH=${user.home}:${process.env.PATH}`,
    `HOME=${user.home}`,
  ];
  const command = [...user.prefix, ...environment, "bash", "-c", script];
  const child = Bun.spawn(command, { stdout: "pipe", stderr: "pipe", stdin: "ignore" });
  const { exitCode, stdout, stderr } = await endOf(child);
  expect({ exitCode, text: stdout + stderr }).toEqual({
    exitCode: 0,
    text: expect.stringContaining(expected),
  });
});

test("imports what upper layers delete and hide, and leaves out devices", async () => {
  const directory = (name: string) => ({ name: `${name}/`, flag: "5", mode: 0o755 });
  const layers = [
    [directory("d"), { name: "d/a", content: "lower" }, { name: "gone" }, { name: "null", flag: "4" }],
    [{ name: ".wh.gone" }, directory("d"), { name: "d/.wh..wh..opq" }, { name: "d/new", content: "upper" }],
  ];
  const image = writeRawFiles(
    temporaryDirectory(),
    ociFiles({ layers: layers.map((layer) => tarOf(layer)) }),
  );
  const source = `oci:${user.give(image, "layers")}:latest`;
  const imported = await run(user, ["images", "import", source, "--tag", "layers:1"]);
  expect(imported).toMatchObject({ exitCode: 0 });
  expect((await run(user, ["cat", "layers:1:/d/new"])).stdout).toBe("upper");
  for (const path of ["d/a", "gone", "null"]) {
    const { exitCode, stderr } = await run(user, ["cat", `layers:1:/${path}`]);
    expect({ exitCode, stderr }).toEqual({ exitCode: 1, stderr: expect.stringContaining("no such file") });
  }
});

test("a command runs in a user namespace in which root is the only user and group", async () => {
  const home = join(user.home, "alone");
  const alone = ["unshare", "--user", "--map-root-user", "--mount"];
  const bough = [...alone, join(user.home, "bough"), "--local"];
  const results = [
    ["images", "import", layout, "--tag", "alone:1"],
    ["run", "-D", "alone:1", "stat", "-c", "%g", "/dev/pts/ptmx"],
  ].map((words) => {
    const environment = ["env", "-i", `PATH=${process.env.PATH}`, `HOME=${home}`];
    const child = Bun.spawnSync([...user.prefix, ...environment, ...bough, ...words]);
    return { exitCode: child.exitCode, stdout: child.stdout.toString(), stderr: child.stderr.toString() };
  });
  expect(results).toMatchObject([{ exitCode: 0 }, { exitCode: 0, stdout: "0\n" }]);
});

describe("one error says what is missing:", () => {
  test("a range of sub-ids", async () => {
    const poor = makeOrdinaryUser({ subordinateIds: false });
    poor.giveBough();
    const { exitCode, stderr } = await run(poor, ["images"]);
    poor.remove();
    expect(exitCode).toBe(1);
    expect(stderr).toContain(
      "the embedded engine needs root, or a user namespace, which can't be created: the user has no range of sub-ids",
    );
    expect(stderr).toMatch(/usermod --add-subuids (\d+-\d+) --add-subgids \1 bough-tester\n/);
  });

  test("a program", async () => {
    const tools = join(user.home, "tools");
    mkdirSync(tools);
    Bun.spawnSync([
      "sh",
      "-c",
      `for tool in env sh unshare prlimit runc skopeo; do ln -s "$(command -v $tool)" '${tools}'; done`,
    ]);
    const { exitCode, stderr } = await run(user, ["images"], user.home, tools);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("missing programs: newuidmap\n");
    expect(stderr).toContain("uidmap");
  });
});

describe("the store", () => {
  const state = () => join(user.home, ".local/state/bough");
  const remove = () => Bun.spawnSync([...user.prefix, "rm", "-r", state()]);
  const build = async () => {
    await run(user, ["images", "import", layout, "--tag", "busybox:1"]);
    const dockerfile = "FROM busybox:1\nRUN mkdir -p /d/e; touch /d/e/f; chown -R 7:7 /d; chmod 700 /d/e\n";
    expect(await run(user, ["build", giveContext({ Dockerfile: dockerfile })])).toMatchObject({
      exitCode: 0,
    });
  };

  test("can be deleted after everything is pruned", async () => {
    await build();
    const pruned = await run(user, ["engine", "prune", "--all", "-y"]);
    expect(pruned.stdout).toMatch(/^removed \d+ images?, \d+ layers?/);
    expect(pruned.stdout).toContain("removed tags: busybox:1");
    expect(pruned.stdout).toMatch(/^removed sessions: build:\w{16}/m);
    expect(pruned.stderr).toContain("it can be deleted");
    expect(remove().exitCode).toBe(0);
    expect(existsSync(state())).toBe(false);
  });

  test.each<[string, () => void]>([
    ["its records were lost in an attempt to delete it", () => expect(remove().exitCode).not.toBe(0)],
    ["its records are damaged", () => writeFileSync(join(state(), "engine/engine.db"), "x".repeat(5000))],
  ])("can be deleted after a prune even if %s", async (_, harm) => {
    await build();
    harm();
    expect(await run(user, ["engine", "prune", "--all", "-y"])).toMatchObject({ exitCode: 0 });
    expect(remove().exitCode).toBe(0);
  });
});

test("inspect shows what a layer deletes, with the marks of a user namespace", async () => {
  const dockerfile =
    "FROM inspected:1\nRUN mkdir /d && echo 1 > /d/f\nRUN rm -r /d /etc/group && mkdir /d && echo 22 > /d/g\n";
  const context = giveContext({ Dockerfile: dockerfile });
  await run(user, ["images", "import", layout, "--tag", "inspected:1"]);
  expect(await run(user, ["build", context, "--tag", "inspected:2"])).toMatchObject({ exitCode: 0 });
  const { stdout } = await run(user, ["inspect", "inspected:2", "--layer", "3", "-f", "json"]);
  const changes = JSON.parse(stdout) as { change: string; path: string }[];
  expect(changes.map(({ change, path }) => `${change} ${path}`).sort()).toEqual([
    "added /d/g",
    "deleted /d/f",
    "deleted /etc/group",
  ]);
});
