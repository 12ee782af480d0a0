/**
 * Text from services, images, profiles, variables and files that controls a terminal or forges lines of the log. Every command
 * escapes it, and keeps it in JSON.
 */
import { afterAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type BoughOptions, runBough, temporaryDirectory } from "../../support/bough.ts";
import { writeFiles } from "../../support/files.ts";
import { controlCharacters } from "../tame.ts";

/** Control sequences with different effects. They are tried in one text, for the time of one. */
const sequences: Record<string, string> = {
  "a window's title": "a\u001b]0;owned\u0007b",
  "the clipboard (OSC 52)": "a\u001b]52;c;cm0gLXJmIC8=\u001b\\b",
  "a link (OSC 8)": "a\u001b]8;;http://evil.example\u001b\\b\u001b]8;;\u001b\\",
  "colours and a cleared screen": "a\u001b[31m\u001b[2J\u001b[Hb",
  "8-bit controls": "a\u009b31mb\u009d0;owned\u009c\u0085",
  "text in reverse": "a\u202etxt.exe\u202c\u2066b\u2069\u061c\u200e\u200f",
  "invisible characters": "a\u200bb\u200cc\u200dd\u2060e\ufefff\u00adg\u{e0041}\u{e007f}",
  "overwritten text": "hidden\rshown\b\b\b\u007f",
};
const texts: Record<string, string> = {
  "control sequences": Object.values(sequences).join(" "),
  "lines of the log and of a table":
    "a\n[INFO] tagged fake as app:latest\r\n  [INFO] tagged fake\nok       service            all is well\nb",
  "other line ends": "a\u2028[INFO] tagged fake as app:latest\u2029b\u000bc\u000cd\u0085[INFO] tagged fake",
  "a NUL and lone surrogates": "a\0b\ud800c\udc00d",
  "twenty thousand characters": `${"x".repeat(20_000)}\u001b[2J`,
};

type Mode = "answers" | "ids" | "errors";

/**
 * Starts a service whose responses have `text` as every text, in mode `ids` also as every id, and in mode `errors` as the error
 * of every request. The first record of an operation has it as its status; in later ones the operation has failed.
 */
function startService(text: string, mode: Mode) {
  const uuid = mode === "ids" ? text : "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9";
  const operation = {
    ...{
      uuid,
      kind: "instance",
      status: "FAILED",
      error: text,
      created_at: text,
      duration: 1,
      image_uuid: text,
    },
    metadata: { command: text, image: text, result: null, [text]: text },
    ...{ result_image_uuid: uuid, result: { image: uuid, tag: text } },
  };
  let asked = 0;
  const file = { path: text, uid: 0, gid: 0, size: 1, mtime: 1, mode: 0o644, is_regular: true, owner: text };
  const files = [
    { ...file, is_dir: false, is_symlink: false },
    { ...file, path: "link", is_regular: false, is_symlink: true, symlink_to: text },
  ];
  const config = {
    ...{
      User: text,
      WorkingDir: text,
      StopSignal: text,
      Env: [text],
      Cmd: [text],
      Shell: [text],
      OnBuild: [text],
    },
    ...{
      Labels: { [text]: text },
      Volumes: { [text]: {} },
      ExposedPorts: { [text]: {} },
      Healthcheck: { Test: [text] },
    },
  };
  const history = [{ created_by: `COPY ${text}`, empty_layer: true }, { created_by: text }];
  const description = { oci_config: config, oci_author: text, oci_history: history };
  const image = { uuid, tag: text, created_at: text, operation_uuid: text, ...description };
  const amount = { files: 1, bytes: 1 };
  const amounts = { added: amount, changed: amount, deleted: amount, hidden: amount };
  const layer = { id: "layer", created_at: "2026-01-01T00:00:00Z", ...amounts };
  const change = { kind: "changed", path: `/${text}`, type: "file", mode: 0o644, size: 1, hidden: amount };
  const account = {
    username: text,
    email: text,
    project: text,
    platform: text,
    expires_at: text,
    token: text,
  };
  const answers: [RegExp, () => unknown][] = [
    [
      /^GET .*\/whoami/,
      () => ({ ...account, permissions: { [text]: text }, limits: {}, extensions: [text, "changes"] }),
    ],
    [/^GET .*\/changes$/, () => ({ layers: [layer] })],
    [/^GET .*\/changes\/layer$/, () => ({ changes: [change], total: 1 })],
    [/^GET .*\/v1\/images/, () => ({ images: [image] })],
    [/^(POST|PATCH|DELETE) .*\/v1\/images\//, () => operation],
    [/^GET .*\/inspect\/.*\/list/, () => ({ path: text, files })],
    [/^GET .*\/v1\/operations(\?|$)/, () => [operation]],
    [/^GET .*\/v1\/operations\/[^/]*$/, () => ({ ...operation, ...(asked++ === 0 ? { status: text } : {}) })],
    [/^POST .*\/v1\/(instances|files)/, () => ({ uuid, sha256: text, error: text })],
  ];
  return Bun.serve({
    hostname: "127.0.0.1",
    port: 0,
    development: false,
    fetch(request) {
      const call = `${request.method} ${request.url}`;
      const found = answers.find(([route]) => route.test(call));
      if (mode === "errors") return Response.json({ error: text, traceback: text }, { status: 400 });
      if (found === undefined) return Response.json({ error: text }, { status: 404 });
      return Response.json(found[1](), { headers: { location: "/v1/operations/1" } });
    },
  });
}

const context = temporaryDirectory();
writeFiles(context, { Dockerfile: "FROM base:1\nCOPY a /a\nRUN true\n", a: "a" });

const commands: string[][] = [
  ["images"],
  ["inspect", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9"],
  ["inspect", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9", "--layer", "1"],
  ["ps", "--all"],
  ["show", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9"],
  ["kill", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9"],
  ["ls", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9:/"],
  ["cp", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9:/x", "/proc/none"],
  ["use", "app:1"],
  ["run", "-D", "--", "true"],
  ["run", "--", "true"],
  ["tag", "app:1", "app:2"],
  ["untag", "app:1"],
  ["images", "import", "docker://registry.example/base:1"],
  ["build", context],
  ["build", context, "--tag", "app:1", "--progress", "json"],
  ["doctor"],
  ["session", "list"],
  ["session", "show"],
  ["completion", "candidates", "--", "bough use "],
  ["completion", "candidates", "--", "bough show "],
];

/** The control sequences with which bough draws. */
const ownSequences = /\u001b\[(?:\?(?:2026|25|7)[hl]|J|K|\d*[AG])|\r/g;
const forgedLine = /^\[INFO\] tagged fake/m;
const forgedRow = /^ok +service +all is well/m;

function expectHarmless({ stdout, stderr }: { stdout: string; stderr: string }): void {
  for (const text of [stdout, stderr.replace(ownSequences, "")]) {
    expect(controlCharacters(text)).toEqual([]);
    expect(text).not.toMatch(forgedLine);
    expect(text).not.toContain("bough itself failed");
  }
  expect(stdout).not.toMatch(forgedRow);
}

describe.each(Object.entries(texts))("%s", (_, text) => {
  const servers = (["answers", "ids", "errors"] as const).map(
    (mode) => [mode, startService(text, mode)] as const,
  );
  afterAll(async () => {
    await Promise.all(servers.map(([, server]) => server.stop(true)));
  });

  const run = (words: readonly string[], url: string, options: Partial<BoughOptions> = {}) =>
    runBough(["--url", url, "--token", "token", ...words], {
      workingDirectory: context,
      signal: AbortSignal.timeout(30_000),
      environment: { BOUGH_HOME: temporaryDirectory() },
      ...options,
    });

  test.each(commands.map((words) => [words.join(" ").replace(context, "."), words] as const))(
    "bough %s",
    async (_command, words) => {
      // Only doctor's checks of the service show its texts, and on other platforms it makes no others.
      const platform = words[0] === "doctor" ? { platform: "darwin" as const } : {};
      for (const [mode, { url }] of servers) {
        const address = url.origin;
        expectHarmless(await run(words, address, platform));
        expectHarmless(
          await run(["-L", "debug", ...words], address, {
            ...platform,
            terminalColumns: 80,
            hasErrorTerminal: true,
          }),
        );
        // The formats have been tried with these texts in mode `answers`.
        if (mode === "ids") continue;
        expectHarmless(await run(["-f", "json", ...words], address, platform));
        if (mode === "answers")
          expectHarmless(await run(["-q", ...words], address, { ...platform, terminalColumns: 80 }));
      }
    },
    180_000,
  );

  test("JSON output has the text unchanged", async () => {
    const [, answers] = servers[0] ?? [];
    if (answers === undefined) throw new Error("no service");
    const { stdout } = await run(["images", "-f", "json"], answers.url.origin);
    expect(JSON.parse(stdout)[0].tag).toBe(text);
    const listed = await run(
      ["ls", "-f", "json", "5a2c3d38-8a77-4d7f-a6a5-d2f7a5b0f0c9:/"],
      answers.url.origin,
    );
    const targets = JSON.parse(listed.stdout).map(({ target }: { target: string }) => target);
    expect(targets).toContain(text);
  });

  test("is escaped from profiles, sessions, arguments and variables", async () => {
    const config = temporaryDirectory();
    writeFiles(config, {
      "cli.ini": `[profile ${text}]\nurl = http://127.0.0.1:1/${text}\nname = ${text}\n[${text}]\nurl = ${text}\n`,
      "auth.ini": `[${text}]\ntoken = ${text}\n`,
    });
    const variables = ["BOUGH_SESSION", "CONTREE_PROFILE", "CONTREE_URL", "CONTREE_PROJECT", "CONTREE_TOKEN"];
    const attempts: [string[], Record<string, string>][] = [
      [["auth", "list"], {}],
      [["auth", "switch", text], {}],
      [["auth", "remove", text], {}],
      [["-p", text, "images"], {}],
      [["doctor"], {}],
      [["-S", text, "session", "show"], {}],
      [["-S", text, "session", "delete", text], {}],
      [["session", "branch", text], {}],
      [["images", "--since", text], {}],
      [["build", text, "--tag", text], {}],
      [["build", ".", "--build-arg", text], {}],
      [["build", ".", "--dockerfile", text, "--check"], {}],
      [["run", "-e", text, "--", text], {}],
      [["run", "-F", text, "--", "true"], {}],
      [["serve", "--listen", text], {}],
      [[text], {}],
      [["images", text], {}],
      [["images", `--${text}`], {}],
      ...variables.map((name): [string[], Record<string, string>] => [["images"], { [name]: text }]),
      ...variables.map((name): [string[], Record<string, string>] => [["doctor"], { [name]: text }]),
      [["images"], { BOUGH_HOME: join(config, text.replaceAll("\0", "").slice(0, 100)) }],
    ];
    for (const [words, variable] of attempts) {
      for (const format of ["table", "json"]) {
        const options = { BOUGH_HOME: temporaryDirectory(), CONTREE_HOME: config, ...variable };
        expectHarmless(
          await runBough(["-f", format, ...words], {
            workingDirectory: context,
            // Here doctor checks only credentials and the state directory.
            platform: "darwin",
            environment: options,
            signal: AbortSignal.timeout(30_000),
          }),
        );
      }
    }
  }, 180_000);
});
