import { describe, expect, test } from "bun:test";
import { BoughError } from "../../src/errors.ts";
import type { Environment } from "../../src/home-directory.ts";
import { Secret } from "../../src/secret.ts";
import { chooseService, type ServiceFlags } from "../../src/service/profiles/profile.ts";

/** Files as the service's clients write them. */
const cli = `# written by hand
[DEFAULT]
profile = work

[profile:work]
url = https://work.example/api/
type = jwt

[profile:cloud.eu-1]
url=https://cloud.example   ; the second region
type = iam
project = p-1

[profile:no-project]
url = https://cloud.example
type = iam

[profile:no-url]
type = iam
project = p-2
`;
const auth = `[profile:work]
token = work-token
[profile:cloud.eu-1]
token = cloud-token
[profile:no-project]
token = t
[profile:no-url]
token = t
`;
const files = [
  { path: "cli.ini", text: cli },
  { path: "auth.ini", text: auth },
];
const work = { url: "https://work.example/api", token: "work-token", project: undefined };
const cloud = { url: "https://cloud.example", token: "cloud-token", project: "p-1" };

type Case = [
  what: string,
  input: { flags?: ServiceFlags; environment?: Environment; files?: typeof files },
  expected: object,
];

describe("the service is chosen by", () => {
  const cases: Case[] = [
    ["no configuration: the embedded engine", { files: [] }, { kind: "embedded" }],
    [
      "--local, although a profile is active",
      { flags: { local: true, url: "https://x.example" } },
      { kind: "embedded" },
    ],
    ["the active profile", {}, { kind: "remote", ...work, source: "profile work" }],
    [
      "--profile, with a dot in its name",
      { flags: { profile: "cloud.eu-1" } },
      { kind: "remote", ...cloud, source: "profile cloud.eu-1" },
    ],
    [
      "CONTREE_PROFILE",
      { environment: { CONTREE_PROFILE: "cloud.eu-1" } },
      { kind: "remote", ...cloud, source: "profile cloud.eu-1" },
    ],
    [
      "--profile over CONTREE_PROFILE",
      { flags: { profile: "work" }, environment: { CONTREE_PROFILE: "gone" } },
      { kind: "remote", ...work, source: "profile work" },
    ],
    [
      "a profile over variables",
      { environment: { CONTREE_URL: "https://env.example", CONTREE_TOKEN: "e" } },
      { kind: "remote", ...work, source: "profile work" },
    ],
    [
      "a profile named default, without a [DEFAULT]",
      { files: [{ path: "cli.ini", text: "[profile:default]\nurl = https://d.example\n" }] },
      {
        kind: "remote",
        url: "https://d.example",
        token: undefined,
        project: undefined,
        source: "profile default",
      },
    ],
    [
      "a profile with values of [DEFAULT]",
      {
        files: [
          {
            path: "cli.ini",
            text: "[DEFAULT]\nprofile = a\nurl = https://all.example\n[profile:a]\ntoken = t\n",
          },
        ],
      },
      { kind: "remote", url: "https://all.example", token: "t", project: undefined, source: "profile a" },
    ],
    [
      "a profile with a comment after its section's name",
      {
        files: [
          {
            path: "cli.ini",
            text: "[DEFAULT] ; mine\nprofile = a\n[profile:a] # at work\nurl = https://a.example\ntoken = t\n",
          },
        ],
      },
      { kind: "remote", url: "https://a.example", token: "t", project: undefined, source: "profile a" },
    ],
    [
      "flags before the profile",
      { flags: { token: Secret.of("mine"), project: "p-9" } },
      { kind: "remote", ...work, token: "mine", project: "p-9", source: "profile work" },
    ],
    [
      "variables if there is no file",
      {
        files: [],
        environment: { CONTREE_URL: "https://env.example/", CONTREE_TOKEN: "e", CONTREE_PROJECT: "p" },
      },
      { kind: "remote", url: "https://env.example", token: "e", project: "p", source: "CONTREE_URL" },
    ],
    [
      "the other names of the variables",
      {
        files: [],
        environment: { CONTREE_URL: "https://env.example", NEBIUS_API_KEY: "k", NEBIUS_AI_PROJECT: "p" },
      },
      { kind: "remote", url: "https://env.example", token: "k", project: "p", source: "CONTREE_URL" },
    ],
    [
      "no variable of another tool",
      { files: [], environment: { NEBIUS_API_KEY: "k" } },
      { kind: "embedded" },
    ],
    [
      "no empty variables",
      { files: [], environment: { CONTREE_URL: "", CONTREE_TOKEN: "" } },
      { kind: "embedded" },
    ],
    [
      "--url",
      { files: [], flags: { url: "http://127.0.0.1:8080//", token: Secret.of("t") } },
      { kind: "remote", url: "http://127.0.0.1:8080", token: "t", project: undefined, source: "--url" },
    ],
    [
      "--url with a token in a variable",
      { files: [], flags: { url: "https://x.example" }, environment: { CONTREE_TOKEN: "e" } },
      { kind: "remote", url: "https://x.example", token: "e", project: undefined, source: "--url" },
    ],
    [
      "--url with the profile's token if the host is the profile's",
      { flags: { url: "https://work.example/other" } },
      {
        kind: "remote",
        url: "https://work.example/other",
        token: "work-token",
        project: undefined,
        source: "--url",
      },
    ],
    [
      "--url without the profile's token if the host is another",
      { flags: { url: "https://evil.example" } },
      { kind: "remote", url: "https://evil.example", token: undefined, project: undefined, source: "--url" },
    ],
    [
      "--url without a variable's token if the host is another",
      {
        files: [],
        flags: { url: "https://evil.example" },
        environment: { CONTREE_URL: "https://env.example", CONTREE_TOKEN: "e" },
      },
      { kind: "remote", url: "https://evil.example", token: undefined, project: undefined, source: "--url" },
    ],
    [
      "--url and --profile together",
      { flags: { url: "https://moved.example", profile: "work" } },
      {
        kind: "remote",
        url: "https://moved.example",
        token: "work-token",
        project: undefined,
        source: "profile work",
      },
    ],
    [
      "--url, although CONTREE_PROFILE names a missing profile",
      { flags: { url: "https://x.example" }, environment: { CONTREE_PROFILE: "gone" } },
      { kind: "remote", url: "https://x.example", token: undefined, project: undefined, source: "--url" },
    ],
  ];
  test.each(cases)("%s", (_, input, expected) => {
    const choice = chooseService({ flags: {}, environment: {}, files, ...input });
    const shown = choice.kind === "embedded" ? choice : { ...choice, token: choice.token?.text() };
    expect<unknown>(shown).toEqual(expected);
  });
});

describe("an invalid configuration is an error:", () => {
  const cases: [
    what: string,
    input: { flags?: ServiceFlags; environment?: Environment; files?: typeof files },
    message: string,
    hint: string,
  ][] = [
    [
      "a --profile that does not exist",
      { flags: { profile: "wrok" } },
      'no profile "wrok" (--profile)',
      "cloud.eu-1, no-project, no-url, work",
    ],
    [
      "a CONTREE_PROFILE that does not exist",
      { environment: { CONTREE_PROFILE: "x" } },
      "(CONTREE_PROFILE)",
      "work",
    ],
    [
      "a --profile with ports, as of docker run -p",
      { flags: { profile: "127.0.0.1:8080:80/tcp" } },
      "there is no profile",
      "No ports are published",
    ],
    [
      "an active profile that does not exist",
      { files: [{ path: "cli.ini", text: "[DEFAULT]\nprofile = x\n" }] },
      "([DEFAULT] profile)",
      "No profile is saved yet",
    ],
    ["iam without a project", { flags: { profile: "no-project" } }, "needs a project", "--project"],
    ["iam without an address", { flags: { profile: "no-url" } }, "address is missing", "url = https://..."],
    [
      "a token without an address",
      { files: [], flags: { token: Secret.of("t") } },
      "--token is given",
      "--url",
    ],
    [
      "a token in a variable without an address",
      { files: [], environment: { CONTREE_TOKEN: "t" } },
      "address is missing",
      "CONTREE_URL",
    ],
    [
      "an address without a scheme",
      { files: [], flags: { url: "work.example" } },
      "not a service address: work.example",
      "https://",
    ],
    [
      "an address with a password",
      { files: [], flags: { url: "https://me:secret@x.example" } },
      "https://x.example has a user name or password",
      "--token",
    ],
    [
      "an address with a query",
      { files: [], flags: { url: "https://x.example/?a=1" } },
      "has a query",
      "question mark",
    ],
  ];
  test.each(cases)("%s", (_, input, message, hint) => {
    const choose = () => chooseService({ flags: {}, environment: {}, files, ...input });
    expect(choose).toThrow(message);
    try {
      choose();
    } catch (error) {
      if (!(error instanceof BoughError)) throw error;
      expect(error.exitCode).toBe(2);
      expect(String(error.hint)).toContain(hint);
      expect(error.message).not.toContain("secret");
    }
  });

  test("a project on the command line replaces the profile's", () => {
    const choice = chooseService({ flags: { profile: "no-project", project: "p" }, environment: {}, files });
    expect(choice).toMatchObject({ kind: "remote", project: "p" });
  });
});
