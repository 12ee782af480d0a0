/** `RUN --mount` on the embedded engine and on a service without mounts: what is hashed, mounted and reported. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { type RunningEngine, serveEngine } from "../differential/bough.ts";
import { hideExtensions } from "../docker/plain-service.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { type FileSpec, writeFiles } from "../support/files.ts";

const home = temporaryDirectory();
let plain: RunningEngine;
beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  plain = await serveEngine(temporaryDirectory(), hideExtensions);
  await plain.importBase(layout, "busybox:1");
  const words = ["--local", "images", "import", layout, "--tag", "busybox:1"];
  expect(await bough(words, "/")).toMatchObject({ exitCode: 0 });
});
afterAll(() => plain.stop());

function bough(words: readonly string[], workingDirectory: string, environment: Record<string, string> = {}) {
  return runBough(words, { workingDirectory, environment: { BOUGH_HOME: home, ...environment } });
}

function makeContext(lines: string, files: Record<string, FileSpec> = {}): string {
  const context = temporaryDirectory();
  writeFiles(context, { Dockerfile: `FROM busybox:1\n${lines}\n`, ...files });
  return context;
}

const places = [["the engine"], ["a service without mounts"]] as const;

describe.each(places)("on %s", (place) => {
  const build = (
    context: string,
    options: readonly string[] = [],
    environment: Record<string, string> = {},
  ) => {
    const service = place === "the engine" ? ["--local"] : ["--url", plain.url, "--token", plain.token];
    return bough([...service, "build", ".", ...options], context, environment);
  };
  const runs = ({ stderr }: { stderr: string }) => stderr.match(/RUN spawned op=\S+ RUN/g)?.length ?? 0;

  test("a change of a bind's content runs the command again; ignored files, times and caches do not", async () => {
    const files = { "in/a": "1", "in/no": "1", ".dockerignore": "in/no", "out/b": "1" };
    const context = makeContext(
      "RUN --mount=source=in,target=/in --mount=type=cache,target=/c cp -r /in /kept; date +%N > /c/x",
      files,
    );
    expect(await build(context)).toMatchObject({ exitCode: 0 });
    const counts: number[] = [];
    for (const change of [{}, { "in/no": "2", "out/b": "2" }, { "in/a": "2" }, { "in/new/x": "" }]) {
      writeFiles(context, change);
      counts.push(runs(await build(context)));
    }
    expect(counts).toEqual([0, 0, 1, 1]);
    const explained = await build(context, ["--explain", "--build-arg", "X=1"]);
    expect(explained.exitCode).toBe(0);
    writeFileSync(join(context, "in/a"), "3");
    expect((await build(context, ["--explain"])).stderr).toContain("/in/a");
  });

  test("a stage can be mounted without --docker; another result of it runs the command again", async () => {
    const lines = (text: string) =>
      `RUN echo ${text} > /made\nFROM busybox:1\nRUN --mount=from=one,source=/made,target=/m cat /m`;
    const context = makeContext(lines("1"));
    const write = (text: string) =>
      writeFiles(context, { Dockerfile: `FROM busybox:1 AS one\n${lines(text)}\n` });
    write("first");
    const first = await build(context);
    expect(first).toMatchObject({ exitCode: 0 });
    expect(first.stderr).toContain("\nfirst\n");
    expect(runs(await build(context))).toBe(0);
    write("second");
    const { stderr } = await build(context, ["--explain"]);
    expect(stderr).toContain("\nsecond\n");
    expect(stderr).toContain("cat /m: --from=one has changed, of which it mounts /made\n");
  });

  test("an image can be mounted, and a second build is cached", async () => {
    const context = makeContext("RUN --mount=from=busybox:1,source=/etc,target=/theirs cat /theirs/passwd");
    const built = await build(context);
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("root:");
    expect(runs(await build(context))).toBe(0);
  });

  test("variables in a mount are replaced, also the image's PATH", async () => {
    const context = makeContext("ARG D=in\nENV T=/t\nRUN --mount=source=$D,target=${T:-x}/$PATH ls /t/", {
      "in/a": "",
    });
    expect(await build(context)).toMatchObject({ exitCode: 0 });
  });

  test("a missing file of the context is reported with its line", async () => {
    const { exitCode, stderr } = await build(makeContext("RUN --mount=source=nowhere,target=/x true"));
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("no such file or directory in the build context: /nowhere");
    expect(stderr).toContain("2 | RUN --mount=source=nowhere");
  });

  test("the exit code of a command with mounts is reported, and the layer before it stays cached", async () => {
    const context = makeContext(
      "RUN echo before\nRUN --mount=target=/in --mount=type=tmpfs,target=/t exit 37",
    );
    for (const count of [2, 1]) {
      const failed = await build(context);
      expect(failed.exitCode).toBe(1);
      expect(failed.stderr).toContain("exit code 37");
      expect(runs(failed)).toBe(count);
    }
  });
});

test("a mount of an image needs a service that shows files of images", async () => {
  const service = await startFakeService({ sixCallsOnly: true });
  try {
    const context = makeContext("RUN --mount=from=busybox:1,target=/m ls /m");
    const { stderr } = await bough(["--url", service.url, "--token", "t0ken", "build", "."], context);
    expect(stderr).toContain(
      "the service can't list the files of an image, which RUN --mount with from= needs:",
    );
  } finally {
    await service.close();
  }
});

test("a mounted stage that the service has lost is made again", async () => {
  const service = await startFakeService({ extensions: ["mounts"] });
  service.state.addImage("busybox:1");
  try {
    const context = makeContext("");
    const dockerfile =
      "FROM busybox:1 AS one\nRUN make\nFROM busybox:1\nARG ROUND\nRUN --mount=from=one,target=/m use\n";
    writeFiles(context, { Dockerfile: dockerfile });
    const build = (round: string) =>
      bough(
        ["--url", service.url, "--token", "t", "build", ".", "--docker", "--build-arg", `ROUND=${round}`],
        context,
      );
    expect(await build("1")).toMatchObject({ exitCode: 0 });
    const lost = service.state.instances
      .at(-1)
      ?.mounts?.flatMap((mount) => ("image" in mount ? (mount.image ?? []) : []));
    expect(lost).toHaveLength(1);
    service.state.forgetImage(lost?.[0] ?? "");
    service.intercept = async (request, { method, path }) => {
      if (method !== "POST" || path !== "/v1/instances") return undefined;
      const { mounts = [] } = (await request.clone().json()) as InstanceBody;
      const isLost = mounts.some((mount) => "image" in mount && mount.image === lost?.[0]);
      return isLost ? Response.json({ error: "no such image", status: 404 }, { status: 404 }) : undefined;
    };
    const again = await build("2");
    expect(again).toMatchObject({ exitCode: 0 });
    expect(service.state.instances.map(({ command }) => command)).toEqual(["make", "use", "make", "use"]);
  } finally {
    await service.close();
  }
});

describe("a service without mounts", () => {
  const build = (context: string, ...options: string[]) =>
    bough(["--url", plain.url, "--token", plain.token, "build", ".", ...options], context);

  test("accepts 1,000 files, and refuses more", async () => {
    const files = Object.fromEntries(Array.from({ length: 999 }, (_, index) => [`in/${index}`, ""]));
    const context = makeContext("RUN --mount=source=in,target=/in ls /in | wc -l", {
      ...files,
      "in/last": "",
    });
    const built = await build(context);
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("\n1000\n");
    writeFileSync(join(context, "in/more"), "");
    const { exitCode, stderr } = await build(context);
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain("at most 1000, not 1001");
  });

  test("finds the script's programs if they are not in the image's PATH, and leaves the command's PATH unchanged", async () => {
    const context = makeContext(
      'ENV PATH=/nothing\nRUN --mount=type=cache,target=/c ["/bin/sh", "-c", "echo $PATH"]',
    );
    const built = await build(context);
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("\n/nothing\n");
  });

  test("refuses mounts in an image without a shell, unlike the engine", async () => {
    const layout = await makeBusyboxLayout(temporaryDirectory(), {
      prepare: (root) => rmSync(join(root, "bin/sh")),
    });
    await plain.importBase(layout, "shell-less:1");
    await bough(["--local", "images", "import", layout, "--tag", "shell-less:1"], "/");
    const context = makeContext("");
    writeFiles(context, {
      Dockerfile: 'FROM shell-less:1\nRUN --mount=target=/in ["/bin/busybox", "cat", "/in/Dockerfile"]\n',
    });
    const { exitCode, stderr } = await build(context);
    expect(exitCode).toBe(1);
    expect(stderr).toContain("the image has no shell (/bin/sh) to run this with");
    expect(await bough(["--local", "build", "."], context)).toMatchObject({ exitCode: 0 });
  });

  test("refuses secrets before anything runs", async () => {
    const context = makeContext("RUN echo ran\nRUN --mount=type=secret,id=s true");
    const { exitCode, stderr } = await build(context, "--secret", "id=s,env=HOME");
    expect(exitCode).toBe(2);
    expect(stderr).toContain("3 | RUN --mount=type=secret,id=s true");
    expect(stderr).not.toContain("spawned");
  });
});

describe("--secret and --ssh", () => {
  const lines = "RUN --mount=type=secret,id=s,required cat /run/secrets/s | sha256sum";
  const given = (text: string) => new Bun.CryptoHasher("sha256").update(text).digest("hex");
  const build = (options: readonly string[], environment: Record<string, string> = {}, text = lines) =>
    bough(
      ["--local", "build", ".", "--no-cache", ...options],
      makeContext(text, { here: "of a file\n", "with, comma": "of a comma\n", s: "by its name" }),
      environment,
    );

  test.each<[string, string[], Record<string, string>, string]>([
    ["a file", ["--secret", "id=s,src=here"], {}, "of a file\n"],
    ["a file by its long name", ["--secret", "type=file,id=s,source=./here"], {}, "of a file\n"],
    ["a variable", ["--secret", "id=s,env=V"], { V: "of V" }, "of V"],
    ["a variable as the source", ["--secret", "type=env,id=s,src=V"], { V: "of V" }, "of V"],
    ["the variable of its id", ["--secret", "id=s"], { s: "of s" }, "of s"],
    ["the file of its id, if there is no such variable", ["--secret", "id=s"], {}, "by its name"],
    [
      "the last option of the same id",
      ["--secret", "id=s,env=V", "--secret", "id=s,src=here"],
      {},
      "of a file\n",
    ],
    ["a file with a comma in its name", ["--secret", 'id=s,"src=with, comma"'], {}, "of a comma\n"],
    ["a variable that is not set, which is empty as in Docker", ["--secret", "id=s,env=NOT_SET"], {}, ""],
  ])("%s", async (_, options, environment, expected) => {
    const built = await build(options, environment);
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain(given(expected));
  });

  test.each<[string, string[], string]>([
    ["no id", ["--secret", "src=here"], "--secret: the id is missing"],
    ["an unknown key", ["--secret", "id=s,file=x"], "--secret: unexpected key 'file'"],
    ["a word alone", ["--secret", "s"], "--secret: invalid field 's' must be a key=value pair"],
    ["an unknown type", ["--secret", "id=s,type=x"], '--secret: unsupported secret type "x"'],
    ["a missing file", ["--secret", "id=s,src=none"], "--secret id=s: cannot read none"],
    ["a directory", ["--secret", "id=s,src=."], "--secret id=s: cannot read .: it is a directory"],
    ["no secret", [], "--mount=type=secret: s is required, but was not given"],
    ["another secret", ["--secret", "id=t,src=here"], "Given: t."],
    ["no agent", ["--secret", "id=s", "--ssh", "default"], "SSH_AUTH_SOCK is not set"],
    [
      "a file without a key in place of an agent",
      ["--secret", "id=s", "--ssh", "default=here"],
      "cannot use here as a key: it has no private key",
    ],
  ])("%s is refused before anything runs", async (_, options, message) => {
    const { exitCode, stderr } = await build(options, { SSH_AUTH_SOCK: "" });
    expect(exitCode).toBe(2);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("spawned");
  });

  test("a secret of more than 500 KiB is refused", async () => {
    const context = makeContext(lines, { large: "x".repeat(500 * 1024 + 1) });
    const { exitCode, stderr } = await bough(
      ["--local", "build", ".", "--secret", "id=s,src=large"],
      context,
    );
    expect({ exitCode, stderr }).toMatchObject({ exitCode: 2 });
    expect(stderr).toContain("cannot read large: it is larger than 512000 bytes");
  });

  test("a secret that is not used causes a warning with a similar id", async () => {
    const built = await build(
      ["--secret", "id=s", "--secret", "id=tokn,env=V"],
      {},
      `${lines}\nRUN --mount=type=secret,id=token true`,
    );
    expect(built).toMatchObject({ exitCode: 0 });
    expect(built.stderr).toContain("--secret id=tokn has no effect");
    expect(built.stderr).toContain("(did you mean token?)");
  });

  test("a command has the agent's socket and the variable that names it; without an agent only the variable", async () => {
    const directory = temporaryDirectory();
    const socket = join(directory, "agent");
    const agent = Bun.listen({ unix: socket, socket: { data() {} } });
    try {
      const text =
        'RUN --mount=type=ssh echo "$SSH_AUTH_SOCK"; [ -S "$SSH_AUTH_SOCK" ] && echo a socket; true';
      const built = await build(["--ssh", "default"], { SSH_AUTH_SOCK: socket }, text);
      expect(built).toMatchObject({ exitCode: 0 });
      expect(built.stderr).toContain("\n/run/buildkit/ssh_agent.0\na socket\n");
      const without = await build([], {}, text);
      expect(without).toMatchObject({ exitCode: 0 });
      expect(without.stderr).toContain("\n/run/buildkit/ssh_agent.0\n");
      expect(without.stderr).not.toContain("a socket\n");
    } finally {
      agent.stop(true);
      rmSync(directory, { recursive: true });
    }
  });
});
