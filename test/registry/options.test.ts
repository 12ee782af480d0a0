/** `--authfile`, `--creds`, `--tls-verify` and `--retry`, for pushes, imports and FROM. */
import { afterAll, beforeAll, expect, setDefaultTimeout, test } from "bun:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { sourceWords } from "../../src/engine/import/registry-settings.ts";
import { verifiesTls } from "../../src/registry/repository.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";
import { Registry } from "../support/registry.ts";

setDefaultTimeout(180_000);

const home = temporaryDirectory();
const credentials = { username: "me", password: "s3cret-s3cret" };
let registry: Registry;
const authFileText = (host: string, username: string, password: string) =>
  JSON.stringify({ auths: { [host]: { auth: Buffer.from(`${username}:${password}`).toString("base64") } } });
const bough = (...words: string[]) =>
  runBough(["--local", ...words], {
    workingDirectory: home,
    environment: { BOUGH_HOME: join(home, "state"), HOME: home, XDG_RUNTIME_DIR: home },
  });

beforeAll(async () => {
  registry = await Registry.start(credentials);
  await bough("images", "import", await makeBusyboxLayout(join(home, "layout")), "--tag", "base:1");
  writeFileSync(
    join(home, "auth.json"),
    authFileText(registry.host, credentials.username, credentials.password),
  );
});
afterAll(() => registry.stop());

test("a push, an import and FROM use the given credentials, and fail without them", async () => {
  const creds = `${credentials.username}:${credentials.password}`;
  const [one, two] = [`${registry.host}/one:1`, `${registry.host}/two:1`];
  expect((await bough("push", "base:1", one)).exitCode).toBe(1);
  expect(await bough("push", "base:1", one, "--creds", creds)).toMatchObject({ exitCode: 0 });
  expect(await bough("push", "base:1", two, "--authfile", "auth.json")).toMatchObject({ exitCode: 0 });
  expect((await bough("images", "import", one)).exitCode).toBe(1);
  expect(await bough("images", "import", one, "--creds", creds, "--retry", "0")).toMatchObject({
    exitCode: 0,
  });
  writeFiles(home, { "context/Dockerfile": `FROM ${two}\n` });
  expect((await bough("build", "--docker", "context")).exitCode).toBe(1);
  const built = await bough("build", "--docker", "context", "--authfile=auth.json", "--tls-verify=false");
  expect(built).toMatchObject({ exitCode: 0 });
});

test.each([
  ["none.json", "no such file or directory"],
  ["state", "it is a directory"],
])("--authfile %s is refused before anything is sent", async (file, reason) => {
  const expected = { exitCode: 2, stderr: expect.stringContaining(`--authfile ${file}: ${reason}`) };
  for (const words of [
    ["push", "base:1", `${registry.host}/three:1`],
    ["build", "--docker", "context"],
    ["bake", "--print"],
  ])
    expect(await bough(...words, "--authfile", file)).toMatchObject(expected);
});

test("a registry with a certificate of its own is used with --tls-verify=false, and not with --tls-verify=true", async () => {
  const secured = await Registry.start(credentials, undefined, { hasTls: true });
  try {
    const name = `${secured.host}/app:1`;
    const creds = ["--creds", `${credentials.username}:${credentials.password}`];
    // bough trusts registries of this machine unless told otherwise.
    const checked = "--tls-verify=true";
    const refused = await bough("push", "base:1", name, ...creds, checked);
    expect(refused).toMatchObject({ exitCode: 1, stderr: expect.stringContaining("certificate") });
    expect(await bough("push", "base:1", name, ...creds, "--tls-verify=false")).toMatchObject({
      exitCode: 0,
    });
    writeFileSync(
      join(home, "tls.json"),
      authFileText(secured.host, credentials.username, credentials.password),
    );
    writeFiles(home, { "secured/Dockerfile": `FROM ${name}\n` });
    const build = ["build", "--docker", "secured", "--authfile", "tls.json"];
    expect(await bough(...build, checked)).toMatchObject({
      exitCode: 1,
      stderr: expect.stringContaining("certificate"),
    });
    expect(await bough(...build, "--tls-verify=false")).toMatchObject({ exitCode: 0 });
    const imported = ["images", "import", `docker://${name}`, "--tag", "again:1", ...creds];
    expect((await bough(...imported, checked)).exitCode).toBe(1);
    expect(await bough(...imported, "--tls-verify=false")).toMatchObject({ exitCode: 0 });
  } finally {
    await secured.stop();
  }
});

test.each([
  [["push", "a", "b", "--creds", "me"], "--creds takes USER:PASSWORD"],
  [["push", "a", "b", "--tls-verify=no"], '--tls-verify takes true or false, not "no"'],
  [["push", "a", "b", "--retry", "often"], '--retry takes a positive whole number, not "often"'],
  [
    ["--url", "http://127.0.0.1:1", "--token", "t", "images", "import", "a", "--tls-verify=false"],
    "--tls-verify: only bough's own engine",
  ],
  [
    ["--url", "http://127.0.0.1:1", "--token", "t", "build", ".", "--registry-mirror", "m.example"],
    "--registry-mirror: only bough's own engine",
  ],
  [
    ["build", ".", "--registry-mirror", "ftp://m.example"],
    '--registry-mirror takes HOST[:PORT][/PATH], not "ftp://m.example"',
  ],
])("%j is refused", async (words, message) => {
  const { exitCode, stderr } = await runBough(words, { workingDirectory: home });
  expect({ exitCode, stderr }).toEqual({ exitCode: 2, stderr: expect.stringContaining(message) });
});

test("certificates are checked, except on this machine or if the user says so; transfers are tried again", () => {
  expect(verifiesTls("registry.example", {})).toBe(true);
  expect(verifiesTls("localhost:5000", {})).toBe(false);
  expect(verifiesTls("localhost:5000", { BOUGH_TLS_VERIFY: "true" })).toBe(true);
  expect(verifiesTls("registry.example", { BOUGH_TLS_VERIFY: "false" })).toBe(false);
});

test.each<[string, Record<string, string>, string[]]>([
  ["r.example/app:1", {}, ["--retry-times", "2"]],
  ["r.example/app:1", { BOUGH_RETRY: "9" }, ["--retry-times", "9"]],
  ["localhost/app:1", {}, ["--retry-times", "2", "--src-tls-verify=false"]],
  ["localhost/app:1", { BOUGH_TLS_VERIFY: "true" }, ["--retry-times", "2", "--src-tls-verify=true"]],
])("skopeo fetches %s with %j by %j", (name, environment, copy) => {
  const own = { CONTAINERS_REGISTRIES_CONF: "", HOME: home, ...environment };
  expect(sourceWords(`docker://${name}`, home, own)).toEqual({ global: [], copy });
});
