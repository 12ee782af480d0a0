/**
 * From a Dockerfile to work in its image, as a person would type it, with the executable that users download: on the
 * embedded engine, and against `bough serve` over HTTP.
 */
import { afterAll, beforeAll, describe, expect, setDefaultTimeout, test } from "bun:test";
import { existsSync, mkdirSync, readFileSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { compileBough } from "../support/compiled.ts";
import { endOf } from "../support/ended.ts";
import { writeFiles } from "../support/files.ts";

setDefaultTimeout(180_000);

const programs = temporaryDirectory();

beforeAll(() => {
  symlinkSync(compileBough(), join(programs, "bough"));
});

const uuid = /[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/;
const token = "a-token-for-the-flow";

interface Setting {
  environment: Record<string, string>;
  close(): Promise<void>;
}

const settings: [string, (home: string) => Promise<Setting>][] = [
  ["on the embedded engine", async () => ({ environment: {}, close: async () => {} })],
  [
    "against bough serve, over HTTP",
    async (home) => {
      const server = Bun.spawn([join(programs, "bough"), "serve", "--token", token, "-q"], {
        env: { PATH: process.env.PATH ?? "", HOME: home },
        stdout: "pipe",
        stderr: "ignore",
      });
      const { value } = await server.stdout.getReader().read();
      return {
        environment: { CONTREE_URL: new TextDecoder().decode(value).trim(), CONTREE_TOKEN: token },
        async close() {
          server.kill("SIGINT");
          await server.exited;
        },
      };
    },
  ],
];

describe.each(settings)("%s", (_, prepare) => {
  let setting: Setting;
  const home = temporaryDirectory();
  const project = join(home, "project");

  const start = (words: string[]) =>
    Bun.spawn(words, {
      cwd: project,
      env: { PATH: `${programs}:${process.env.PATH}`, HOME: home, ...setting.environment },
      stdin: "ignore",
      stdout: "pipe",
      stderr: "pipe",
    });

  /** Runs a line of shell in the project. The message of a failure contains its standard error. */
  async function sh(line: string, exitCode = 0): Promise<{ stdout: string; stderr: string }> {
    const child = start(["sh", "-c", line]);
    const { stdout, stderr, ...ended } = await endOf(child);
    expect({ line, ...ended, stderr }).toEqual({ line, exitCode, stderr });
    return { stdout, stderr };
  }
  const out = async (line: string, exitCode = 0) => (await sh(line, exitCode)).stdout;

  beforeAll(async () => {
    mkdirSync(project);
    writeFiles(project, {
      Dockerfile: "FROM base:1\nCOPY app /usr/bin/app\nRUN echo made > /made\nRUN app --version\n",
      app: { text: '#!/bin/sh\necho "app 1.2 $*"\n', mode: 0o755 },
      "broken/Dockerfile": "FROM base:1\nRUN echo reached > /reached\nRUN echo no; exit 3\n",
    });
    const layout = await makeBusyboxLayout(temporaryDirectory());
    setting = { environment: {}, close: async () => {} };
    await sh(`bough --local images import ${layout} --tag base:1`);
    setting = await prepare(home);
  });
  afterAll(() => setting.close());

  test("builds, uses, runs, and looks at the history", async () => {
    expect((await sh("bough build . --tag app:dev")).stderr).toMatch(/tagged \S+ as app:dev/);
    expect(await out("bough -S k use tag:app:dev")).toMatch(
      /^SESSION +BRANCH +IMAGE\nk +main +[0-9a-f-]{36}\n$/,
    );
    const ran = await sh("bough -S k run -D -- app --version");
    expect(ran).toEqual({ stdout: "app 1.2 --version\n", stderr: "" });
    const [session = ""] = /build:[0-9a-f]{16}/.exec(await out("bough session list --filter build:")) ?? [];
    const history = await out(`bough session show ${session}`);
    expect(history).toContain("FROM base:1");
    expect(history).toContain("RUN app --version");
    expect(history).toMatch(/layer:[0-9a-f]{64}\n/);
    expect((await out("bough agent")).split("\n").length).toBeLessThan(150);
  });

  test("runs from one image to the next, on branches, and rolls back", async () => {
    await sh("bough -S k run -- sh -c 'echo one > /state'");
    await sh("bough -S k session branch try && bough -S k session checkout try");
    await sh("bough -S k run -s -- 'echo two > /state; exit 4'", 4);
    expect(await out("bough -S k cat /state")).toBe("two\n");
    await sh("bough -S k session checkout main");
    expect(await out("bough -S k cat /state")).toBe("one\n");
    await sh("bough -S k run -- rm /state && bough -S k session rollback");
    expect(await out("bough -S k run -D -- cat /state")).toBe("one\n");
    const history = JSON.parse(await out("bough -S k session show -f json"));
    expect(history.history.map(({ title }: { title: string }) => title)).toEqual([
      "use tag:app:dev",
      "sh -c 'echo one > /state'",
      "echo two > /state; exit 4",
      "rm /state",
    ]);
    expect(await out("bough -S k session show")).toMatch(/├─○ \d+ .* try\n/);
  });

  test("run gets local files, standard input and variables, and passes bytes unchanged", async () => {
    expect(await out("printf 'a\\377b' | bough -S k run -D -- cat | od -An -tx1")).toBe(" 61 ff 62\n");
    expect(
      await out(
        "bough -S k run -D -F app:/opt/tool:m0700 -e WHO=me -C /opt -- sh -c './tool $WHO; stat -c %a tool'",
      ),
    ).toBe("app 1.2 me\n700\n");
    expect(await out("bough -S k run -D -F .:/src -- find /src -type f | sort")).toBe(
      "/src/Dockerfile\n/src/app\n/src/broken/Dockerfile\n",
    );
    const big = "bough -S k run -D -- head -c 3000000 /dev/zero | wc -c";
    expect((await out(big)).trim()).toBe("3000000");
  });

  test("sets tags, and reads files of images without starting anything", async () => {
    await sh('bough tag "$(bough -q -S k use)" app:fixed');
    expect(await out("bough images --tag app: -q | sort -u | wc -l")).toMatch(/2/);
    expect(await out("bough ls -q app:fixed:/usr/bin")).toBe("app\n");
    await sh("bough cp app:fixed:/usr/bin/app ./copied && ./copied && bough cp app:fixed:/etc copied-etc");
    expect(readFileSync(join(project, "copied-etc/passwd"), "utf8")).toContain("root:x:0:0");
    expect(existsSync(join(project, "copied-etc/group"))).toBe(true);
    await sh("bough untag app:fixed && rm -r copied copied-etc");
    expect(await out("bough images --tagged")).not.toContain("app:fixed");
  });

  test("shows running operations, their output and their end", async () => {
    const operation = (await out("bough -q -S k run -d -D -- sh -c 'echo begun; sleep 60'")).trim();
    expect(operation).toMatch(uuid);
    expect(await out("bough ps -q")).toContain(operation);
    expect(JSON.parse(await out(`bough show ${operation} -f json`))).toMatchObject({
      hasEnded: false,
      exitCode: null,
    });
    expect(await out(`until bough logs ${operation} | grep begun; do sleep 0.1; done`)).toBe("begun\n");
    expect(await out(`bough kill ${operation.slice(0, 8)}`)).toBe(`${operation}\n`);
    expect(await out(`bough logs --follow ${operation}`)).toBe("begun\n");
    expect(await out(`bough show ${operation}`)).toContain("CANCELLED");
    // The variable is the command's own: it chooses no service for bough.
    const words = "run -d -D -e CONTREE_TOKEN=its-own -- sh -c 'sleep 0.3; echo $CONTREE_TOKEN'";
    const short = (await out(`bough -q -S k ${words}`)).trim();
    expect(await out(`bough logs --follow ${short}`)).toBe("its-own\n");
    expect(JSON.parse(await out(`bough show ${short} -f json`))).toMatchObject({
      hasEnded: true,
      exitCode: 0,
    });
  });

  test("Ctrl-C, a reader that stops and a closed standard input leave nothing running", async () => {
    const child = start(["sh", "-c", "exec bough -S k run -- sh -c 'touch /lost; echo begun; sleep 1000'"]);
    const log = new Response(child.stderr).text();
    for await (const chunk of child.stdout) if (Buffer.from(chunk).includes("begun")) child.kill("SIGINT");
    expect([await child.exited, await log]).toEqual([
      130,
      expect.stringMatching(/operation \S+ is cancelled/),
    ]);
    expect(await out("bough -S k ls -q /")).not.toContain("lost");
    expect(await sh("bough -S k run -D -- yes | head -1")).toEqual({ stdout: "y\n", stderr: "" });
    expect(await out("bough -S k run -D -- wc -c <&-")).toBe("0\n");
    expect(await out("bough ps -q")).toBe("");
  });

  test("a failed build prints the command line that runs in the place of the failed step", async () => {
    const { stderr } = await sh("bough build broken", 1);
    const [line = ""] = /^ {2}(bough .* run -D --failed-step --) COMMAND$/m.exec(stderr)?.slice(1) ?? [];
    expect(await out(`${line} cat /reached`)).toBe("reached\n");
    // Its changes go to a new branch, and the layer stays as the build made it.
    const [session = ""] = /build:[0-9a-f]{16}/.exec(line) ?? [];
    await sh(`bough -S ${session} run --failed-step -- touch /debugged`);
    expect(await out(`bough -S ${session} session branch`)).toMatch(/debug:[0-9a-f]{12} +\*/);
    const again = await sh("bough build broken", 1);
    expect(again.stderr).toContain("cached layer:");
    expect(await out(`${line} ls /`)).not.toContain("debugged");
  });
});
