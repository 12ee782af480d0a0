/** `bough mcp`, driven by the SDK's own client over standard input and output. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { manual } from "../../src/cli/about/agent-manual.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { Agent } from "../support/agent.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const token = "t0ken-t0ken-t0ken";
const tools = [
  ...["build", "check", "explain", "images", "list_files", "logs", "operations", "read_file", "rollback"],
  ...["run", "sessions", "write_files"],
];

describe("on a service", () => {
  let service: FakeService;
  let agent: Agent;
  let directory: string;
  let outcome: RunOutcome;
  beforeAll(async () => {
    service = await startFakeService({ run: () => outcome, token });
    service.state.addImage("base:1");
    service.state.tree.set("/etc", { type: "directory" });
    service.state.tree.set("/etc/os-release", { type: "file", content: "NAME=test\n" });
    service.state.tree.set("/etc/blob", { type: "file", content: new Uint8Array([0, 255, 1]) });
    service.state.tree.set("/etc/secret", { type: "file", content: `token=${token}\n` });
    directory = temporaryDirectory();
    writeFiles(directory, {
      "app/Dockerfile": "FROM base:1\nCOPY a /a\nRUN make\nRUN make install\n",
      "app/a": "one",
      "bad/Dockerfile": "FROM base:1\nRUNN make\n",
    });
    agent = await Agent.start(["mcp"], directory, {
      ...{ CONTREE_URL: service.url, CONTREE_TOKEN: token, BOUGH_HOME: temporaryDirectory() },
    });
  });
  beforeEach(() => {
    outcome = { stdout: "fine\n" };
    service.intercept = undefined;
  });
  afterAll(() => Promise.all([agent.close(), service.close()]));

  test("lists its tools, each with its description, schemas and annotations", async () => {
    const listed = (await agent.client.listTools()).tools;
    expect(listed.map(({ name }) => name).sort()).toEqual(tools);
    for (const { name, description, inputSchema, outputSchema, annotations } of listed) {
      expect({ name, description: description?.length }).toEqual({ name, description: expect.any(Number) });
      expect(inputSchema).toMatchObject({ type: "object", additionalProperties: false });
      expect(outputSchema).toMatchObject({ type: "object" });
      expect({ name, readOnly: annotations?.readOnlyHint }).toEqual({
        name,
        readOnly: !["build", "explain", "run", "write_files", "rollback"].includes(name),
      });
    }
    expect(agent.client.getInstructions()).toContain("docker: true");
  });

  test("explains without running, builds with progress, and explains what has changed", async () => {
    const app = { context: "app" };
    expect(await agent.resultOf("explain", app)).toMatchObject({
      allCached: false,
      first: { line: 3, instruction: "RUN make", reason: expect.stringContaining("first build") },
    });
    expect(service.requestsTo("POST /v1/instances")).toEqual([]);
    const heard: { progress: number; message?: string | undefined; total?: number | undefined }[] = [];
    const { result } = await agent.call(
      "build",
      { ...app, tags: ["app:1"] },
      { onprogress: (at) => heard.push(at) },
    );
    expect(result).toMatchObject({
      ...{ image: expect.stringMatching(/^[0-9a-f-]{36}$/), tags: ["app:1"], warnings: [] },
      session: expect.stringMatching(/^build:[0-9a-f]{16}$/),
    });
    expect(
      (result.steps as { instruction: string; cached: boolean | null }[]).map((step) => [
        step.instruction,
        step.cached,
      ]),
    ).toEqual([
      ["FROM base:1", true],
      ["COPY a /a", null],
      ["RUN make", false],
      ["RUN make install", false],
    ]);
    expect(heard.map(({ message }) => message)).toContain("[3/4] RUN make");
    expect(heard.at(-1)).toMatchObject({ progress: 4, total: 4 });
    for (const [index, { progress }] of heard.entries())
      expect(progress).toBeGreaterThan(heard[index - 1]?.progress ?? 0);
    // The explanation is not mistaken for a build that was killed.
    expect(service.requestsTo("POST /v1/instances").length).toBe(2);
    expect(await agent.resultOf("explain", app)).toEqual({
      ...{ allCached: true, cached: ["RUN make", "RUN make install"], first: null },
    });
    writeFiles(directory, { "app/a": "two" });
    expect(await agent.resultOf("explain", app)).toMatchObject({
      cached: [],
      first: { line: 3, reason: expect.stringContaining("a (/a in the image) has changed") },
    });
  });

  test("builds only the named stages again", async () => {
    const app = { context: "app", docker: false, no_cache_filter: ["0"] };
    await agent.resultOf("build", app);
    const { steps } = (await agent.resultOf("build", app)) as { steps: { cached: boolean | null }[] };
    expect(steps.map(({ cached }) => cached)).toContain(false);
    const again = await agent.resultOf("build", { context: "app", docker: true });
    expect(again).toMatchObject({
      steps: expect.not.arrayContaining([expect.objectContaining({ cached: false })]),
    });
  });

  test("a failed step is an error with its place and its output", async () => {
    outcome = { exitCode: 3, stdout: "compiling\n", stderr: "no such header\n" };
    const { isError, text } = await agent.call("build", { context: "app", no_cache: true });
    expect(isError).toBe(true);
    expect(text).toContain("app/Dockerfile:3: the command failed with exit code 3");
    expect(text).toContain("compiling\n");
    expect(text).toContain("no such header\n");
    const [, session] = /the tool `run` with session: (\S+), failed_step: true$/m.exec(text) ?? [];
    expect(text).not.toContain("bough -");
    outcome = { stdout: "one\n" };
    const ran = await agent.resultOf("run", { session, failed_step: true, command: ["cat", "/a"] });
    expect(ran).toMatchObject({ exitCode: 0, stdout: "one\n" });
    expect(service.requestsTo("POST /v1/instances").at(-1)?.json).toMatchObject({ files: { "/a": {} } });
  });

  test("a command that its timeout stops is an error with what it has printed until then", async () => {
    outcome = { timedOut: true, stdout: "test 1 of 3\ntest 2 of 3\n", stderr: "waiting for the database\n" };
    const given = { image: "base:1", command: ["make", "test"], timeout_seconds: 7 };
    const { isError, text } = await agent.call("run", given);
    expect(isError).toBe(true);
    expect(text).toStartWith("the command was stopped after 7 seconds (operation ");
    expect(text).toContain("\nstdout:\ntest 1 of 3\ntest 2 of 3\nstderr:\nwaiting for the database\n");
    expect(text).toContain("more time with timeout_seconds: SECONDS. The tool `logs` has");
    const short = await agent.call("run", { ...given, max_output_bytes: 12 });
    expect(short.text).toContain("\nstdout, its end:\ntest 2 of 3\nstderr, its end:\n");
  });

  test("a build that the client cancels is cancelled on the service, and the server continues", async () => {
    const started = Promise.withResolvers<void>();
    outcome = { until: new Promise(() => {}) };
    service.intercept = (request) => {
      if (request.url.endsWith("/events?follow=true")) started.resolve();
      return undefined;
    };
    const stop = new AbortController();
    const build = agent.call("build", { context: "app", no_cache: true }, { signal: stop.signal });
    await started.promise;
    stop.abort("enough");
    await expect(build).rejects.toThrow("enough");
    await until(() => service.requestsTo(/^DELETE \/v1\/operations\//).length === 1);
    outcome = {};
    expect(await agent.resultOf("operations")).toEqual({ operations: [] });
  });

  test("two builds of one context run one after the other", async () => {
    const before = service.requestsTo("POST /v1/instances").length;
    writeFiles(directory, { "twice/Dockerfile": "FROM base:1\nRUN once\n" });
    const builds = [1, 2].map(() => agent.resultOf("build", { context: "twice" }));
    const [one, other] = await Promise.all(builds);
    expect(other?.image).toEqual(one?.image);
    expect(service.requestsTo("POST /v1/instances").length).toBe(before + 1);
  });

  test("works in a session: runs, keeps, writes, reads, rolls back", async () => {
    const session = "work";
    outcome = { exitCode: 7, stdout: "out\n", stderr: "err\n" };
    const thrown = await agent.resultOf("run", { session, image: "base:1", command: ["make", "test"] });
    expect(thrown).toMatchObject({
      exitCode: 7,
      stdout: "out\n",
      stderr: "err\n",
      image: null,
      session: null,
    });
    const kept = await agent.resultOf("run", {
      ...{
        session,
        image: "base:1",
        script: "make | tail",
        keep: true,
        env: { A: "1" },
        cwd: "/srv",
        stdin: "in",
      },
    });
    expect(kept).toMatchObject({ session, branch: "main", image: expect.any(String) });
    const [asked] = service.requestsTo("POST /v1/instances").slice(-1);
    expect(asked?.json).toMatchObject({
      ...{ disposable: false, shell: true, command: "make | tail", cwd: "/srv", env: { A: "1" } },
      stdin: { value: Buffer.from("in").toString("base64") },
    });
    outcome = {};
    const written = await agent.resultOf("write_files", {
      session,
      files: [
        { path: "/srv/a b", content: "hé", mode: "755", uid: 5 },
        { path: "/srv/raw", content: "AP8B", encoding: "base64" },
      ],
    });
    expect(written).toMatchObject({ session, branch: "main", files: 2, bytes: 6 });
    const placed = service.requestsTo("POST /v1/instances").at(-1)?.json;
    expect(placed).toMatchObject({
      files: { "/srv/a b": { uid: 5, gid: 0, mode: "0755" }, "/srv/raw": { mode: "0644" } },
    });
    const sent = [...service.state.files.values()].map(({ content }) =>
      Buffer.from(content ?? []).toString("base64"),
    );
    expect(sent).toEqual(expect.arrayContaining([Buffer.from("hé").toString("base64"), "AP8B"]));
    const shown = await agent.resultOf("sessions", { session });
    expect((shown.session as { history: { title: string }[] }).history.map(({ title }) => title)).toEqual([
      ...["use base:1", "make | tail", "write 2 files: /srv/a b /srv/raw"],
    ]);
    expect(await agent.resultOf("rollback", { session })).toEqual({
      session,
      branch: "main",
      image: kept.image,
    });
    const { sessions } = await agent.resultOf("sessions", { filter: session });
    expect(sessions).toMatchObject([{ key: session, image: kept.image }]);

    expect(await agent.resultOf("read_file", { session, path: "/etc/os-release", offset: 5 })).toMatchObject({
      ...{ content: "test\n", encoding: "utf-8", bytes: 5, truncated: false },
    });
    expect(await agent.resultOf("read_file", { session, path: "/etc/blob", max_bytes: 2 })).toMatchObject({
      ...{ content: "AP8=", encoding: "base64", bytes: 2, truncated: true },
    });
    const { files: listed } = await agent.resultOf("list_files", { image: "base:1", path: "/etc" });
    expect((listed as { name: string }[]).map(({ name }) => name)).toEqual(["blob", "os-release", "secret"]);

    const read = (given: object) => agent.resultOf("read_file", { session, path: "/etc/menu", ...given });
    service.state.tree.set("/etc/menu", { type: "file", content: Buffer.from("caf\xe9", "latin1") });
    expect(await read({})).toMatchObject({ content: "Y2Fm6Q==", encoding: "base64", truncated: false });
    service.state.tree.set("/etc/menu", { type: "file", content: "é café" });
    expect(await read({ offset: 1, max_bytes: 6 })).toMatchObject({ encoding: "utf-8", truncated: true });
  });

  test("shows operations with their output, and images", async () => {
    outcome = { stdout: "x".repeat(2000), stderr: "oh\n" };
    const { operation, stdout, truncated } = await agent.resultOf("run", {
      ...{ image: "base:1", command: ["yes"], max_output_bytes: 100 },
    });
    expect({ stdout, truncated }).toEqual({ stdout: "x".repeat(100), truncated: true });
    outcome = { stdout: "\u{1f600}".repeat(50) };
    const smileys = { image: "base:1", command: ["yes"], max_output_bytes: 43 };
    expect(await agent.resultOf("run", smileys)).toMatchObject({ stdout: "\u{1f600}".repeat(10) });
    const prefix = String(operation).slice(0, 36);
    expect(await agent.resultOf("logs", { operation: prefix })).toEqual({
      ...{
        operation,
        stdout: "x".repeat(2000),
        stderr: "oh\n",
        truncated: false,
        hasEnded: true,
        exitCode: 0,
      },
    });
    expect(await agent.resultOf("operations", { operation })).toMatchObject({
      operations: [{ uuid: operation, status: "SUCCESS", exitCode: 0 }],
    });
    const { images } = await agent.resultOf("images", { tag: "base:", tagged: true });
    expect(images).toMatchObject([{ tag: "base:1" }]);
  });

  test("checks a Dockerfile", async () => {
    expect(await agent.resultOf("check", { context: "app" })).toEqual({ ok: true, warnings: [], errors: [] });
    const bad = await agent.resultOf("check", { context: "bad", details: true });
    expect(bad).toMatchObject({ ok: false, errors: [{ line: 2, message: expect.stringContaining("RUNN") }] });
    expect(bad).toHaveProperty("instructions");
  });

  test.each<[string, Record<string, unknown>, string | RegExp]>([
    ["build", { contxt: "." }, 'Unrecognized key: "contxt" (did you mean context?)'],
    ["build", { context: "app", tag: "app:1" }, 'Unrecognized key: "tag" (did you mean tags?)'],
    ["rollback", { count: 1 }, 'Unrecognized key: "count" (its inputs are session, steps)'],
    ["build", { context: "none" }, "the build context none does not exist"],
    ["build", { context: "-" }, "standard input is not available here"],
    ["build", { dockerfile: "-" }, "standard input is not available here"],
    ["build", { dockerfile: "/dev/stdin" }, "standard input is not available here"],
    ["build", { context: "http://127.0.0.1:1/x.git" }, "the build context http://127.0.0.1:1/x.git: "],
    ["build", { context: "bad" }, /RUNN/],
    ["build", { context: "app", target: "none" }, /none/],
    [
      "build",
      { context: "app", build_contexts: { lib: "none" } },
      "build_contexts lib=none: there is no such",
    ],
    ["build", { context: "app", build_args: { "": "1" } }, "build_args"],
    ["build", { context: "app", timeout_seconds: 0 }, "timeout_seconds"],
    ["build", { context: "app", tags: ["NO tag"] }, /NO tag/],
    ["build", { context: "app", add_hosts: { mirror: "ten" } }, 'add_hosts takes NAME:IP, not "mirror=ten"'],
    ["build", { context: "app", shm_size: "big" }, "shm_size takes a size of at least 1 byte"],
    ["build", { context: "app", shm_size: "1g" }, /does not support shm_size/],
    ["build", { context: "app", no_cache_filter: ["a,"] }, "no_cache_filter takes the names of stages"],
    [
      "build",
      { context: "app", no_cache: true, no_cache_filter: ["0"] },
      "no_cache: true and no_cache_filter cannot be used together",
    ],
    ["build", { context: "app", locked: true }, "locked: true needs lock"],
    ["build", { context: "app", lock: "none", locked: true }, "lock none: no such file"],
    ["build", { context: "app", lock: "none", update_lock: ["x:1"] }, "update_lock=x:1: none has no entry"],
    ["build", { context: "app", secrets: ["id=a,src=none"] }, /secrets id=a: .*none/],
    ["explain", { context: "app", dockerfile: "none" }, "cannot read the Dockerfile none"],
    ["run", { command: ["a"], script: "b" }, "command and script cannot be used together"],
    ["run", { session: "empty", command: ["a"] }, "session empty has no image"],
    ["run", { image: "nothing:1", command: ["a"] }, "has no image nothing:1"],
    ["run", { image: "base:1", command: "ls" }, "expected array"],
    ["run", { image: "base:1", command: ["a"], network: "host" }, /network/],
    ["read_file", { image: "base:1", path: "etc" }, 'must start with "/"'],
    ["read_file", { image: "base:1", path: "/etc" }, "/etc"],
    ["read_file", { image: "base:1", path: "/none" }, "/none"],
    ["list_files", { image: "base:1", path: "/none" }, "/none"],
    ["write_files", { image: "base:1", files: [] }, "files"],
    ["write_files", { image: "base:1", files: [{ path: "/d/", content: "" }] }, "must not end with a slash"],
    [
      "write_files",
      { image: "base:1", files: [{ path: "/a", content: "?", encoding: "base64" }] },
      "not base64",
    ],
    ["rollback", { session: "none" }, 'there is no session "none"'],
    ["sessions", { session: "none" }, 'there is no session "none"'],
    ["operations", { operation: "00000000-0000-4000-8000-00000000dead" }, "there is no operation"],
    ["logs", { operation: "00000000-0000-4000-8000-00000000dead" }, "there is no operation"],
    ["nothing", {}, "Tool nothing not found"],
  ])("%s %j is an error that says what is wrong", async (name, given, message) => {
    const { isError, text } = await agent.call(name, given);
    expect({ isError, text }).toEqual({
      isError: true,
      text: typeof message === "string" ? expect.stringContaining(message) : expect.stringMatching(message),
    });
    expect(text).not.toContain("bough itself failed");
    expect(text).not.toMatch(/`bough |\s(--[a-z]|-S )/);
  });

  test("has the manual and every session's history as resources", async () => {
    const [page] = (await agent.client.readResource({ uri: "bough://manual" })).contents;
    expect(page).toMatchObject({ mimeType: "text/markdown", text: manual });
    const { resources } = await agent.client.listResources();
    const uris = resources.map(({ uri }) => uri);
    expect(uris).toEqual(expect.arrayContaining(["bough://manual", "bough://sessions/work"]));
    const built = uris.find((uri) => uri.includes("build%3A")) ?? "";
    const [history] = (await agent.client.readResource({ uri: built })).contents;
    expect(JSON.parse(String(history && "text" in history ? history.text : ""))).toMatchObject({
      key: expect.stringMatching(/^build:/),
      history: expect.any(Array),
    });
    await expect(agent.client.readResource({ uri: "bough://sessions/none" })).rejects.toThrow(
      "there is no session",
    );
  });

  test("the token is in no message, even if the service, a command or a file contains it", async () => {
    outcome = { stdout: `it is ${token}\n`, stderr: token };
    expect(await agent.resultOf("run", { image: "base:1", command: ["env"] })).toMatchObject({
      stdout: "it is ***\n",
    });
    expect(await agent.resultOf("read_file", { image: "base:1", path: "/etc/secret" })).toMatchObject({
      content: "token=***\n",
    });
    service.intercept = (request) =>
      request.method === "POST" && request.url.endsWith("/v1/instances")
        ? Response.json({ error: `bad token ${token}`, status: 400 }, { status: 400 })
        : undefined;
    expect((await agent.call("run", { image: "base:1", command: ["env"] })).isError).toBe(true);
    expect((await agent.call("build", { context: "app", no_cache: true })).isError).toBe(true);
    expect(agent.received.length).toBeGreaterThan(10_000);
    expect(agent.received + agent.stderr).not.toContain(token);
  });
});

test("running operations and the server end with the client", async () => {
  const service = await startFakeService({ run: () => ({ until: new Promise(() => {}) }) });
  service.state.addImage("base:1");
  const environment = { CONTREE_URL: service.url, CONTREE_TOKEN: token, BOUGH_HOME: temporaryDirectory() };
  const agent = await Agent.start(["mcp"], temporaryDirectory(), environment);
  const run = agent.call("run", { image: "base:1", command: ["sleep"] });
  await until(() => service.requestsTo(/\/events$/).length === 1);
  const closed = agent.close();
  await expect(run).rejects.toThrow("closed");
  await closed;
  await until(() => service.requestsTo(/^DELETE \/v1\/operations\//).length === 1);
  await service.close();
});

describe("with input that is not from the SDK's client", () => {
  const ask = (message: object) => `${JSON.stringify({ jsonrpc: "2.0", ...message })}\n`;
  const hello = ask({
    ...{ id: 1, method: "initialize" },
    params: { protocolVersion: "2025-06-18", capabilities: {}, clientInfo: { name: "raw", version: "1" } },
  });

  test("standard output has only lines of the protocol, whatever the input is", async () => {
    const input = `no json\n{"a":1}\n\n${hello}${ask({ id: 2, method: "no/such" })}${ask({ id: 3, method: "ping" })}`;
    const words = ["--local", "mcp"];
    const { exitCode, stdout, stderr } = await runBough(words, { workingDirectory: "/", stdin: input });
    const answers = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line));
    expect(answers.sort((one, other) => one.id - other.id)).toMatchObject([
      {
        jsonrpc: "2.0",
        id: 1,
        result: { serverInfo: { name: "bough" }, capabilities: { tools: {}, resources: {} } },
      },
      { jsonrpc: "2.0", id: 2, error: { code: -32601 } },
      { jsonrpc: "2.0", id: 3, result: {} },
    ]);
    expect({
      exitCode,
      warned: stderr.match(/^\[WARN\] ignored an invalid message: .{10,}/gm)?.length,
    }).toEqual({
      exitCode: 0,
      warned: 3,
    });
    expect(stderr).toContain("ignored an invalid message: it is not JSON-RPC 2.0\n");
  });

  test("a terminal gets an explanation of how to configure it", async () => {
    const { exitCode, stdout, stderr } = await runBough(["mcp"], {
      workingDirectory: "/",
      hasInputTerminal: true,
    });
    expect({ exitCode, stdout }).toEqual({ exitCode: 2, stdout: "" });
    expect(stderr).toContain('{"command": "bough", "args": ["mcp"]}');
  });
});

test("works on the engine", async () => {
  const environment = { BOUGH_HOME: temporaryDirectory() };
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const imported = ["--local", "images", "import", layout, "--tag", "busybox:1"];
  expect((await runBough(imported, { workingDirectory: "/", environment })).exitCode).toBe(0);
  const directory = temporaryDirectory();
  writeFiles(directory, {
    Dockerfile:
      "FROM busybox:1 AS one\nRUN echo made > /made\nFROM busybox:1\nCOPY --from=one /made /copied\n",
  });
  const agent = await Agent.start(["--local", "mcp"], directory, environment);
  try {
    const built = await agent.resultOf("build", { docker: true, tags: ["app:1"] });
    const session = "s";
    expect(await agent.resultOf("read_file", { image: "app:1", path: "/copied" })).toMatchObject({
      content: "made\n",
    });
    const written = await agent.resultOf("write_files", {
      session,
      image: String(built.image),
      files: [{ path: "/new/bin/hello", content: '#!/bin/sh\necho "hello $1"\n', mode: "755" }],
    });
    expect(await agent.resultOf("run", { session, command: ["/new/bin/hello", "you"] })).toMatchObject({
      ...{ exitCode: 0, stdout: "hello you\n", image: null },
    });
    const stop = new AbortController();
    const run = agent.call(
      "run",
      { session, script: "echo started > /dev/stderr; sleep 100" },
      { signal: stop.signal },
    );
    await until(async () => JSON.stringify(await agent.resultOf("operations")).includes("sleep 100"));
    stop.abort("enough");
    await expect(run).rejects.toThrow("enough");
    await until(async () => JSON.stringify(await agent.resultOf("operations")) === '{"operations":[]}');
    expect(await agent.resultOf("sessions", { session })).toMatchObject({
      session: {
        history: [
          { kind: "use", image: built.image },
          { image: written.image, branches: ["main"] },
        ],
      },
    });
  } finally {
    await agent.close();
  }
});

async function until(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await Bun.sleep(20);
}
