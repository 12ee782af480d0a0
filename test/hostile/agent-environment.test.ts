/** The environment of `bough mcp`: it is that of whoever started the server, and no agent reads it. */
import { afterAll, beforeAll, expect, test } from "bun:test";
import { Agent } from "../support/agent.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { makeBusyboxLayout } from "../support/busybox-image.ts";
import { writeFiles } from "../support/files.ts";

const environment = {
  BOUGH_HOME: temporaryDirectory(),
  CONTREE_TOKEN: "service-token-canary",
  SAME_TOKEN: "service-token-canary",
  AWS_SECRET_ACCESS_KEY: "aws-canary",
  NPM_TOKEN: "npm-value",
};
let agent: Agent;
let directory: string;

beforeAll(async () => {
  const layout = await makeBusyboxLayout(temporaryDirectory());
  const imported = ["--local", "images", "import", layout, "--tag", "busybox:1"];
  expect(await runBough(imported, { workingDirectory: "/", environment })).toMatchObject({ exitCode: 0 });
  directory = temporaryDirectory();
  writeFiles(directory, {
    // Backwards, as no mask would find it.
    reader: "FROM busybox:1\nRUN --mount=type=secret,id=s rev < /run/secrets/s; exit 3\n",
    AWS: "FROM busybox:1\nRUN --mount=type=secret,id=AWS_SECRET_ACCESS_KEY rev < /run/secrets/AWS_SECRET_ACCESS_KEY; exit 3\n",
    argument: "FROM busybox:1\nARG AWS_SECRET_ACCESS_KEY\nRUN echo [$AWS_SECRET_ACCESS_KEY] | rev; exit 3\n",
  });
  const words = ["--local", "mcp", "--root", "/", "--secret-env", "NPM_TOKEN", "--secret-env", "SAME_TOKEN"];
  agent = await Agent.start(words, directory, environment);
});
afterAll(() => agent.close());

const build = (given: object) => agent.call("build", { context: ".", ...given });
const reversed = (text: string) => [...text].reverse().join("");

test.each([
  ["env=", { dockerfile: "reader", secrets: ["id=s,env=AWS_SECRET_ACCESS_KEY"] }],
  ["type=env", { dockerfile: "reader", secrets: ["id=s,type=env,src=AWS_SECRET_ACCESS_KEY"] }],
  ["the id alone", { dockerfile: "AWS", secrets: ["id=AWS_SECRET_ACCESS_KEY"] }],
  ["the id with type=env", { dockerfile: "AWS", secrets: ["id=AWS_SECRET_ACCESS_KEY,type=env"] }],
  ["the service's token", { dockerfile: "reader", secrets: ["id=s,env=CONTREE_TOKEN"] }],
  ["the token in a variable that is allowed", { dockerfile: "reader", secrets: ["id=s,env=SAME_TOKEN"] }],
  ["the server's file in /proc", { dockerfile: "reader", secrets: ["id=s,src=/proc/self/environ"] }],
  ["an argument without a value", { dockerfile: "argument", build_args: {} }],
  ["a directory of /proc as context", { context: "/proc/self", dockerfile: "/Dockerfile" }],
  ["all files as context", { context: "/", dockerfile: "reader" }],
])("a variable of the server is not read: %s", async (_, given) => {
  const { isError } = await build(given);
  expect(isError).toBe(true);
  for (const text of ["canary", reversed("canary"), ...Object.values(environment).map(reversed)])
    expect(agent.received).not.toContain(text);
});

test("nor by files of a run", async () => {
  for (const path of ["/proc/self/environ", "/proc/self", "/", "/dev/fd/0"]) {
    const given = { image: "busybox:1", command: ["true"], local_files: [`${path}:/x`] };
    expect(await agent.call("run", given)).toMatchObject({ isError: true });
  }
});

test("--secret-env allows one, and the error says so", async () => {
  const refused = await build({ dockerfile: "reader", secrets: ["id=s,env=OTHER"] });
  expect(refused.text).toContain(
    "the variable OTHER is not for builds: whoever starts the server allows that with --secret-env OTHER",
  );
  const { text } = await build({ dockerfile: "reader", secrets: ["id=s,env=NPM_TOKEN"] });
  expect(text).toContain(reversed("npm-value"));
});

test("--secret-env is refused for the service's token", async () => {
  const words = ["--local", "mcp", "--secret-env", "CONTREE_TOKEN"];
  expect(await runBough(words, { workingDirectory: directory, environment, stdin: "" })).toMatchObject({
    exitCode: 2,
    stderr: expect.stringContaining("--secret-env CONTREE_TOKEN: the service's token is not for builds"),
  });
});
