/** bough in the place of docker's builder: `bough plugin`, and the program under the name `docker-buildx`. */
import { beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, readFileSync, readlinkSync, symlinkSync } from "node:fs";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(60_000);

const program = compileBough();
const home = temporaryDirectory();
const plugin = join(home, ".docker/cli-plugins/docker-buildx");

async function run(words: readonly string[], environment: Record<string, string> = {}, cwd = home) {
  const child = Bun.spawn([...words], {
    cwd,
    env: { PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state"), ...environment },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  return endOf(child);
}

const bough = (...words: string[]) => run([program, ...words]);
const buildx = (...words: string[]) => run([plugin, ...words]);

describe("bough plugin", () => {
  test("install links the program, and remove takes the link away", async () => {
    expect((await bough("plugin", "-f", "json")).stdout).toContain('"state": "missing"');
    expect(await bough("plugin", "install", "-q")).toMatchObject({ exitCode: 0, stdout: `${plugin}\n` });
    expect(readlinkSync(plugin)).toBe(program);
    expect((await bough("plugin", "-f", "json")).stdout).toContain('"isCurrent": true');
    expect((await bough("plugin", "remove")).exitCode).toBe(0);
    expect(existsSync(plugin)).toBe(false);
    const again = await bough("plugin", "remove");
    expect(again.exitCode).toBe(1);
    expect(again.stderr).toContain(`not installed as docker's builder: there is no ${plugin}`);
  });

  test("another builder is kept, and comes back", async () => {
    const config = join(temporaryDirectory(), "config");
    const path = join(config, "cli-plugins/docker-buildx");
    writeFiles(config, { "cli-plugins/docker-buildx": "#!/bin/sh\necho other\n" });
    const at = (...words: string[]) => run([program, "plugin", ...words], { DOCKER_CONFIG: config });
    const refused = await at("install");
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("--force");
    expect(readFileSync(path, "utf8")).toContain("other");
    expect((await at("install", "--force")).exitCode).toBe(0);
    expect(readlinkSync(path)).toBe(program);
    expect((await at("remove")).exitCode).toBe(0);
    expect(readFileSync(path, "utf8")).toContain("other");
    expect((await at("remove")).exitCode).toBe(1);
  });

  test("a directory that cannot be written is an error that says so", async () => {
    const config = temporaryDirectory();
    writeFiles(config, { "cli-plugins": "a file" });
    const { exitCode, stderr } = await run([program, "plugin", "install"], { DOCKER_CONFIG: config });
    expect(exitCode).toBe(1);
    expect(stderr).toContain(`[ERROR] ${config}/cli-plugins/docker-buildx cannot be read or changed: `);
  });

  test("a link to a bough that has gone since is replaced", async () => {
    const config = temporaryDirectory();
    writeFiles(config, { "cli-plugins/.keep": "" });
    symlinkSync("/nowhere/bough", join(config, "cli-plugins/docker-buildx"));
    const installed = await run([program, "plugin", "install"], { DOCKER_CONFIG: config });
    expect(installed.exitCode).toBe(0);
    expect(readlinkSync(join(config, "cli-plugins/docker-buildx"))).toBe(program);
  });
});

describe("docker-buildx", () => {
  beforeAll(async () => {
    await bough("plugin", "install");
  });

  test("says what docker's command line asks a plug-in for", async () => {
    const { stdout, exitCode } = await buildx("docker-cli-plugin-metadata");
    expect(exitCode).toBe(0);
    const { SchemaVersion, Vendor, Version } = JSON.parse(stdout);
    expect([SchemaVersion, Vendor]).toEqual(["0.1.0", "bough"]);
    // docker compose demands 0.17.
    expect(Version).toMatch(/^v0\.(1[7-9]|[2-9]\d)\.\d/);
  });

  test.each([
    ["called by docker", ["buildx", "version"], 0, /^github\.com\/docker\/buildx v\d/],
    [
      "with docker's options",
      ["--context", "default", "-D", "buildx", "--builder", "b", "version"],
      0,
      /^github/,
    ],
    ["called by its own name", ["version"], 0, /^github/],
    ["certificates in this directory", ["--tlscacert", "./ca.pem", "buildx", "version"], 0, /^github/],
    [
      "a certificate with a name of its own",
      ["--tlscacert=own.pem", "version"],
      1,
      /^ERROR: --tlscacert own\.pem: the file must be named ca\.pem/,
    ],
    ["completion", ["__complete", "buildx", "build", "--f"], 0, /^:0$/],
    ["no command", ["buildx"], 0, /^Usage: {2}docker buildx/],
    ["docker help buildx ls", ["help", "buildx", "ls"], 0, /^Usage: {2}docker buildx ls/],
    ["docker buildx help ls", ["buildx", "help", "ls"], 0, /^Usage: {2}docker buildx ls/],
    ["an unknown command", ["buildx", "bak"], 1, /^ERROR: unknown command: "bak"\. Did you mean bake\?$/],
    ["no context", ["buildx", "build"], 1, /^ERROR: docker: 'docker buildx build' requires 1 argument/],
    [
      "an option without its value",
      ["buildx", "build", "--platform"],
      125,
      /^ERROR: .*--platform needs a value/,
    ],
    ["an unknown option", ["buildx", "build", "--foo", "."], 125, /^ERROR: .*unknown option --foo/],
    [
      "a value that is no flag's",
      ["buildx", "build", "--pull=foo", "."],
      125,
      /^ERROR: .*--pull takes no value but/,
    ],
    [
      "a limit that is none",
      ["buildx", "build", "--ulimit", "x", "."],
      125,
      /^ERROR: --ulimit takes NAME=SOFT/,
    ],
    [
      "a size that is none",
      ["buildx", "build", "--shm-size", "x", "."],
      125,
      /^ERROR: --shm-size takes a size/,
    ],
  ])("%s", async (_, words, exitCode, text) => {
    const ended = await buildx(...words);
    expect(ended.exitCode).toBe(exitCode);
    expect((exitCode === 0 ? ended.stdout : ended.stderr).trim()).toMatch(text);
  });

  test.each([
    ["ls", "NAME/NODE     DRIVER/ENDPOINT   STATUS    BUILDKIT"],
    ["ls --format {{.Name}}", "default\ndefault\n"],
    ["ls --format {{.Name}}:{{.DriverEndpoint|upper}}", "default:BOUGH\ndefault:DEFAULT\n"],
    ["ls --format json", '{"Current":true,"Driver":"bough"'],
    // As docker/setup-buildx-action calls them.
    [
      "create --name b-1 --driver docker-container --buildkitd-flags --allow-insecure-entitlement --use",
      "b-1\n",
    ],
    [
      "inspect --bootstrap --builder b-1",
      "Name:          b-1\nDriver:        bough\n\nNodes:\nName:             b-1\n",
    ],
    ["history", "Usage:  docker buildx history"],
    ["history rm zzz", ""],
    ["history ls", "BUILD ID   NAME      STATUS    CREATED AT   DURATION"],
    ["rm b-1 --force", "b-1 removed\n"],
    ["prune -f", "Total:\t0B\n"],
    ["du", "Total:\t0B\n"],
    ["use b-1", ""],
    ["stop", ""],
    ["install", ""],
    ["imagetools", "Usage:  docker buildx imagetools create|inspect"],
    ["ls --help", "Usage:  docker buildx ls [OPTIONS]\n"],
    ["build --help", "-t, --tag NAME"],
  ])("%s", async (line, text) => {
    const { exitCode, stdout } = await buildx("buildx", ...line.split(" "));
    expect(exitCode).toBe(0);
    expect(stdout).toContain(text);
    if (text === "") expect(stdout).toBe("");
  });

  test.each([
    ["history open", "`bough history report` writes a page"],
    ["history lss", 'unknown command: "lss". Did you mean ls?'],
    ["history inspect zzz", 'no record found for ref "zzz"'],
    ["history inspect ^-1", 'no record found for ref "^-1"'],
    ["history logs default/default/", 'no record found for ref "default/default/"'],
    ["history rm", "rm requires at least one argument"],
    ["history ls --filter foo=bar", 'unsupported filter "foo=bar"'],
    ["dial-stdio", "no BuildKit to talk to"],
    ["ls --format {{.Nodes}}", "can't evaluate field Nodes in type *commands.lsContext"],
    ["ls --format {{nope}}", 'template parsing error: template: :1: function "nope" not defined'],
    ["prune --filter type=regular", "--filter takes until=AGE"],
    ["imagetools create x", "can't push with no tags specified"],
    ["imagetools inspct", 'unknown command: "inspct". Did you mean inspect?'],
  ])("%s is refused", async (line, text) => {
    const { exitCode, stderr } = await buildx("buildx", ...line.split(" "));
    expect(exitCode).toBeGreaterThan(0);
    expect(stderr).toStartWith("ERROR: ");
    expect(stderr).toContain(text);
  });

  test("history shows what was built, as docker buildx does", async () => {
    writeFiles(home, { "seen/Dockerfile": "FROM scratch AS one\nARG V\nCOPY x /\n", "seen/x": "x" });
    const build = (...words: string[]) => buildx("buildx", "build", ...words, "seen");
    const history = (...words: string[]) => buildx("buildx", "history", ...words);
    await build("-t", "seen:1", "--build-arg", "V=2", "--target", "one");
    expect((await build("--build-arg", "V=2", "-f", "seen/none")).exitCode).toBe(1);
    writeFiles(home, { "seen/Failing": "FROM scratch\nCOPY y /\n" });
    expect((await build("-f", "seen/Failing")).exitCode).toBe(1);
    const list = await history("ls", "--format", "{{.Name}}|{{.Status}}|{{.CreatedAt}}");
    expect(list.stdout).toMatch(
      /^seen\/Failing\|Error\|(Less than a|\d+) seconds? ago\nseen \(one\)\|Completed\|.* ago\n/,
    );
    const [failed, built] = (await history("ls", "--format", "json")).stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(failed).toMatchObject({ name: "seen/Failing", status: "Error" });
    expect(built).toMatchObject({ name: "seen (one)", status: "Completed", cached_steps: 0, total_steps: 1 });
    const inspected = (await history("inspect", built.ref)).stdout;
    expect(inspected).toStartWith(
      `Name:           seen (one)\nRef:            ${built.ref.replace(/.*\//, "")}\n`,
    );
    expect(inspected).toContain("Build Steps:    1/1 (0% cached)\n\nBUILD ARG   VALUE\nV           2\n");
    expect((await history("inspect", "^1", "--format", "{{.Name}} {{.Status}}")).stdout).toBe(
      "seen (one) completed\n",
    );
    expect(JSON.parse((await history("inspect", "--format", "json")).stdout)).toMatchObject({
      Status: "failed",
    });
    expect((await history("logs", "^1")).stderr).toMatch(/^#1 \[1\/1\] COPY x \/\n#1 DONE \d\.\ds\n\n$/);
    expect((await history("ls", "--filter", "status=error", "--format", "{{.Name}}")).stdout).toStartWith(
      "seen/Failing\n",
    );
    const id = failed.ref.replace(/.*\//, "");
    expect((await history("inspect", id.toUpperCase(), "--format", "{{.Ref}}")).stdout).toContain(id);
    // One that is not there.
    expect((await history("rm", "^-1")).exitCode).toBe(0);
    expect((await history("ls", "--format", "{{.Name}}")).stdout).toStartWith("seen/Failing\n");
    expect(await history("rm", failed.ref)).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await history("ls", "--format", "{{.Name}}")).stdout).toStartWith("seen (one)\n");
    expect((await history("rm", "--all")).exitCode).toBe(0);
    expect((await history("ls", "--format", "{{.Name}}")).stdout).toBe("");
  });

  test("build means what docker build does, and prints nothing but with -q", async () => {
    writeFiles(home, { "app/Dockerfile": 'FROM scratch\nCOPY x /\nCMD ["/x"]\n', "app/x": "x" });
    const built = await buildx("buildx", "build", "--builder", "default", "-t", "app:1", "app");
    expect(built).toMatchObject({ exitCode: 0, stdout: "" });
    const quiet = await buildx("build", "-q", "-f", "app/Dockerfile", "app");
    expect(quiet.exitCode).toBe(0);
    expect(quiet.stdout).toMatch(/^\S+\n$/);
    expect((await bough("inspect", "app:1")).stdout).toMatch(/CMD +\["\/x"\]/);
  });

  test.each([
    ["prune -f --filter until=24h", 0, "removed nothing"],
    // Go's durations.
    ["prune -f --filter until=1h30m", 0, "removed nothing"],
    ["prune -f --filter unused-for=2400h0m0s", 0, "removed nothing"],
    ["prune -f --filter until=soon", 1, '--filter until takes a date or an age, not "soon"'],
    ["prune -f --max-used-space big", 1, '--max-used-space takes a size, not "big"'],
    ["du", 0, "total"],
  ])("once there are builds: %s", async (line, exitCode, text) => {
    const ended = await buildx("buildx", ...line.split(" "));
    expect(ended.exitCode).toBe(exitCode);
    expect(ended.stdout + ended.stderr).toContain(text);
  });

  test("of an option with one value the last is taken, as docker compose build -q expects, and -D is", async () => {
    writeFiles(home, { "twice/Dockerfile": "FROM scratch\nCOPY x /\n", "twice/x": "x" });
    const words =
      "--progress rawjson -f missing -D -t twice:1 -t twice:2 --progress=quiet -f twice/Dockerfile";
    const ended = await buildx("buildx", "build", ...words.split(" "), "twice");
    expect(ended).toEqual({ exitCode: 0, stdout: expect.stringMatching(/^\S*\n?$/), stderr: "" });
    for (const tag of ["twice:1", "twice:2"]) expect((await bough("inspect", tag)).exitCode).toBe(0);
  });

  test("call=lint of all targets, as docker compose build --check asks for, checks them; warnings are exit code 1", async () => {
    const target = (text: string) => ({
      context: "app",
      "dockerfile-inline": text,
      call: "lint",
      output: ["type=docker"],
    });
    const check = async (second: string) => {
      const targets = { one: target("FROM scratch\nCOPY x /\n"), two: target(second) };
      writeFiles(home, {
        "app/x": "x",
        "checks.json": JSON.stringify({ group: { default: { targets: ["one", "two"] } }, target: targets }),
      });
      return buildx("bake", "-f", "checks.json", "--progress=rawjson", "--metadata-file", "checked.json");
    };
    const good = await check("FROM scratch\nCOPY x /\n");
    expect(good).toMatchObject({ exitCode: 0, stderr: "" });
    expect(good.stdout).toMatch(/^one\n\nCheck complete, no warnings found\.\n\ntwo\n\nCheck complete/);
    expect(JSON.parse(readFileSync(join(home, "checked.json"), "utf8"))).toEqual({ one: {}, two: {} });
    const bad = await check("FROM scratch AS Upper\nCOPY x /\n");
    expect(bad.exitCode).toBe(1);
    expect(bad.stdout).toContain("StageNameCasing");
    // As docker/bake-action writes it.
    const called = await buildx("bake", "-f", "checks.json", "--call", "check", "--print");
    expect(called.exitCode).toBe(0);
    expect(JSON.parse(called.stdout).target.one.call).toBe("lint");
    // Docker has no such check.
    const own = await check('FROM scratch\nARG NONE=""\nCOPY x /\nWORKDIR /\nUSER $NONE\n');
    expect(own.stdout).toContain("EmptySetting");
    expect(own.exitCode).toBe(0);
  });

  test("docker's variables, and the proxies of its configuration, stand for options that are not given", async () => {
    await makeBusyboxLayout(join(home, "base"));
    writeFiles(home, {
      "env/Dockerfile": "FROM base\nRUN env\n",
      "env/config.json": JSON.stringify({
        proxies: { default: { httpProxy: "http://proxy:1", noProxy: "a" } },
      }),
    });
    const build = async (...words: string[]) =>
      run([plugin, "build", "--build-context", `base=oci-layout://${home}/base:latest`, ...words, "env"], {
        DOCKER_CONFIG: join(home, "env"),
        BUILDKIT_PROGRESS: "rawjson",
        DOCKER_DEFAULT_PLATFORM: "linux/s390x",
      });
    const own = await build(
      "--progress=plain",
      `--platform=linux/${process.arch === "x64" ? "amd64" : "arm64"}`,
      "--build-arg",
      "http_proxy=own",
    );
    expect(own).toMatchObject({ exitCode: 0 });
    for (const line of ["HTTP_PROXY=http://proxy:1", "http_proxy=own", "no_proxy=a"])
      expect(own.stderr).toContain(line);
    const foreign = await build();
    expect(foreign.exitCode).toBe(1);
    expect(foreign.stderr).toContain("linux/s390x");
  });

  test("the proxies of docker's configuration are arguments of baked targets, too, which come first", async () => {
    writeFiles(home, {
      "proxies/config.json": JSON.stringify({ proxies: { default: { httpProxy: "http://proxy:1" } } }),
      "proxies/f": "f",
      "proxies/docker-bake.json": JSON.stringify({
        target: {
          default: {
            context: "proxies",
            "dockerfile-inline":
              'FROM scratch\nARG HTTP_PROXY http_proxy\nCOPY f /\nLABEL proxies="$HTTP_PROXY $http_proxy"\n',
            args: { http_proxy: "own" },
            tags: ["proxies:1"],
          },
        },
      }),
    });
    const words = ["bake", "-f", "proxies/docker-bake.json"];
    const built = await run([plugin, ...words], { DOCKER_CONFIG: join(home, "proxies") });
    expect(built).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await bough("inspect", "proxies:1")).stdout).toContain("http://proxy:1 own");
  });

  test("--platform may be repeated, as in docker", async () => {
    writeFiles(home, { "both/Dockerfile": "FROM scratch\nCOPY x /\n", "both/x": "x" });
    const platforms = ["--platform", "linux/amd64", "--platform=linux/arm64"];
    const built = await buildx(
      "build",
      ...platforms,
      "-o",
      "type=oci,dest=both.tar",
      "--metadata-file",
      "both.json",
      "both",
    );
    expect(built).toMatchObject({ exitCode: 0 });
    const text = readFileSync(join(home, "both.json"), "utf8");
    for (const platform of ["linux/amd64", "linux/arm64"]) expect(text).toContain(platform);
  });

  test("a build ends when docker's command line closes its socket, as it does at SIGTERM", async () => {
    await makeBusyboxLayout(join(home, "base"));
    writeFiles(home, { "slow/Dockerfile": "FROM base\nRUN sleep 300\n" });
    const path = join(home, "docker.sock");
    const connections: Socket[] = [];
    const server = createServer((connection) => connections.push(connection)).listen(path);
    try {
      const child = Bun.spawn(
        [plugin, "buildx", "build", "--build-context", `base=oci-layout://${home}/base:latest`, "slow"],
        {
          cwd: home,
          env: {
            ...{ PATH: process.env.PATH ?? "", HOME: home, BOUGH_HOME: join(home, "state") },
            DOCKER_CLI_PLUGIN_SOCKET: path,
          },
          stdin: "ignore",
          stdout: "pipe",
          stderr: "pipe",
        },
      );
      let text = "";
      for await (const chunk of child.stderr.pipeThrough(new TextDecoderStream())) {
        text += chunk;
        if (text.includes("RUN spawned")) for (const connection of connections) connection.destroy();
      }
      expect(text).toContain("ERROR: interrupted\n");
      expect(await child.exited).toBe(130);
    } finally {
      server.close();
    }
  });

  test.each([
    ["build", ["build", "--push", "-t", "me/app:1", "app"]],
    ["bake", ["bake", "-f", "pushed.json"]],
  ])("%s pushes a name without a host to Docker Hub, as docker does", async (_, words) => {
    writeFiles(home, {
      ...{ "app/Dockerfile": "FROM scratch\nCOPY x /\n", "app/x": "x" },
      "pushed.json": JSON.stringify({
        target: { default: { context: "app", tags: ["me/app:1"], output: ["type=image,push=true"] } },
      }),
    });
    const asked: string[] = [];
    // Stands for the internet, and refuses.
    const proxy = createServer((connection) => {
      connection.on("error", () => {});
      connection.once("data", (data) => {
        asked.push(data.toString().split("\r\n", 1)[0] ?? "");
        connection.end("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n");
      });
    });
    await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
    const { port } = proxy.address() as AddressInfo;
    try {
      const pushed = await run([plugin, ...words], { HTTPS_PROXY: `http://127.0.0.1:${port}` });
      expect(pushed.exitCode).toBe(1);
      expect(pushed.stderr).toContain("docker://docker.io/me/app:1");
      expect(asked[0]).toBe("CONNECT registry-1.docker.io:443 HTTP/1.1");
    } finally {
      proxy.close();
    }
  });

  test("docker's own command line builds with it, without a daemon", async () => {
    writeFiles(home, { "own/Dockerfile": "FROM scratch\nCOPY x /\n", "own/x": "x" });
    const docker = (line: string) => run(["docker", ...line.split(" ")]);
    expect(await docker("buildx version")).toMatchObject({
      exitCode: 0,
      stdout: expect.stringContaining("+bough."),
    });
    expect(await docker("buildx build -t own:1 own")).toMatchObject({ exitCode: 0, stdout: "" });
    expect((await bough("inspect", "own:1")).exitCode).toBe(0);
    const refused = await docker("buildx build missing");
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("ERROR: the build context missing does not exist. ");
    expect((await docker("buildx build --foo own")).exitCode).toBe(125);
  });

  test("caches that a build cannot use are left out with a warning, as pipelines name them for docker", async () => {
    const caches = [
      "--cache-from",
      "type=gha",
      "--cache-to",
      "type=gha,mode=max",
      "--cache-to",
      "type=inline",
    ];
    const { exitCode, stderr } = await buildx("buildx", "build", ...caches, "app");
    expect(exitCode).toBe(0);
    expect(stderr).toContain(
      "--cache-from: type=gha needs ACTIONS_RESULTS_URL and ACTIONS_RUNTIME_TOKEN, which actions of a GitHub job have: it is left out",
    );
    expect(stderr).toContain("--cache-to: type=inline is not supported: it is left out");
    expect(stderr.match(/left out/g)).toHaveLength(3);
    // bough's own command line refuses it.
    expect((await bough("build", "--docker", ...caches.slice(0, 2), "app")).exitCode).toBe(2);
  });

  test("a word with a tag is a cache in a registry, as cache_from of compose files names them", async () => {
    const registry = await Registry.start();
    try {
      writeFiles(home, { "cached/Dockerfile": "FROM scratch\nCOPY x /\n", "cached/x": "x" });
      const words = (option: string) => ["build", option, `${registry.host}/cache:1`, "cached"];
      const written = await buildx(...words("--cache-to"));
      expect(written.stderr).toContain(`cache: ${registry.host}/cache:1 has 1 layer`);
      expect(written.exitCode).toBe(0);
      const elsewhere = join(temporaryDirectory(), "state");
      const read = await run([plugin, ...words("--cache-from")], { BOUGH_HOME: elsewhere });
      expect(read.stderr).toContain("1 of 1 layer cached");
      expect(read.exitCode).toBe(0);
    } finally {
      await registry.stop();
    }
  });

  test("makes room on the disk in the background, as bough does", async () => {
    const state = join(temporaryDirectory(), "state");
    writeFiles(home, {
      "room/Dockerfile": "FROM scratch\nARG NUMBER\nCOPY f /f-$NUMBER\n",
      "room/f": "f".repeat(3_000_000),
    });
    const build = (number: string, keep: string) =>
      run([plugin, "build", "--build-arg", `NUMBER=${number}`, "room"], {
        BOUGH_HOME: state,
        BOUGH_KEEP: keep,
      });
    expect((await build("1", "off")).exitCode).toBe(0);
    expect((await build("2", "1kB")).exitCode).toBe(0);
    const note = Bun.file(join(state, "made-room.json"));
    while (!(await note.text()).includes("freedBytes")) await Bun.sleep(20);
  });

  // docker/build-push-action and docker/bake-action show the last line as the reason.
  test.each([
    ["by hand", {}],
    ["in a job of GitHub", { GITHUB_ACTIONS: "true" }],
  ])("the last line of a failure says what failed: %s", async (_, environment: Record<string, string>) => {
    const bake = { target: { default: { context: "reasons" } } };
    writeFiles(home, {
      "reasons/Dockerfile": "FROM scratch\nRUNN x\n",
      "reasons.json": JSON.stringify(bake),
    });
    const lastLine = async (...words: string[]) => {
      const { exitCode, stderr } = await run([plugin, ...words], environment);
      expect(exitCode).toBe(1);
      return stderr.trimEnd().split("\n").at(-1);
    };
    const reason = "Dockerfile:2: unknown instruction: RUNN (did you mean RUN?)";
    expect(await lastLine("buildx", "build", "reasons")).toBe(`ERROR: reasons/${reason}`);
    expect(await lastLine("bake", "-f", "reasons.json")).toBe(
      `ERROR: target default (reasons.json:1): reasons/${reason}`,
    );
    expect(await lastLine("build", "-f", "reasons/none", "reasons")).toStartWith(
      "ERROR: cannot read the Dockerfile reasons/none: ",
    );
  });

  test("a build that fails is an error as buildx prints it", async () => {
    writeFiles(home, { "bad/Dockerfile": "FROM scratch\nCOPY missing /\n" });
    const { exitCode, stderr } = await buildx("buildx", "build", "bad");
    expect(exitCode).toBe(1);
    expect(stderr).toMatch(/^ERROR: .*missing/m);
  });

  test("bake builds the targets of a file on standard input", async () => {
    writeFiles(home, {
      "docker-bake.json": JSON.stringify({ target: { default: { context: "app", tags: ["baked:1"] } } }),
    });
    expect(await buildx("buildx", "bake", "-f", "docker-bake.json")).toMatchObject({
      exitCode: 0,
      stdout: "",
    });
    expect((await bough("images", "-q")).stdout.length).toBeGreaterThan(0);
    expect((await bough("inspect", "baked:1")).exitCode).toBe(0);
  });

  test("bake builds a file in HCL with functions, a matrix and contexts of other targets", async () => {
    await makeBusyboxLayout(join(home, "busybox"));
    const project = join(home, "hcl");
    cpSync(join(import.meta.dir, "../cases/bake/hcl-build"), project, { recursive: true });
    const context = `base.contexts.shell=oci-layout://${join(home, "busybox")}:latest`;
    const words = ["--set", context, "--set", "*.output=type=local,dest=out", "--allow", `fs=${home}`];
    const ended = await run([plugin, "buildx", "bake", ...words], { BASE: "shell" }, project);
    expect(ended).toMatchObject({ exitCode: 0, stdout: "" });
    expect(readFileSync(join(project, "out/all"), "utf8")).toBe(
      "Web 8080 1.2.3 1 text\nApi 9001 1.2.3 1 text\nbase 1.2.3\n",
    );
  });

  test("bake builds what docker compose hands over on standard input, and writes the metadata that it reads", async () => {
    writeFiles(home, {
      "project/app/f": "f",
      "project/Dockerfile.app": "FROM scratch\nCOPY f /f\n",
    });
    // As docker compose 2.40 writes it, for a service with `network: host`.
    const target = (name: string) => ({
      context: join(home, "project/app"),
      dockerfile: join(home, "project/Dockerfile.app"),
      labels: { "com.docker.compose.service": name },
      tags: [`project-${name}`],
      network: "host",
      output: ["type=docker"],
    });
    const definition = {
      group: { default: { targets: ["one", "two"] } },
      target: { one: target("one"), two: { ...target("two"), contexts: { one: "target:one" } } },
    };
    const child = Bun.spawn(
      [
        ...[
          plugin,
          "bake",
          "--file",
          "-",
          "--progress",
          "rawjson",
          "--metadata-file",
          join(home, "metadata.json"),
        ],
        ...["--allow", `fs.read=${join(home, "project/app")}`],
      ],
      {
        cwd: join(home, "project/app"),
        env: {
          PATH: process.env.PATH ?? "",
          HOME: home,
          BOUGH_HOME: join(home, "state"),
          DOCKER_CONTEXT: "default",
        },
        stdin: Buffer.from(JSON.stringify(definition)),
        stdout: "pipe",
        stderr: "pipe",
      },
    );
    const { exitCode, stdout, stderr } = await endOf(child as Parameters<typeof endOf>[0]);
    expect({ exitCode, stdout }).toEqual({ exitCode: 0, stdout: "" });
    expect(stderr).toContain('"name":"[two 1/1] COPY f /f"');
    const metadata = JSON.parse(readFileSync(join(home, "metadata.json"), "utf8"));
    expect(Object.keys(metadata)).toEqual(["one", "two"]);
    expect(metadata.one["image.name"]).toBe("docker.io/library/project-one:latest");
    expect((await bough("inspect", "project-two")).stdout).toContain("com.docker.compose.service");
  });
});
