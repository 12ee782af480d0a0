/** Logins to registries: challenges, token servers, and where credentials are found. No message contains a secret. */
import { expect, test } from "bun:test";
import { chmodSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "../../src/clock.ts";
import { parseChallenge } from "../../src/registry/authorization.ts";
import { credentialHelpers, findLogin } from "../../src/registry/credentials.ts";
import { openBlobStore } from "../../src/registry/open-blob-store.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { blob, startFakeRegistry } from "./fake-registry.ts";

const { signal } = new AbortController();
const base64 = (text: string) => Buffer.from(text).toString("base64");

test.each<[string | null, unknown]>([
  [null, undefined],
  ["", undefined],
  ['Basic realm="a, b"', { scheme: "basic", realm: "a, b" }],
  ["basic realm=plain", { scheme: "basic", realm: "plain" }],
  [
    'Bearer realm="https://t/x",service="s",scope="repository:a:pull,push"',
    { scheme: "bearer", realm: "https://t/x", service: "s", scope: "repository:a:pull,push" },
  ],
  [
    'Basic realm="b", Bearer realm="https://t" , error="e\\"q"',
    { scheme: "bearer", realm: "https://t", error: 'e"q' },
  ],
  ["Negotiate", undefined],
  ["=;\u0000", undefined],
])("the challenge in %j", (header, expected) => {
  const found = parseChallenge(header);
  const actual = found && { scheme: found.scheme, ...Object.fromEntries(found.parameters) };
  expect(actual as unknown).toEqual(expected);
});

/** Starts a registry that wants tokens of another server, and counts these. `isValid` says which it accepts. */
function startWithTokens(isValid: (token: string | null) => boolean, expires = 300) {
  let count = 0;
  const tokens = startFakeRegistry(() => Response.json({ token: `t0ken-${++count}`, expires_in: expires }));
  const registry = startFakeRegistry(({ headers }) => {
    if (isValid(headers.get("authorization"))) return undefined;
    const challenge = `Bearer realm="http://${tokens.host}/token",service="the registry",scope="ignored"`;
    return new Response("{}", { status: 401, headers: { "www-authenticate": challenge } });
  });
  return { tokens, registry };
}

const askedToLogIn = (host: string) =>
  new Response("", { status: 401, headers: { "www-authenticate": `Bearer realm="http://${host}/token"` } });

function open(host: string, auth: object) {
  const file = join(temporaryDirectory(), "auth.json");
  writeFileSync(file, JSON.stringify({ auths: { [host]: auth } }));
  const environment = { REGISTRY_AUTH_FILE: file };
  return openBlobStore(`docker://${host}/team/app`, { fetch, clock: systemClock, environment });
}

test("a token is asked for with the password and the scope, once for all requests, and again when it is refused", async () => {
  const refused = new Set([null]) as Set<string | null>;
  const { tokens, registry } = startWithTokens((token) => !refused.has(token));
  await using _ = tokens;
  await using __ = registry;
  const store = open(registry.host, { auth: base64("ann:secret") });
  const again = () => store.putBlob(blob, () => [blob.bytes] as never, signal);
  await again();
  await again();
  expect(tokens.requests.map(({ target }) => target)).toEqual([
    "/token?service=the+registry&scope=repository%3Ateam%2Fapp%3Apull%2Cpush",
  ]);
  expect(tokens.requests[0]?.headers.get("authorization")).toBe(`Basic ${base64("ann:secret")}`);
  refused.add("Bearer t0ken-1");
  await again();
  expect(tokens.requests).toHaveLength(2);
  expect(registry.requests.at(-1)?.headers.get("authorization")).toBe("Bearer t0ken-2");
  refused.add("Bearer t0ken-2").add("Bearer t0ken-3").add("Bearer t0ken-4");
  const failed = await again().catch((error: Error) => error);
  expect(failed).toMatchObject({ message: expect.stringContaining("responded with 401 Unauthorized") });
  expect(Bun.inspect(failed) + JSON.stringify(failed)).not.toMatch(/t0ken|secret|c2VjcmV0/);
});

test("requests at the same time share a token, which is not used when it is about to expire", async () => {
  const { tokens, registry } = startWithTokens((token) => token !== null, 60);
  await using _ = tokens;
  await using __ = registry;
  let now = 0;
  const store = openBlobStore(`docker://${registry.host}/team/app`, {
    ...{ fetch, environment: {} },
    clock: { now: () => now, sleep: systemClock.sleep },
  });
  for (now of [0, 49_000, 51_000]) await Promise.all([1, 2, 3, 4].map(() => store.hasBlob(blob, signal)));
  expect(tokens.requests).toHaveLength(2);
  // Nobody has logged in.
  expect(tokens.requests[0]?.headers.has("authorization")).toBe(false);
});

test("a token server's error is that of all who wait for the token, and is not remembered", async () => {
  let isFailing = true;
  await using tokens = startFakeRegistry(() =>
    isFailing ? new Response("no", { status: 403 }) : Response.json({ token: "t" }),
  );
  await using registry = startFakeRegistry(({ headers }) =>
    headers.has("authorization") ? undefined : askedToLogIn(tokens.host),
  );
  const store = open(registry.host, { auth: base64("ann:secret") });
  const outcomes = await Promise.allSettled([1, 2, 3].map(() => store.hasBlob(blob, signal)));
  expect(outcomes.map(({ status }) => status)).toEqual(["rejected", "rejected", "rejected"]);
  expect(tokens.requests).toHaveLength(1);
  isFailing = false;
  expect(await store.hasBlob(blob, signal)).toBe(true);
});

test("a request that waits for the token of one that is aborted asks for its own", async () => {
  const { promise: isAsked, resolve } = Promise.withResolvers<void>();
  await using tokens = startFakeRegistry(() => {
    if (tokens.requests.length > 1) return Response.json({ token: "t" });
    resolve();
    return new Promise<never>(() => {});
  });
  await using registry = startFakeRegistry(({ headers }) =>
    headers.has("authorization") ? undefined : askedToLogIn(tokens.host),
  );
  const store = open(registry.host, { auth: base64("ann:secret") });
  const aborted = new AbortController();
  const first = store.hasBlob(blob, aborted.signal).catch(() => "aborted");
  await isAsked;
  const second = store.hasBlob(blob, signal);
  aborted.abort();
  expect(await Promise.all([first, second])).toEqual(["aborted", true]);
});

test("an identity token is exchanged, and goes to the token server only", async () => {
  const { tokens, registry } = startWithTokens((token) => token === "Bearer t0ken-1");
  await using _ = tokens;
  await using __ = registry;
  const store = open(registry.host, { identitytoken: "identity" });
  expect(await store.hasBlob(blob, signal)).toBe(true);
  const [{ method, body } = { method: "", body: "" }] = tokens.requests;
  expect(method).toBe("POST");
  expect(Object.fromEntries(new URLSearchParams(body))).toEqual({
    grant_type: "refresh_token",
    client_id: "bough",
    service: "the registry",
    scope: "repository:team/app:pull",
    refresh_token: "identity",
  });
  const sent = registry.requests.map(({ headers }) => headers.get("authorization"));
  expect(sent).toEqual([null, "Bearer t0ken-1"]);
});

test.each<[string, () => Response, string]>([
  ["an error", () => new Response("no", { status: 403 }), "/token responded with 403 Forbidden: no"],
  ["a page", () => new Response("<p>"), "/token responded with invalid JSON instead of a token"],
  ["no token", () => Response.json({}), "/token responded without a token"],
  ["a token of two lines", () => Response.json({ token: "a\nb: c" }), "/token responded without a token"],
])("a token server that responds with %s is named", async (_, respond, message) => {
  await using tokens = startFakeRegistry(respond);
  await using registry = startFakeRegistry(() => askedToLogIn(tokens.host));
  const store = open(registry.host, { auth: base64("ann:secret") });
  await expect(store.hasBlob(blob, signal)).rejects.toThrow(message);
});

const repository = { registry: "r.example:5000", name: "team/app" };
const password = (username: string) => ({ kind: "password", username });

test.each<[string, Record<string, object>, { registry: string; name: string }, unknown]>([
  ["nothing", {}, repository, undefined],
  [
    "docker's file",
    { "docker/config.json": { auths: { "r.example:5000": { auth: base64("a:p") } } } },
    repository,
    password("a"),
  ],
  [
    "podman's before docker's",
    {
      "run/containers/auth.json": { auths: { "r.example:5000": { auth: base64("podman:p") } } },
      "docker/config.json": { auths: { "r.example:5000": { auth: base64("docker:p") } } },
    },
    repository,
    password("podman"),
  ],
  [
    "the longest prefix",
    {
      "config/containers/auth.json": {
        auths: {
          "r.example:5000": { auth: base64("all:p") },
          "r.example:5000/team": { auth: base64("team:p") },
          "r.example:5000/team/ap": { auth: base64("other:p") },
        },
      },
    },
    repository,
    password("team"),
  ],
  [
    "an address",
    { "docker/config.json": { auths: { "https://r.example:5000/v2/": { username: "u", password: "p" } } } },
    repository,
    password("u"),
  ],
  [
    "Docker Hub",
    { "docker/config.json": { auths: { "https://index.docker.io/v1/": { auth: base64("hub:p") } } } },
    { registry: "docker.io", name: "library/busybox" },
    password("hub"),
  ],
  ["an empty entry", { "docker/config.json": { auths: { "r.example:5000": {} } } }, repository, undefined],
  [
    "an identity token",
    {
      "docker/config.json": { auths: { "r.example:5000": { auth: base64("<token>:"), identitytoken: "t" } } },
    },
    repository,
    { kind: "identity" },
  ],
  [
    "a helper",
    { "docker/config.json": { credHelpers: { "r.example:5000": "test" } } },
    repository,
    password("of r.example:5000"),
  ],
  [
    "a store",
    { "docker/config.json": { credsStore: "test", auths: { "r.example:5000": {} } } },
    repository,
    password("of r.example:5000"),
  ],
  [
    "a store, for Docker Hub",
    { "docker/config.json": { credsStore: "test" } },
    { registry: "docker.io", name: "team/app" },
    password("of https://index.docker.io/v1/"),
  ],
  [
    "a helper outside of the PATH",
    { "docker/config.json": { credsStore: "../test" } },
    repository,
    undefined,
  ],
  ["a missing helper", { "docker/config.json": { credsStore: "missing" } }, repository, undefined],
])("the login by %s", async (_, files, wanted, expected) => {
  const home = temporaryDirectory();
  for (const [path, content] of Object.entries(files)) {
    mkdirSync(join(home, path, ".."), { recursive: true });
    writeFileSync(join(home, path), JSON.stringify(content));
  }
  const environment = {
    XDG_RUNTIME_DIR: join(home, "run"),
    XDG_CONFIG_HOME: join(home, "config"),
    DOCKER_CONFIG: join(home, "docker"),
  };
  const found = await findLogin(wanted, environment, async (name, input) =>
    name === "test" ? JSON.stringify({ Username: `of ${input}`, Secret: "s" }) : undefined,
  );
  expect(found).toEqual(
    expected === undefined ? undefined : (expect.objectContaining(expected as object) as never),
  );
});

test("a credential helper is a program in the PATH; one that fails has nothing", async () => {
  const directory = temporaryDirectory();
  const program = (name: string, script: string) => {
    const path = join(directory, `docker-credential-${name}`);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
  };
  program("echo", 'read server; echo "$1 $server $CLOUD$BOUGH_TOKEN"');
  program("none", "exec <&-; echo credentials not found in native keychain; exit 1");
  const environment = { PATH: `${directory}:/usr/bin:/bin`, CLOUD: "cloud", BOUGH_TOKEN: "token" };
  const run = credentialHelpers(environment, systemClock);
  expect(await run("echo", "r.example")).toBe("get r.example cloud\n");
  expect(await run("none", "r.example")).toBeUndefined();
  expect(await run("missing", "r.example")).toBeUndefined();
});

test("damaged credentials are an error that names the file, and quotes nothing of it", async () => {
  const file = join(temporaryDirectory(), "auth.json");
  writeFileSync(file, '{"auths": secret');
  const found = findLogin(repository, { REGISTRY_AUTH_FILE: file }, async () => undefined);
  await expect(found).rejects.toThrow(`the credentials in ${file} cannot be read: it is not JSON`);
});
