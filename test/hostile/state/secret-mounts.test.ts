/** Values of `--secret` on the engine: a command has them while it runs, and nothing that stays contains them. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { commandLines } from "../../support/processes.ts";
import { runs, seededRandom } from "../../support/random.ts";
import { type Builder, builders } from "./builder.ts";
import { findKept } from "./kept-text.ts";

/** A unique value, which no other process on this machine has. */
const secret = `hunter2'5ecret-${crypto.randomUUID()}`;
const digest = new Bun.CryptoHasher("sha256").update(secret).digest("hex");
/** Forms of the secret that would reveal it, including its hash. */
const forms = [
  secret,
  secret.slice(8),
  encodeURIComponent(secret),
  Buffer.from(secret).toString("base64"),
  Buffer.from(secret).toString("hex"),
  digest,
];

/** The number of builds to kill; `SECRET_KILLS` sets it. `KILL_SEED` sets the random instants. */
const kills = Number(process.env.SECRET_KILLS ?? runs(4));

const mounted = [
  "RUN --mount=type=secret,id=token test $(wc -c < /run/secrets/token) = LENGTH",
  "RUN --mount=type=secret,id=token,env=GIVEN,target=/root/t --mount=type=secret,id=again,mode=0444 test ${#GIVEN} = LENGTH && cmp /root/t /run/secrets/again",
].map((line) => line.replaceAll("LENGTH", String(secret.length)));

describe.each(builders)("as %s", (_, make) => {
  let builder: Builder;
  beforeAll(async () => {
    builder = await make();
  });
  beforeEach(() => {
    builder.reset();
    writeFileSync(join(builder.home, "token"), secret);
  });
  afterAll(() => builder.remove());

  const words = (...options: string[]) => [
    ...["build", "--docker", "-L", "debug", "--explain", "--secret", "id=token,env=TOKEN"],
    ...["--secret", `id=again,src=${join(builder.home, "token")}`, ...options, "."],
  ];
  const build = (...options: string[]) => builder.bough(words(...options), { TOKEN: secret });
  const write = (...lines: string[]) =>
    builder.writeContext({ Dockerfile: ["FROM busybox:1", ...lines, ""].join("\n") });

  const finds = () => findKept(builder, holds);

  test("nothing has the secret after a build that succeeds", async () => {
    write(...mounted, "RUN ls -A /run /root > /left; [ ! -e /run/secrets ]");
    const built = await build("--progress", "json", "--metadata-file", "metadata.json");
    expect(built).toMatchObject({ exitCode: 0 });
    const shown = [built];
    for (const line of [["ps", "--all", "-f", "json"], ["images"], ["session", "list"]])
      shown.push(await builder.bough(line));
    const operations: { uuid: string }[] = JSON.parse(shown[1]?.stdout ?? "");
    for (const { uuid } of operations)
      shown.push(await builder.bough(["show", uuid, "-f", "json"]), await builder.bough(["logs", uuid]));
    expect(shown.map(({ stdout, stderr }) => stdout + stderr).filter(holds)).toEqual([]);
    expect(holds(readFileSync(join(builder.context, "metadata.json"), "utf8"))).toBe(false);
    expect(finds()).toEqual([]);
  });

  test("another value does not run the step again, as in BuildKit", async () => {
    write("RUN --mount=type=secret,id=token test -s /run/secrets/token");
    expect(await build()).toMatchObject({ exitCode: 0 });
    const changed = await builder.bough(words(), { TOKEN: "something else" });
    expect(changed).toMatchObject({ exitCode: 0 });
    expect(changed.stderr).not.toContain("spawned");
  });

  test("the search of these tests finds a secret that a command keeps in its image", async () => {
    write("RUN --mount=type=secret,id=token cp /run/secrets/token /kept");
    expect(await build()).toMatchObject({ exitCode: 0 });
    expect(finds()).toEqual([expect.stringMatching(/\/kept$/)]);
  });

  test.each([
    ["a command that fails", `${mounted[1]} && false`, "exit code 1"],
    ["a missing program", 'RUN --mount=type=secret,id=token ["no-such-program"]', "exit code 127"],
    ["an invalid target", "RUN --mount=type=secret,id=token,target=/bin/busybox/x true", "Dockerfile:2"],
    [
      "a secret that was not given",
      "RUN --mount=type=secret,id=token --mount=type=secret,id=no,required true",
      "no is required",
    ],
  ])("nothing has the secret after a build that fails: %s", async (_name, line, expected) => {
    write(line);
    const { exitCode, stdout, stderr } = await build();
    expect(exitCode).not.toBe(0);
    expect(stderr).toContain(expected);
    expect((stdout + stderr).split("\n").filter(holds)).toEqual([]);
    expect(finds()).toEqual([]);
  });

  test("while a command has the secret, no file and no command line has it", async () => {
    write("RUN --mount=type=secret,id=token,env=GIVEN,target=/t sleep 6129");
    const child = builder.start(words(), { TOKEN: secret });
    try {
      while (!commandLines().includes("sleep 6129")) await Bun.sleep(5);
      expect(commandLines().filter(holds)).toEqual([]);
      expect(finds()).toEqual([]);
    } finally {
      child.kill("SIGKILL");
      await child.exited;
    }
    expect(finds()).toEqual([]);
  });

  test(`nothing has the secret after ${kills} kills at random instants`, async () => {
    const seed = Number(process.env.KILL_SEED ?? 1);
    const random = seededRandom(seed);
    write("ARG ROUND", ...mounted, ...mounted);
    const started = performance.now();
    expect(await build("--build-arg", "ROUND=0")).toMatchObject({ exitCode: 0 });
    const whole = performance.now() - started;
    for (let round = 1; round <= kills; round++) {
      const child = builder.start(words("--build-arg", `ROUND=${round}`), { TOKEN: secret });
      const timer = setTimeout(() => child.kill("SIGKILL"), random() * whole);
      const log = await readLog(child);
      clearTimeout(timer);
      expect({ seed, round, shown: holds(log), finds: finds() }).toEqual({
        seed,
        round,
        shown: false,
        finds: [],
      });
    }
    expect(await build("--build-arg", "ROUND=last")).toMatchObject({ exitCode: 0 });
    expect(finds()).toEqual([]);
  }, 180_000);
});

/**
 * Returns what a build has written until its end. If it is killed while it enters its user namespace, unshare (util-linux 2.38) leaves a
 * process that waits for good, and holds the stream open.
 */
async function readLog({ stderr, exited }: ReturnType<Builder["start"]>): Promise<string> {
  const reader = stderr.getReader();
  const decoder = new TextDecoder();
  let text = "";
  const read = async () => {
    for (let next = await reader.read(); !next.done; next = await reader.read())
      text += decoder.decode(next.value, { stream: true });
  };
  const reading = read();
  await exited;
  await Promise.race([reading, Bun.sleep(2000)]);
  await reader.cancel();
  return text;
}

function holds(text: string): boolean {
  return forms.some((form) => text.includes(form));
}
