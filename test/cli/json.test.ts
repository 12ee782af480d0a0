/** The keys of `-f json` are those that the manual documents. */

import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { generateKeyPairSync } from "node:crypto";
import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { openAnsweringEngine } from "../support/engine.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

const topic = readFileSync(join(import.meta.dir, "../../src/cli/help/topics/json.md"), "utf8");
const section = topic.slice(topic.indexOf("## Results as JSON"));
const rows = new Map(
  [...section.slice(0, section.indexOf("\n## ")).matchAll(/^\| (`.*?`) \| (.*) \|$/gm)].flatMap(
    ([, names = "", keys = ""]) =>
      [...names.matchAll(/`([^`]+)`/g)].map(([, name = ""]): [string, string] => [name, keys]),
  ),
);

let service: FakeService;
let registry: Registry;
const workingDirectory = temporaryDirectory();
const environment: Record<string, string> = {
  BOUGH_HOME: temporaryDirectory(),
  CONTREE_HOME: join(workingDirectory, "c"),
  HOME: temporaryDirectory(),
};
beforeAll(async () => {
  service = await startFakeService({
    run: ({ command }) =>
      command === "wait"
        ? { until: new Promise(() => {}) }
        : command === "hang"
          ? { timedOut: true, stdout: "began\n" }
          : { stdout: "done\n" },
  });
  registry = await Registry.start();
  registry.push(await makeBusyboxLayout(temporaryDirectory()), "base:1");
  for (const tag of ["base:1", "app:dev"]) service.state.addImage(tag);
  service.state.tree.set("/motd", { type: "file", content: "x" });
  environment.CONTREE_URL = service.url;
  environment.CONTREE_TOKEN = "t0ken-t0ken";
  writeFiles(workingDirectory, { Dockerfile: "FROM base:1\nRUN make\n" });
  const { privateKey, publicKey } = generateKeyPairSync("ed25519");
  writeFiles(workingDirectory, {
    "sign.key": privateKey.export({ type: "pkcs8", format: "pem" }).toString(),
    "sign.pub": publicKey.export({ type: "spki", format: "pem" }).toString(),
  });
  await buildWithSameFile(["COPY same /", "COPY same other /"]);
  await makeDamagedEngine(join(environment.BOUGH_HOME ?? "", "engine"));
  // `history diff` compares two builds.
  await runBough(["build", "."], { workingDirectory, environment });
});
afterAll(() => Promise.all([service.close(), registry.stop()]));

/** In this order, because later ones need the results of earlier ones. */
const lines: [documented: string, line: string][] = [
  ["build", "build . --no-cache --cache-to main"],
  ["build --check", "build --check"],
  ["cache list", "cache list"],
  ["cache show", "cache show main"],
  ["cache remove", "cache remove main"],
  ["use", "use app:dev"],
  ["run", "run -- make"],
  ["wait", "wait @"],
  ["session rollback", "session rollback"],
  ["session branch NAME", "session branch try"],
  ["session checkout", "session checkout try"],
  ["session branch", "session branch"],
  ["session list", "session list"],
  ["session show", "session show"],
  ["images", "images"],
  ["images import", "images import alpine:3"],
  ["images export", "images export app:dev oci:layout:1"],
  ["inspect", "inspect app:dev"],
  ["inspect --layer", "--local inspect made:1 --layer 1"],
  ["layers", "--local layers same:0 same:1"],
  ["images remove", "--local images remove empty:1"],
  ["index create", "index create HOST/joined:1 HOST/base:1 --sign key=sign.key"],
  ["index inspect", "index inspect HOST/joined:1"],
  ["verify", "verify HOST/joined:1 --key sign.pub"],
  ["tag", "tag app:dev app:1"],
  ["untag", "untag app:1"],
  ["ls", "ls /"],
  ["cp", "cp /motd ."],
  ["run -d", "run -d -- wait"],
  ["ps", "ps"],
  ["show", "show OP"],
  ["kill", "kill OP"],
  ["auth", "auth"],
  ["auth list", "auth list"],
  ["auth switch", "auth switch default"],
  ["auth remove", "auth remove default"],
  ["session delete", "session delete default"],
  ["history", "history"],
  ["history show", "history show"],
  ["history logs", "history logs"],
  ["history diff", "history diff"],
  ["history report", "history report"],
  ["history rm", "history rm --all"],
  ["serve", "serve"],
  ["licenses", "licenses"],
  ["release-key", "release-key"],
  ["plugin", "plugin"],
  ["skill install", "skill install claude"],
  ["skill list", "skill list"],
  ["skill upgrade", "skill upgrade"],
  ["skill remove", "skill remove"],
  ["engine df", "engine df"],
  ["engine prune", "engine prune"],
  ["engine check", "engine check --repair"],
  ["doctor", "doctor"],
];
let operation = "";

describe("the keys of", () => {
  test.each(lines)("%s", async (documented, line) => {
    const words = line.replace("OP", operation).replaceAll("HOST", registry.host).split(" ");
    const ended = await runBough(["-f", "json", ...words], {
      workingDirectory,
      environment,
      // `serve` runs until it is interrupted.
      ...(line === "serve" ? { signal: AbortSignal.abort() } : {}),
    });
    expect(ended.exitCode).toBe(0);
    const result = JSON.parse(ended.stdout);
    operation = result.operation ?? operation;
    const row = rows.get(documented) ?? "";
    const [own = "", ofEach] = row.replace(/; (with|an array).*/, "").split("; of which each: ");
    const inherited = own.includes("as `ps`") ? keysIn(rows.get("ps") ?? "") : [];
    expect(Array.isArray(result)).toBe(row.startsWith("array:"));
    const [first] = [result].flat();
    expect(Object.keys(first)).toEqual([...inherited, ...keysIn(own.replace("as `ps`, and ", ""))]);
    if (ofEach !== undefined)
      expect(Object.keys(Object.values(first).find(Array.isArray)?.[0])).toEqual(keysIn(ofEach));
  });
});

test("every row of the manual is tested", () => {
  expect([...rows.keys()].sort()).toEqual(lines.map(([documented]) => documented).sort());
});

/** Builds images that have a file in layers of their own. */
async function buildWithSameFile(instructions: readonly string[]): Promise<void> {
  const context = temporaryDirectory();
  writeFiles(context, { same: "same\n", other: "other\n" });
  for (const [number, instruction] of instructions.entries()) {
    writeFiles(context, { Dockerfile: `FROM scratch\n${instruction}\n` });
    const words = ["--local", "build", "--tag", `same:${number}`, "."];
    await runBough(words, { workingDirectory: context, environment });
  }
}

/** Makes an engine with an uploaded file whose bytes are gone, an image without files and an image with one directory. */
async function makeDamagedEngine(directory: string): Promise<void> {
  const engine = await openAnsweringEngine({
    directory,
    clock: systemClock,
    environment: { PATH: process.env.PATH },
  });
  const call = (path: string, body?: string) =>
    engine.fetch(new Request(`http://engine/v1/${path}`, body === undefined ? {} : { method: "POST", body }));
  await call("files", "content");
  const imported = await call("images/import", '{"registry": {"url": "scratch"}, "tag": "empty:1"}');
  const { uuid } = (await imported.json()) as { uuid: string };
  await (await call(`operations/${uuid}/events?follow=true`)).text();
  const entries = { "/made": { type: "directory", uid: 0, gid: 0 } };
  const request = { image: "tag:empty:1", command: "", cwd: "/", disposable: false, copies: [], entries };
  const made = (await (await call("instances", JSON.stringify(request))).json()) as { uuid: string };
  await (await call(`operations/${made.uuid}/events?follow=true`)).text();
  const ended = (await (await call(`operations/${made.uuid}`)).json()) as { result_image_uuid: string };
  const tag = { method: "PATCH", body: '{"tag": "made:1"}' };
  await engine.fetch(new Request(`http://engine/v1/images/${ended.result_image_uuid}/tag`, tag));
  await engine.close();
  rmSync(join(directory, "files"), { recursive: true });
}

/** The keys in a row of the manual. Values of a key are in brackets, which are ignored. */
function keysIn(text: string): string[] {
  return [...text.replace(/\(.*?\)/g, "").matchAll(/`(\w+)`/g)].map(([, key = ""]) => key);
}

test("run returns what a command has printed until its timeout, beside the error", async () => {
  const { exitCode, stdout, stderr } = await runBough(
    ["-f", "json", "run", "--use", "base:1", "--", "hang"],
    {
      ...{ workingDirectory, environment },
    },
  );
  expect(exitCode).toBe(1);
  expect(JSON.parse(stdout)).toMatchObject({ exitCode: null, image: null, session: null, stdout: "began\n" });
  expect(JSON.parse(stderr.split("\n").findLast((line) => line.startsWith("{")) ?? "")).toMatchObject({
    error: { message: expect.stringContaining("was stopped after") },
  });
});
