import { expect, test } from "bun:test";
import { readGlobals } from "../src/cli/command-line/globals.ts";
import type { Runtime } from "../src/cli/process/runtime.ts";
import { clientOptions } from "../src/cli/service/choice.ts";
import { readCredentials } from "../src/cli/service/registry-options.ts";
import { systemClock } from "../src/clock.ts";
import { Secret } from "../src/secret.ts";
import { createService } from "../src/service/client.ts";
import { chooseService } from "../src/service/profiles/profile.ts";
import { readProfiles } from "../src/service/profiles/profile-text.ts";
import type { ImageImport } from "../src/service/service.ts";

test("a secret is in no JSON, no text and no inspection of what holds it", () => {
  const secret = new Secret(new TextEncoder().encode("hunter2"));
  const holder = { mounts: [{ target: "/run/secrets/one", value: secret }] };
  expect(() => JSON.stringify(holder)).toThrow("can't be written as JSON");
  for (const shown of [`${secret}`, Bun.inspect(holder, { depth: 9 }), Object.values(secret).join()])
    expect(shown).not.toMatch(/hunter2|104,\s*117/);
  expect(() => structuredClone(secret).reveal()).toThrow();
  expect(new TextDecoder().decode(secret.reveal())).toBe("hunter2");
});

const token = "hunter2-hunter2";
const files = [
  {
    path: "auth.ini",
    text: `[DEFAULT]\nprofile = work\n[profile:work]\nurl = https://work.example\ntoken = ${token}\n`,
  },
];
const none = {
  names: [],
  flag: () => false,
  text: () => undefined,
  list: () => [],
  positionals: [],
  rest: undefined,
};
const globals = readGlobals(none, { ...none, text: (name) => (name === "token" ? token : undefined) });
const url = "https://work.example";
const remoteBy = (choice: ReturnType<typeof chooseService>) => {
  if (choice.kind !== "remote") throw new Error("the embedded engine has no token");
  return choice;
};
const chosen = remoteBy(chooseService({ flags: {}, environment: {}, files }));
const runtime = { platform: "linux" } as Runtime;
const credentials: ImageImport["credentials"] = { username: "me", password: Secret.of(token) };
const ofRegistry = readCredentials({
  ...none,
  text: (name) => (name === "creds" ? `me:${token}` : undefined),
});

/** What carries a token or a password from where it is given to where it is sent. */
test.each<[what: string, holder: unknown, secret: Secret | undefined]>([
  ["the global options", globals, globals.token],
  ["the profiles", [...readProfiles(files).byName.values()], readProfiles(files).byName.get("work")?.token],
  ["the choice of a profile", chosen, chosen.token],
  ...[
    { flags: { ...globals, url }, environment: {} },
    { flags: { url }, environment: { CONTREE_TOKEN: token } },
  ].map((given): [string, unknown, Secret | undefined] => {
    const choice = remoteBy(chooseService({ files: [], ...given }));
    return [`the choice by ${Object.keys(given.environment)[0] ?? "--token"}`, choice, choice.token];
  }),
  ["the address of a service", clientOptions(chosen, runtime), clientOptions(chosen, runtime).token],
  ["the credentials of --creds", ofRegistry, ofRegistry?.password],
  ["the request for an import", { url: "docker://x/y", credentials }, credentials.password],
])("%s shows nothing of its secret", (_, holder, secret) => {
  expect(secret?.text()).toBe(token);
  expect(Bun.inspect(holder, { depth: 9 })).not.toContain(token);
  expect(() => JSON.stringify(holder)).toThrow("can't be written as JSON");
});

test("a client shows nothing of its token", () => {
  const service = createService({
    ...clientOptions(chosen, runtime),
    fetch,
    clock: systemClock,
    signal: new AbortController().signal,
    onNotice() {},
  });
  expect(Bun.inspect(service, { depth: 9 }) + JSON.stringify(service)).not.toContain(token);
});
