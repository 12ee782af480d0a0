/** Profiles: `bough auth` changes only what it must in the files that all clients of the service share. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "bun:test";
import {
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { type BoughOptions, runBough, temporaryDirectory } from "../support/bough.ts";

let service: FakeService;
let home: string;
beforeAll(async () => {
  service = await startFakeService({ token: "good-token" });
});
afterAll(() => service.close());
beforeEach(() => {
  home = join(temporaryDirectory(), "contree");
  service.clearRequests();
});

function bough(line: string, options: Partial<BoughOptions> = {}) {
  const words = line.split(" ").map((word) => word.replace("{url}", service.url));
  return runBough(words, {
    workingDirectory: "/",
    ...options,
    environment: { CONTREE_HOME: home, BOUGH_HOME: temporaryDirectory(), ...options.environment },
  });
}

const read = (name = "auth.ini") => readFileSync(join(home, name), "utf8");

function write(name: string, text: string): void {
  mkdirSync(home, { recursive: true });
  writeFileSync(join(home, name), text, { mode: 0o600 });
}

/** A profile file as a person would write it: with comments and another tool's section. */
const handWritten = `; profiles of the service, by hand
[DEFAULT]
profile = default   ; the one in use

[profile:default]
token = good-token
url = SERVICE
type = jwt

# of another tool
[editor]
theme = dark

[profile:work]
; ask Ann for a new one
token = other-token
url = SERVICE/prefix
type = iam        ; or jwt; iam needs project
project = p1
`;

describe("saving", () => {
  test("checks the token with the service; then other commands use the profile", async () => {
    const saved = await bough("auth --url {url} --token good-token");
    const line = `saved the profile default: commands use ${service.url} from now on, also without variables`;
    expect(saved).toMatchObject({ exitCode: 0, stderr: expect.stringContaining(`[INFO] ${line}; `) });
    expect(saved.stdout).toContain(`default  *       ${service.url}`);
    expect(service.requestsTo("GET /v1/whoami")).toHaveLength(1);
    expect(read()).toBe(
      `[DEFAULT]\nprofile = default\n\n[profile:default]\ntoken = good-token\nurl = ${service.url}\ntype = jwt\n`,
    );
    const images = await bough("images");
    expect(images.stderr).toBe(`[INFO] service: ${service.url} (profile default)\n`);
  });

  test("gives the directory mode 0700 and the file 0600, and leaves no other file", async () => {
    await bough("auth --url {url} --token good-token");
    expect((statSync(home).mode & 0o777).toString(8)).toBe("700");
    expect((statSync(join(home, "auth.ini")).mode & 0o777).toString(8)).toBe("600");
    expect(readdirSync(home)).toEqual(["auth.ini"]);
  });

  test("does not save a token that the service refuses, except with --no-verify", async () => {
    const refused = await bough("auth --url {url} --token bad-token");
    expect(refused.exitCode).toBe(1);
    expect(refused.stderr).toContain("profile default is not saved: GET");
    expect(refused.stderr).toContain("--no-verify");
    expect(refused.stderr).not.toContain("bad-token");
    expect(existsSync(home)).toBe(false);
    expect((await bough("auth --url {url} --token bad-token --no-verify")).exitCode).toBe(0);
    expect(read()).toContain("token = bad-token\n");
  });

  test.each([
    ["--token", "auth --url {url} --token good-token", {}],
    ["standard input", "auth --url {url} --token -", { stdin: "good-token\nsecond line\n" }],
    ["CONTREE_TOKEN", "auth --url {url}", { environment: { CONTREE_TOKEN: "good-token" } }],
    ["NEBIUS_API_KEY", "auth --url {url}", { environment: { NEBIUS_API_KEY: "good-token" } }],
  ])("takes the token from %s", async (_, line, options) => {
    expect((await bough(line, options)).exitCode).toBe(0);
    expect(read()).toContain("token = good-token\n");
  });

  test.each([
    ["auth --url {url}", "no token given, and there is no terminal to ask for it"],
    ["auth --url {url} --token -", "--token - reads standard input, and nothing is piped in"],
    ["auth --token t", "profile default: the service's address is missing"],
    ["auth --url ftp://x --token t", "not a service address"],
    ["auth --url {url} --token good-token --type iam", "a token of type iam needs a project"],
    ["auth --url {url} --token good-token --type jtw", "--type takes iam or jwt"],
    ["auth --url {url} --token good-token -p a]b", 'not a name for a profile: "a]b"'],
    [
      "auth --url {url} --token to;ken --no-verify",
      "the token contains characters that can't be stored in a profile file",
    ],
  ])("%s: %s", async (line, message) => {
    const ended = await bough(line);
    expect(ended.exitCode).toBe(2);
    expect(ended.stderr).toContain(message);
    expect(existsSync(home)).toBe(false);
  });

  test("does not activate a second profile, and gives a profile with a project the type iam", async () => {
    await bough("auth --url {url} --token good-token");
    const second = await bough("auth -p work --url {url} --token good-token --project p1");
    expect(second.stderr).toContain("saved the profile work; default stays active: `bough auth switch work`");
    expect(read()).toContain("[profile:work]\n");
    expect(read()).toContain("type = iam\nproject = p1\n");
    expect((await bough("-p work images")).stderr).toContain("(profile work)");
    expect(service.requests.at(-1)?.headers).toMatchObject({ project: "p1" });
  });

  test("a profile again changes its lines only, and removes old settings from both files", async () => {
    write("cli.ini", "[profile:work]\nproject = old\n[DEFAULT]\nprofile = work\n");
    write("auth.ini", handWritten.replaceAll("SERVICE", service.url));
    await bough("auth -p work --url {url} --token good-token --type jwt --no-verify");
    const expected = handWritten
      .replaceAll("SERVICE", service.url)
      .replace("other-token", "good-token")
      .replace("/prefix", "")
      .replace("type = iam ", "type = jwt ")
      .replace("project = p1\n", "");
    expect(read()).toBe(expected);
    expect(read("cli.ini")).toBe("[profile:work]\n[DEFAULT]\nprofile = work\n");
  });
});

describe("a file written by hand, with two profiles and comments", () => {
  test("changes in one line only with `auth switch`", async () => {
    write("auth.ini", handWritten);
    expect(await bough("auth switch work")).toMatchObject({ exitCode: 0, stdout: "work\n", stderr: "" });
    expect(read()).toBe(handWritten.replace("profile = default   ;", "profile = work   ;"));
    expect(await bough("auth switch default")).toMatchObject({ exitCode: 0 });
    expect(read()).toBe(handWritten);
  });

  test("is left unchanged by `auth switch` if cli.ini names the active profile", async () => {
    const profiles = handWritten.replace(/\[DEFAULT\]\n.*\n\n/, "");
    write("auth.ini", profiles);
    write("cli.ini", "# mine\n[DEFAULT]\nprofile = default\neditor = vi\n");
    await bough("auth switch work");
    expect(read()).toBe(profiles);
    expect(read("cli.ini")).toBe("# mine\n[DEFAULT]\nprofile = work\neditor = vi\n");
  });

  test("stays a link if it is one, and the target is changed", async () => {
    const target = join(temporaryDirectory(), "dotfiles.ini");
    writeFileSync(target, handWritten);
    mkdirSync(home, { recursive: true });
    symlinkSync(target, join(home, "auth.ini"));
    await bough("auth switch work");
    expect(readFileSync(target, "utf8")).toContain("profile = work");
    expect((statSync(target).mode & 0o777).toString(8)).toBe("600");
  });

  test("is listed with the status that each service reports", async () => {
    write("auth.ini", handWritten.replaceAll("SERVICE", service.url).replace("/prefix", ""));
    const { stdout, stderr } = await bough("auth list");
    expect(stdout.replaceAll(service.url, "URL")).toMatch(
      /^PROFILE +ACTIVE +URL +TYPE +PROJECT +STATUS\ndefault +\* +URL +jwt +- +ok\nwork +URL +iam +p1 +refused\n$/,
    );
    expect(stderr).toContain("[WARN] profile work: GET");
    expect(stdout + stderr).not.toMatch(/good-token|other-token/);
    const json = JSON.parse((await bough("-f json auth list")).stdout);
    expect(json).toMatchObject([
      { profile: "default", active: true, status: "ok", detail: null },
      { profile: "work", active: false, status: "refused", project: "p1" },
    ]);
  });

  test("loses one profile and nothing else with `auth remove`", async () => {
    write("auth.ini", handWritten);
    expect(await bough("auth remove work")).toMatchObject({ exitCode: 0, stdout: "work\n", stderr: "" });
    expect(read()).toBe(handWritten.slice(0, handWritten.indexOf("[profile:work]")));
    const active = await bough("auth remove default");
    expect(active.stderr).toContain("the active profile was removed: no other is left");
    expect(read()).toBe(
      "; profiles of the service, by hand\n[DEFAULT]\n\n# of another tool\n[editor]\ntheme = dark\n\n",
    );
  });

  test.each([
    ["auth switch wrok", "Did you mean work?"],
    ["auth remove nothing", "`bough auth list` lists them."],
  ])("%s: %s", async (line, hint) => {
    write("auth.ini", handWritten);
    const ended = await bough(line);
    expect(ended.exitCode).toBe(1);
    expect(ended.stderr).toContain(hint);
    expect(read()).toBe(handWritten);
  });
});

test("auth list shows a service without whoami and a profile without an address as failed", async () => {
  const other = await startFakeService({ sixCallsOnly: true });
  write("auth.ini", `[profile:half]\ntoken = a-token\n[profile:old]\ntoken = a-token\nurl = ${other.url}\n`);
  const json = JSON.parse((await bough("auth list -f json")).stdout);
  await other.close();
  expect(json).toMatchObject([
    { profile: "half", status: "failed", url: null, detail: "it has no address" },
    {
      profile: "old",
      status: "failed",
      detail: `GET ${other.url}/v1/whoami responded with 404 Not Found: no such route`,
    },
  ]);
});
