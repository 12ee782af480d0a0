/** The token and the values of variables named like secrets: where bough sends them, and where they must never be. */
import { afterEach, beforeEach, describe, expect, test } from "bun:test";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { writeFiles } from "../support/files.ts";

const token = "tok-5ecret-0123456789";
let context: string;
let state: string;
let service: FakeService;
beforeEach(async () => {
  context = temporaryDirectory();
  state = temporaryDirectory();
  service = await startFakeService({ token, run: () => ({ stdout: "done\n", delayMs: 5 }) });
  service.state.addImage("base:1");
});
afterEach(async () => {
  await service.close();
});

async function bough(...words: string[]) {
  const ended = await runBough(["--url", service.url, "-L", "debug", ...words], {
    workingDirectory: context,
    environment: { BOUGH_HOME: state, CONTREE_TOKEN: token, CONTREE_URL: service.url },
  });
  return { ...ended, shown: ended.stderr + ended.stdout };
}

/** Returns the text of all files that bough keeps. */
function stored(directory = state): string {
  return readdirSync(directory, { recursive: true })
    .map((name) => join(directory, String(name)))
    .filter((path) => statSync(path).isFile())
    .map((path) => readFileSync(path, "latin1"))
    .join("\n");
}

describe("the token", () => {
  beforeEach(() => {
    writeFiles(context, {
      Dockerfile: "FROM base:1\nCOPY a.txt /\nARG X=1\nRUN one $X\nRUN two\n",
      "a.txt": "a",
    });
  });

  /** Responses with which a service may try to get the token repeated. */
  const responses: [what: string, respond: (request: Request) => Response | undefined][] = [
    ["works normally", () => undefined],
    [
      "repeats it in errors",
      ({ headers }) => Response.json({ error: `you sent ${headers.get("authorization")}` }, { status: 400 }),
    ],
    [
      "repeats it in its page",
      ({ headers }) => new Response(`<title>${headers.get("authorization")}</title>`, { status: 502 }),
    ],
    ["repeats it in invalid JSON", ({ headers }) => new Response(`${headers.get("authorization")} {`)],
    [
      "repeats it in a redirect",
      ({ headers }) =>
        Response.redirect(`http://elsewhere.invalid/?t=${headers.get("authorization")?.slice(7)}`, 307),
    ],
    [
      "repeats it in Retry-After",
      ({ headers }) =>
        new Response("", {
          status: 429,
          headers: { "retry-after": `999999 ${headers.get("authorization")}` },
        }),
    ],
    ["refuses it", () => Response.json({ error: `no such token ${token}` }, { status: 401 })],
  ];

  test.each(responses)(
    "is in no output and no file when the service %s",
    async (_, respond) => {
      for (const call of [
        /^GET \/v1\/images/,
        /^POST \/v1\/files/,
        /^POST \/v1\/instances/,
        /^GET \/v1\/operations/,
      ]) {
        service.intercept = (request, { method, path }) =>
          call.test(`${method} ${path}`) && request.headers.has("authorization")
            ? respond(request)
            : undefined;
        const controller = new AbortController();
        const timer = setTimeout(() => controller.abort(new Error("enough")), 300);
        for (const progress of ["plain", "json"]) {
          const { stderr, stdout } = await runBough(
            ["--url", service.url, "-L", "debug", "build", ".", "--no-cache", "--progress", progress],
            {
              workingDirectory: context,
              environment: { BOUGH_HOME: state, CONTREE_TOKEN: token, CONTREE_URL: service.url },
              signal: controller.signal,
            },
          );
          expect(stderr + stdout).not.toContain(token);
        }
        clearTimeout(timer);
      }
      expect(stored()).not.toContain(token);
    },
    180_000,
  );

  test("is sent to the service in one header, and nowhere else", async () => {
    const elsewhere: string[] = [];
    const source = Bun.serve({
      hostname: "127.0.0.1",
      port: 0,
      async fetch(request) {
        elsewhere.push(
          `${request.url} ${JSON.stringify(Object.fromEntries(request.headers))} ${await request.text()}`,
        );
        if (new URL(request.url).pathname === "/moved") return Response.redirect("/file", 302);
        return new Response("content", { headers: { etag: '"1"' } });
      },
    });
    writeFiles(context, {
      Dockerfile: `FROM base:1\nADD ${source.url}file ${source.url}moved /\nRUN use them\n`,
    });
    expect((await bough("build", ".", "--tag", "app")).exitCode).toBe(0);
    expect((await bough("build", ".")).exitCode).toBe(0);
    await source.stop(true);
    expect(elsewhere.length).toBeGreaterThan(2);
    expect(elsewhere.join("\n")).not.toContain(token);
    for (const { headers, ...request } of service.requests) {
      const { authorization, ...others } = headers;
      expect(authorization).toBe(`Bearer ${token}`);
      expect(JSON.stringify([request, others])).not.toContain(token);
    }
  });

  test("is in no argument of a process", async () => {
    const child = Bun.spawn([compileBough(), "build", "."], {
      cwd: context,
      env: { PATH: process.env.PATH, BOUGH_HOME: state, CONTREE_URL: service.url, CONTREE_TOKEN: token },
      stdout: "pipe",
      stderr: "pipe",
    });
    const seen = new Set<string>();
    while (child.exitCode === null) {
      for (const line of commandLinesOfTree(child.pid)) seen.add(line);
      await Bun.sleep(2);
    }
    expect([...seen].join("\n")).not.toContain(token);
    expect(seen.size).toBeGreaterThan(0);
  });

  test("is not in the report of an internal error", async () => {
    const broken = await runBough(["--url", service.url, "-L", "debug", "build", "."], {
      workingDirectory: context,
      environment: { BOUGH_HOME: state, CONTREE_TOKEN: token, CONTREE_URL: service.url },
      fetch: (_, init) => {
        throw new TypeError(`cannot use ${JSON.stringify(init?.headers ?? {})} Bearer ${token}`);
      },
    });
    expect(broken.exitCode).toBe(1);
    expect(broken.stderr).not.toContain(token);
  });
});

describe("values of ARG and ENV named like secrets", () => {
  const secret = "hunter2hunter2";
  const dockerfile = [
    "FROM base:1",
    "ARG API_TOKEN",
    `ENV DB_PASSWORD=${secret} MODE=fast`,
    `ARG NPM_TOKEN="${secret}"`,
    `ENV OTHER_SECRET ${secret}`,
    `RUN NPM_TOKEN=${secret} npm install --token=$API_TOKEN`,
    `RUN curl -H "Authorization: $API_TOKEN" https://deploy:${secret}@example.test/`,
    "RUN fails",
    "",
  ].join("\n");

  test.each(["plain", "json"])("are masked in output and stored files (--progress %s)", async (progress) => {
    await service.close();
    service = await startFakeService({
      token,
      run: ({ command }) => ({ exitCode: command === "fails" ? 1 : 0 }),
    });
    service.state.addImage("base:1");
    writeFiles(context, { Dockerfile: dockerfile });
    const words = ["build", ".", "--build-arg", `API_TOKEN=${secret}`, "--progress", progress, "--explain"];
    const first = await bough(...words);
    expect(first.exitCode).toBe(1);
    writeFiles(context, { Dockerfile: dockerfile.replace("MODE=fast", "MODE=slow") });
    const second = await bough(...words);
    const sessions = await bough("session", "list", "-f", "json");
    const [{ key }] = JSON.parse(sessions.stdout);
    const history = await bough("session", "show", key);
    for (const { shown } of [first, second, history]) {
      expect(shown).toContain("RUN");
      expect(shown).not.toContain(secret);
    }
    expect(stored()).not.toContain(secret);
    // The commands themselves get the values.
    expect(service.state.instances[0]?.env).toMatchObject({ API_TOKEN: secret, DB_PASSWORD: secret });
    expect(service.state.instances[0]?.command).toContain(secret);
  });

  test("are not masked in a command's output", async () => {
    await service.close();
    service = await startFakeService({ token, run: () => ({ stdout: `${secret}\n` }) });
    service.state.addImage("base:1");
    writeFiles(context, { Dockerfile: "FROM base:1\nRUN env\n" });
    expect((await bough("build", ".")).stderr).toContain(`[INFO] stdout:\n${secret}\n`);
  });
});

/** Returns the command lines of a process and of its descendants. */
function commandLinesOfTree(root: number): string[] {
  const processes = readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((pid) => {
      try {
        const parent = Number(
          readFileSync(`/proc/${pid}/stat`, "latin1")
            .replace(/^.*\) /s, "")
            .split(" ")[1],
        );
        return [{ pid: Number(pid), parent, line: readFileSync(`/proc/${pid}/cmdline`, "utf8") }];
      } catch {
        return [];
      }
    });
  const family = new Set([root]);
  for (let grows = true; grows; ) {
    const children = processes.filter(({ pid, parent }) => family.has(parent) && !family.has(pid));
    for (const { pid } of children) family.add(pid);
    grows = children.length > 0;
  }
  return processes.filter(({ pid }) => family.has(pid)).map(({ line }) => line);
}
