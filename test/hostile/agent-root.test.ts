/** Paths that an agent gives to `bough mcp`: none leads out of its root. */
import { afterAll, beforeAll, describe, expect, test } from "bun:test";
import { join } from "node:path";
import { type FakeService, startFakeService } from "../fake-service/fake-service.ts";
import { Agent } from "../support/agent.ts";
import { temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const canary = "root:canary:0:0";
let service: FakeService;
let parent: string;
let agents: Record<"confined" | "wider" | "free", Agent>;

beforeAll(async () => {
  service = await startFakeService({ run: () => ({ stdout: "fine\n" }) });
  service.state.addImage("base:1");
  parent = temporaryDirectory();
  const copying = "FROM base:1\nCOPY . /\nRUN make\n";
  writeFiles(parent, {
    passwd: `${canary}\n`,
    "outside/Dockerfile": `${canary}\n`,
    "outside/.dockerignore": `[${canary}\n`,
    "outside/index.json": `${canary}\n`,
    "work/app/Dockerfile": copying,
    "work/app/a": "a",
    "work/inside": { link: "app" },
    "work/outside": { link: "../outside" },
    "work/linked/Dockerfile": { link: "../../passwd" },
    "work/ignoring/Dockerfile": copying,
    "work/ignoring/.dockerignore": { link: "../../outside/.dockerignore" },
    "work/dangling/Dockerfile": { link: "../../nothing" },
    "work/mounting/Dockerfile": "FROM base:1\nRUN --mount=type=secret,id=s cat /run/secrets/s\n",
    "work/layout/index.json": { link: "../../passwd" },
  });
  const start = (...words: string[]) =>
    Agent.start(["mcp", ...words], join(parent, "work"), {
      ...{ CONTREE_URL: service.url, CONTREE_TOKEN: "token", BOUGH_HOME: temporaryDirectory() },
    });
  const [confined, wider, free] = await Promise.all([start(), start("--root", ".."), start("--root", "/")]);
  agents = { confined, wider, free };
});
afterAll(async () => {
  await Promise.all(Object.values(agents).map((agent) => agent.close()));
  await service.close();
});

const refusals: [what: string, tool: string, given: object][] = [
  ["an absolute Dockerfile", "check", { context: "app", dockerfile: "/etc/passwd" }],
  ["a Dockerfile above", "check", { context: "app", dockerfile: "../passwd" }],
  ["a Dockerfile above, to build", "build", { context: "app", dockerfile: "../passwd" }],
  ["a Dockerfile above, to explain", "explain", { context: "app", dockerfile: "app/../../passwd" }],
  ["a missing Dockerfile above", "check", { context: "app", dockerfile: "../missing" }],
  ["a context above", "build", { context: "..", dockerfile: "app/Dockerfile" }],
  ["a link to a context", "build", { context: "outside" }],
  ["a link in place of the Dockerfile", "check", { context: "linked" }],
  ["a dangling link in place of the Dockerfile", "check", { context: "dangling" }],
  ["a link in place of the ignore file", "check", { context: "ignoring" }],
  ["a named context above", "check", { context: "app", build_contexts: { lib: "../outside" } }],
  ["a link to a named context", "check", { context: "app", build_contexts: { lib: "outside" } }],
  ["a layout above", "check", { context: "app", build_contexts: { base: "oci-layout://../outside:x" } }],
  [
    "a link in place of a layout's index",
    "check",
    { context: "app", build_contexts: { base: "oci-layout://layout" } },
  ],
  ["a lock above", "build", { context: "app", lock: "../passwd" }],
  ["a link to a lock", "check", { context: "app", lock: "outside" }],
  ["a secret above", "build", { context: "mounting", secrets: ["id=s,src=../passwd"] }],
  ["a secret that its id names", "build", { context: "mounting", secrets: ["id=../passwd"] }],
  ["local files above", "run", { image: "base:1", command: ["cat"], local_files: ["../passwd:/x"] }],
  ["a link to local files", "run", { image: "base:1", command: ["cat"], local_files: ["outside:/x"] }],
];

test.each(refusals)("%s is refused, and nothing of it is told or sent", async (_, tool, given) => {
  const { confined } = agents;
  const before = service.requests.length;
  const { isError, text } = await confined.call(tool, { ...given });
  expect({ isError, text }).toEqual({
    isError: true,
    text: expect.stringMatching(
      /(outside of|leads out of) \S+work, to which the server's --root confines its tools/,
    ),
  });
  expect(service.requests.slice(before).filter(({ method }) => method === "POST")).toEqual([]);
  expect(confined.received).not.toContain("canary");
});

describe.each<[keyof typeof agents, string]>([
  ["confined", "what is below the root is allowed"],
  ["wider", "--root DIR allows what is below DIR"],
  ["free", "--root / allows everything"],
])("%s: %s", (name, _) => {
  const above = name === "confined" ? "." : "..";
  test.each([
    ["build", { context: "app" }],
    ["build", { context: "inside", dockerfile: "app/Dockerfile" }],
    ["build", { context: "app", secrets: [`id=s,src=${above === "." ? "app/a" : "../passwd"}`] }],
    ["check", { context: above === "." ? "app" : "../work/app", build_contexts: { lib: "app" } }],
    ["run", { image: "base:1", command: ["cat"], local_files: [above === "." ? "app:/x" : "../passwd:/x"] }],
  ])("%s %j", async (tool, given) => {
    expect(await agents[name].call(tool, given)).toMatchObject({ isError: false });
  });
});
