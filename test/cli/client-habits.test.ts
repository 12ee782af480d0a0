/** What users of the service's own client expect: history references, several operations at once, a session for a shell. */
import { afterAll, beforeAll, beforeEach, expect, setDefaultTimeout, test } from "bun:test";
import { join } from "node:path";
import { statusOf } from "../../src/cli/references/operation-argument.ts";
import { parseHistoryReference } from "../../src/cli/references/session-argument.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";

setDefaultTimeout(180_000);

let service: FakeService;
let release: () => void;
let home: string;
beforeAll(async () => {
  service = await startFakeService({
    run: ({ command, args = [] }) => {
      if (command === "late") return { timedOut: true, exitCode: 137 };
      if (command === "sleep") return { until: new Promise<void>((resolve) => (release = resolve)) };
      return { exitCode: command === "fail" ? Number(args[0]) : 0 };
    },
  });
  service.state.addImage("base:1");
});
afterAll(() => service.close());
beforeEach(() => {
  home = temporaryDirectory();
});

const bough = (line: string, environment: Record<string, string> = {}) =>
  runBough(line.split(" "), {
    workingDirectory: home,
    environment: {
      BOUGH_HOME: join(home, "state"),
      CONTREE_URL: service.url,
      CONTREE_TOKEN: "t0ken-t0ken",
      ...environment,
    },
  });

async function json<Result>(line: string): Promise<Result> {
  const { stdout, stderr } = await bough(`-f json ${line}`);
  if (stdout === "") throw new Error(`${line}: ${stderr}`);
  return JSON.parse(stdout) as Result;
}

test.each<[text: string, meaning: ReturnType<typeof parseHistoryReference>]>([
  ["@", { steps: 0 }],
  [":", { steps: 0 }],
  ["HEAD", { steps: 0 }],
  ["@7", { id: 7 }],
  [":7", { id: 7 }],
  ["@-2", { steps: -2 }],
  ["HEAD~", { steps: -1 }],
  ["HEAD~3", { steps: -3 }],
  ["@+1", { steps: 1 }],
  ["7", undefined],
  ["HEAD~x", undefined],
  ["head", undefined],
  ["@7x", undefined],
  ["5a2c3d38", undefined],
])("%s", (text, meaning) => expect(parseHistoryReference(text)).toEqual(meaning as never));

/** A session with an entry of `use` and two of `run`. */
async function history(): Promise<{ id: number; image: string; operation: string | null }[]> {
  for (const line of ["use base:1", "run -- one", "run -- two"]) await bough(`-S k ${line}`);
  return (await json<{ history: { id: number; image: string; operation: string }[] }>("session show k"))
    .history;
}

test("show takes several operations, also by their place in the session", async () => {
  const [used, one, two] = await history();
  const shown = await json<{ uuid: string }[]>(`-S k show @ HEAD~1 @${two?.id} @-1`);
  expect(shown.map(({ uuid }) => uuid)).toEqual([two, one, two, one].map((entry) => entry?.operation ?? ""));
  const table = await bough(`-S k show @ HEAD~`);
  expect(table.stdout.match(/^OPERATION/gm)).toHaveLength(2);
  expect((await json<{ uuid: string }>("-S k show @")).uuid).toBe(two?.operation ?? "");
  const none = await bough(`-S k show @${used?.id}`);
  expect(none.stderr).toContain(`@${used?.id} of session k (use base:1) has no operation`);
  expect((await bough("-S k show HEAD~9")).stderr).toContain("session k has no history entry HEAD~9");
  expect((await bough("-S k logs @")).exitCode).toBe(0);
  const partly = await bough(`-S k -f json show nothing @ HEAD~9`);
  expect(partly.exitCode).toBe(1);
  expect(JSON.parse(partly.stdout).map(({ uuid }: { uuid: string }) => uuid)).toEqual([two?.operation]);
  expect(partly.stderr).toContain("there is no operation nothing\\nsession k has no history entry HEAD~9");
});

test("rollback, branch --from and use take history references, backward and forward", async () => {
  const [used, one, two] = await history();
  const image = async (line: string) => (await json<{ image: string }>(line)).image;
  expect(await image(`-S k session rollback @${used?.id}`)).toBe(used?.image ?? "");
  expect(await image("-S k session rollback +2")).toBe(two?.image ?? "");
  expect(await image("-S k session rollback HEAD~1")).toBe(one?.image ?? "");
  expect(await image("-S k session branch side --from @+1")).toBe(two?.image ?? "");
  expect(await image("-S k use HEAD~")).toBe(used?.image ?? "");
  expect((await bough("-S k session rollback @999")).exitCode).toBe(1);
});

test("use --new prints the command that sets a new session in the shell", async () => {
  const ended = await bough("use --new base:1", { SHELL: "/bin/bash" });
  const [, key = ""] = /^export BOUGH_SESSION=(s-[0-9a-f]{8})\n$/.exec(ended.stdout) ?? [];
  const { stdout } = await bough("use", { BOUGH_SESSION: key });
  expect(stdout).toContain(key);
  const fish = await bough("use -N base:1", { SHELL: "/usr/bin/fish" });
  expect(fish.stdout).toMatch(/^set -gx BOUGH_SESSION s-/);
  expect(await bough("use --new")).toMatchObject({ exitCode: 2 });
  expect(await bough("-S k use --new base:1")).toMatchObject({ exitCode: 2 });
});

async function start(command: string): Promise<string> {
  return (await bough(`-q -S k run -d -D -- ${command}`)).stdout.trim();
}

test("wait waits for all operations, and returns the exit code of the first one that failed", async () => {
  await bough("-S k use base:1");
  const sleeping = await start("sleep 100");
  const failed = await start("fail 7");
  const waiting = json<{ uuid: string; exitCode: number }[]>(`wait ${sleeping} ${failed}`);
  await Bun.sleep(50);
  release();
  expect((await waiting).map(({ uuid, exitCode }) => [uuid, exitCode])).toEqual([
    [sleeping, 0],
    [failed, 7],
  ]);
  const ended = await bough(`wait ${failed}`);
  expect(ended.exitCode).toBe(7);
  expect(ended.stdout).toMatch(/ EXIT 7 /);
  expect((await bough(`show ${failed}`)).stdout).toMatch(/^STATUS +EXIT 7$/m);
  expect((await bough(`kill ${failed}`)).stderr).toContain("has already ended (EXIT 7)");
  expect((await bough(`wait ${sleeping}`)).exitCode).toBe(0);
  const late = await start("late");
  for (const shown of ["wait", "show"])
    expect((await bough(`${shown} ${late}`)).stdout).toContain("TIMED OUT");
  expect((await bough("wait")).exitCode).toBe(2);
  expect((await bough("wait --all")).exitCode).toBe(0);
});

test.each<[status: string, exitCode: number | null, shown: string]>([
  ["SUCCESS", 0, "SUCCESS"],
  ["SUCCESS", 137, "EXIT 137"],
  ["FAILED", 3, "EXIT 3"],
  ["CANCELLED", 137, "CANCELLED"],
  ["EXECUTING", null, "EXECUTING"],
])("an operation with the status %s and the exit code %p is shown as %s", (status, exitCode, shown) => {
  const summary = { uuid: "u", kind: "instance", error: null, createdAt: null, durationSeconds: null };
  expect(statusOf({ ...summary, command: null, image: null, timedOut: false, status, exitCode })).toBe(shown);
});

test("wait --timeout leaves operations running; kill --all ends them", async () => {
  await bough("-S k use base:1");
  const sleeping = [await start("sleep 100"), await start("sleep 100")];
  const late = await bough("wait --all --timeout 1");
  expect(late.exitCode).toBe(1);
  for (const operation of sleeping) expect(late.stdout).toContain(operation.slice(0, 8));
  expect(late.stdout).toContain("EXECUTING");
  expect(await bough(`kill --all ${sleeping[0]}`)).toMatchObject({ exitCode: 2 });
  const killed = await json<{ operation: string }[]>("kill --all");
  expect(killed.map(({ operation }) => operation).sort()).toEqual(sleeping.sort());
  expect(await json<unknown[]>("kill --all")).toEqual([]);
});
