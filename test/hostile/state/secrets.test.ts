/** Values of variables named like secrets, on the engine: they are in the command's environment, and nowhere else. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { endOf } from "../../support/ended.ts";
import { commandLines } from "../../support/processes.ts";
import { rowsFor } from "../../support/rows.ts";
import { type Builder, builders } from "./builder.ts";
import { findKept } from "./kept-text.ts";

/** A unique value, which no other process on this machine has. */
const part = `5ecret-${crypto.randomUUID()}`;
const secret = `hunter2'${part}`;
const digest = new Bun.CryptoHasher("sha256").update(secret).digest("hex");

/** Commands that have the value, and prove it by printing its hash. */
const proofs: readonly (readonly [name: string, lines: string])[] = [
  ["in quotes", 'RUN printf %s "$API_TOKEN" | sha256sum'],
  ["with braces and an operator", 'RUN printf %s "${API_TOKEN:-none}" | sha256sum'],
  ["with a pattern", 'RUN printf %s "${API_TOKEN#none}${API_TOKEN%%*}" | sha256sum'],
  ["in a here-document", 'RUN <<END\nprintf %s "$API_TOKEN" | sha256sum\nEND'],
  ["in a shell's script in exec form", 'RUN ["sh", "-c", "printf %s \\"$API_TOKEN\\" | sha256sum"]'],
  ["as another user", 'USER nobody\nRUN printf %s "$API_TOKEN" | sha256sum'],
  ["through ENV", 'ENV DB_PASSWORD=$API_TOKEN\nRUN printf %s "$DB_PASSWORD" | sha256sum'],
  ["through a name unlike a secret's", 'ENV PLAIN=$API_TOKEN\nRUN printf %s "$PLAIN" | sha256sum'],
  [
    "in an address",
    'ENV URL=https://u:$API_TOKEN@host/\nRUN printf %s "$URL" | sed "s,^https://u:,,; s,@host/$,," | tr -d "\\n" | sha256sum',
  ],
];

describe.each(builders)("as %s", (who, make) => {
  let builder: Builder;
  beforeAll(async () => {
    builder = await make();
  });
  beforeEach(() => builder.reset());
  afterAll(() => builder.remove());

  const given = { API_TOKEN: secret };
  const wordsFor = (...options: string[]) => [
    "build",
    "--build-arg",
    "API_TOKEN",
    "-L",
    "debug",
    "--explain",
    ...options,
    ".",
  ];
  const build = (...options: string[]) => builder.bough(wordsFor(...options), given);

  const finds = () => findKept(builder, holds);

  const ofEachKind = ["in quotes", "in a shell's script in exec form", "as another user"];
  test.each(rowsFor(who, proofs, ofEachKind))(
    "RUN %s has the value; no output or file has it",
    async (_name, lines) => {
      builder.writeContext({ Dockerfile: `FROM busybox:1\nARG API_TOKEN\n${lines}\n` });
      const built = await build("--progress", "plain", "--metadata-file", "metadata.json");
      expect(built.exitCode).toBe(0);
      expect(built.stderr).toContain(digest);
      const shown = await Promise.all(
        [["ps", "--all"], ["ps", "--all", "-f", "json"], ["images"], ["session", "list"]].map((words) =>
          builder.bough(words),
        ),
      );
      const operations: { uuid: string }[] = JSON.parse(shown[1]?.stdout ?? "");
      for (const { uuid } of operations) {
        shown.push(await builder.bough(["show", uuid]), await builder.bough(["show", uuid, "-f", "json"]));
        shown.push(await builder.bough(["logs", uuid]));
      }
      const texts = [built, ...shown].map(({ stdout, stderr }) => stdout + stderr);
      expect(texts.filter(holds)).toEqual([]);
      expect(holds(readFileSync(join(builder.context, "metadata.json"), "utf8"))).toBe(false);
      expect(finds()).toEqual([]);
    },
  );

  test("a changed value runs the step again, and is not shown", async () => {
    builder.writeContext({ Dockerfile: "FROM busybox:1\nARG API_TOKEN\nRUN : $API_TOKEN\n" });
    const first = await build();
    const same = await build();
    const changed = await builder.bough(
      ["build", "--build-arg", "API_TOKEN", "--explain", "--progress", "json", "."],
      { API_TOKEN: `${secret}2` },
    );
    expect([first, same, changed].map(({ exitCode }) => exitCode)).toEqual([0, 0, 0]);
    expect(same.stderr).not.toContain("spawned");
    expect(changed.stderr).toContain('"spawned"');
    expect([first, same, changed].map(({ stdout, stderr }) => holds(stdout + stderr))).toEqual([
      false,
      false,
      false,
    ]);
    expect(finds()).toEqual([]);
  });

  const failures: [name: string, lines: string, expected: RegExp][] = [
    ["a command that fails", "RUN false $API_TOKEN", /exit code 1/],
    ["a missing program", 'RUN ["no-such-program", "$API_TOKEN"]', /exit code 127/],
    ["a missing file", "COPY no/$API_TOKEN /", /not found|no such/i],
    ["a source that cannot be reached", "ADD http://127.0.0.1:1/$API_TOKEN/f /", /127\.0\.0\.1:1/],
  ];
  test.each(rowsFor(who, failures, ["a missing program"]))(
    "no output or file has the value after a build that fails: %s",
    async (_name, lines, expected) => {
      builder.writeContext({ Dockerfile: `FROM busybox:1\nARG API_TOKEN\n${lines}\n` });
      // Both at the same time, since each waits before it retries an unreachable source.
      const builds = ["plain", "json"].map((progress) =>
        endOf(builder.start(wordsFor("--progress", progress), given)),
      );
      for (const { exitCode, stdout, stderr } of await Promise.all(builds)) {
        expect(exitCode).toBe(1);
        expect(stderr).toMatch(expected);
        expect((stdout + stderr).split("\n").filter(holds)).toEqual([]);
      }
      expect(finds()).toEqual([]);
    },
  );

  test("an exec form has the value in its command line, but no output or file has it", async () => {
    builder.writeContext({
      Dockerfile: 'FROM busybox:1\nARG API_TOKEN\nRUN ["test", "$API_TOKEN", "=", "none"]\n',
    });
    const ended = await build();
    expect(ended.exitCode).toBe(1);
    expect(holds(ended.stderr)).toBe(false);
    expect((await builder.bough(["ps", "--all"])).stdout).toContain("test *** = none");
    expect(finds()).toEqual([]);
  });

  test("no command line has the value, and after a kill no file has it", async () => {
    builder.writeContext({
      Dockerfile: 'FROM busybox:1\nARG API_TOKEN\nUSER nobody\nRUN sleep 6127; : "$API_TOKEN"\n',
    });
    const child = builder.start(["build", "--build-arg", "API_TOKEN", "."], given);
    try {
      while (!commandLines().includes("sleep 6127")) await Bun.sleep(5);
      expect(commandLines().filter(holds)).toEqual([]);
      expect(finds()).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(finds()).toEqual([]);
  });

  test("bough run: the command has the value, no output or file has it", async () => {
    const script = 'printf %s "$API_TOKEN" | sha256sum; : hunter2';
    const words = [
      "run",
      "--use",
      "busybox:1",
      "-e",
      "API_TOKEN",
      "-s",
      "--",
      `: '${secret.replace("'", "'\\''")}'; touch /made; ${script}`,
    ];
    const ended = await builder.bough(words, given);
    expect(ended).toMatchObject({ exitCode: 0 });
    expect(ended.stdout).toContain(digest);
    const shown = await Promise.all(
      [
        ["ps", "--all"],
        ["session", "show"],
        ["session", "show", "-f", "json"],
      ].map((line) => builder.bough(line)),
    );
    expect(shown.map(({ stdout }) => stdout).filter(holds)).toEqual([]);
    expect(finds()).toEqual([]);
  });

  const settings: [name: string, words: string[]][] = [
    ["-e", ["-e", `API_TOKEN=${secret}`]],
    ["--env=", [`--env=API_TOKEN=${secret}`]],
    ["-De", [`-De`, `API_TOKEN=${secret}`]],
  ];
  test.each(rowsFor(who, settings, ["--env="]))(
    "bough run -d %s: the process in the background has the value only in its environment",
    async (_, option) => {
      const words = [
        "run",
        "--use",
        "busybox:1",
        "-d",
        ...option,
        "-s",
        "--",
        'printf %s "$API_TOKEN" | sha256sum; sleep 60',
      ];
      const child = builder.start(words);
      const operation = (await new Response(child.stdout).text()).trim();
      expect(await child.exited).toBe(0);
      expect(commandLines().filter(holds)).toEqual([]);
      expect(commandLines().some((line) => /API_TOKEN /.test(line))).toBe(true);
      const logs = builder.start(["logs", "--follow", operation]);
      await readUntil(logs.stdout, digest);
      expect(await builder.bough(["kill", operation])).toMatchObject({ exitCode: 0 });
      await logs.exited;
      expect(finds()).toEqual([]);
    },
  );
});

/** Returns true if a text has the value, also as quoted for a shell or escaped in a URL. */
function holds(text: string): boolean {
  return [secret, secret.replace("'", "'\\''"), encodeURIComponent(secret), part].some((form) =>
    text.includes(form),
  );
}

/** Reads up to a text, and leaves the stream open. */
async function readUntil(stream: ReadableStream<Uint8Array>, text: string): Promise<void> {
  const reader = stream.getReader();
  let seen = "";
  while (!seen.includes(text)) {
    const { value, done } = await reader.read();
    if (done) throw new Error(`${JSON.stringify(text)} never came: ${seen}`);
    seen += Buffer.from(value).toString();
  }
  reader.releaseLock();
}
