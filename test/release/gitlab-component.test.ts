/** `scripts/gitlab-component`: the job's script, run by sh with a release on the loopback and the embedded engine. */
import { expect, setDefaultTimeout, test } from "bun:test";
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { temporaryDirectory } from "../support/bough.ts";
import { compileBough } from "../support/compiled.ts";
import { fill, installer, makeRelease, ownInstaller, serve } from "./fake-release.ts";

setDefaultTimeout(120_000);

interface Job {
  cache: { key: string; paths: string[] };
  variables: Record<string, string>;
  script: string[];
  artifacts: { paths: string[]; reports: Record<string, string> };
}

const ownPlatform = `linux/${process.arch === "x64" ? "amd64" : process.arch}`;

type Inputs = Record<string, string>;

const file = join(import.meta.dir, "../../scripts/gitlab-component/templates/build.yml");
const [specification = "", template = ""] = readFileSync(file, "utf8").split(/^---$/m);
const { spec } = Bun.YAML.parse(specification) as {
  spec: { inputs: Record<string, { default: string | boolean }> };
};

/** Returns the job as GitLab makes it: inputs are replaced in the values of the parsed template. */
function jobWith(inputs: Inputs): Job {
  const text = JSON.stringify(Bun.YAML.parse(template));
  const filled = text.replace(/\$\[\[ inputs\.([a-z0-9-]+) \]\]/g, (_, name: string) => {
    const input = spec.inputs[name];
    if (input === undefined) throw new Error(`the template uses an input that it does not declare: ${name}`);
    return JSON.stringify(String(inputs[name] ?? input.default)).slice(1, -1);
  });
  const [job] = Object.values(JSON.parse(filled) as Record<string, Job>);
  if (job === undefined) throw new Error("the template has no job");
  return job;
}

function makeProject() {
  const home = temporaryDirectory();
  const project = join(home, "builds/app");
  mkdirSync(join(project, ".git"), { recursive: true });
  cpSync("/bin/busybox", join(project, "busybox"));
  writeFileSync(
    join(project, "Dockerfile"),
    'FROM scratch AS Base\nCOPY . /\nARG TITLE\nRUN ["/busybox", "sh", "-c", "echo \\"$TITLE\\" > /title"]\n',
  );
  return { home, project };
}

async function run({ home, project }: ReturnType<typeof makeProject>, inputs: Inputs, machine = "home") {
  const { variables, script } = jobWith({ packages: "", "registry-login": "false", ...inputs });
  const child = Bun.spawn(["sh", "-c", `exec 2>&1\n${script.join("\n")}`], {
    cwd: project,
    env: {
      ...{ PATH: process.env.PATH, HOME: join(home, machine), BOUGH_HOME: join(home, machine, "state") },
      ...{ CI_PROJECT_DIR: project, CI_COMMIT_REF_SLUG: "main" },
      ...variables,
    },
    stdout: "pipe",
  });
  const output = await new Response(child.stdout).text();
  return { exitCode: await child.exited, output };
}

function serveRelease() {
  const release = makeRelease();
  fill(release, `[ "$1" != --version ] || { echo 1.2.3; exit; }\nexec ${compileBough()} "$@"`);
  const text = readFileSync(ownInstaller());
  writeFileSync(join(release, "install.sh"), text);
  const server = serve(release);
  const inputs = {
    release: server.url.replace(/\/$/, ""),
    version: "1.2.3",
    "installer-sha256": new Bun.CryptoHasher("sha256").update(text).digest("hex"),
  };
  return { inputs, [Symbol.dispose]: () => server[Symbol.dispose]() };
}

test("each input has a default and is used; the default installer is that of this version", () => {
  for (const [name, input] of Object.entries(spec.inputs)) {
    expect([name, "default" in input]).toEqual([name, true]);
    expect([name, template.includes(`$[[ inputs.${name} ]]`)]).toEqual([name, true]);
  }
  const digest = new Bun.CryptoHasher("sha256").update(readFileSync(installer)).digest("hex");
  expect(spec.inputs["installer-sha256"]?.default).toBe(digest);
  expect(jobWith({}).script.join("")).not.toContain("$[[");
});

test("builds with a verified release, keeps the layers for another machine, and reports", async () => {
  using release = serveRelease();
  const made = makeProject();
  const { home, project } = made;
  const evil = join(home, "evil");
  const title = `"; touch ${evil}; $(touch ${evil}) \`touch ${evil}\` 'x`;
  const inputs = {
    ...release.inputs,
    tags: "app:1, app:2",
    platforms: ownPlatform,
    "build-args": `TITLE=${title}\n`,
  };
  const first = await run(made, inputs);
  expect(first).toMatchObject({ exitCode: 0 });
  expect(existsSync(evil)).toBe(false);
  const { artifacts, cache } = jobWith({});
  const written = [...artifacts.paths, ...Object.values(artifacts.reports), ...cache.paths];
  expect(readdirSync(project).sort()).toEqual([".git", "Dockerfile", "busybox", ...written].sort());
  expect(readdirSync(join(project, ".."))).toEqual(["app"]);
  expect(readFileSync(join(project, "bough.env"), "utf8")).toMatch(/^BOUGH_IMAGE_ID=[0-9a-f-]{36}\n$/);
  const { tags, steps } = JSON.parse(readFileSync(join(project, "bough-metadata.json"), "utf8"));
  expect([tags, steps.length]).toEqual([["app:1", "app:2"], 4]);
  const findings = JSON.parse(readFileSync(join(project, "gl-code-quality-report.json"), "utf8"));
  expect(findings).toEqual([expect.objectContaining({ check_name: "StageNameCasing" })]);

  // A runner restores the cache only. It is in no layer, though the context is copied whole.
  for (const name of [...artifacts.paths, ...Object.values(artifacts.reports)])
    Bun.spawnSync(["rm", join(project, name)]);
  const second = await run(made, inputs, "another");
  expect(second.output).toMatch(/2 of 2 layers cached/);
});

test("a failed build fails the job, keeps the cache, and has the report of the checks", async () => {
  using release = serveRelease();
  const made = makeProject();
  writeFileSync(join(made.project, "Dockerfile"), 'FROM scratch AS Base\nRUN ["/none"]\n');
  const { exitCode, output } = await run(made, release.inputs);
  expect({ exitCode, output }).toEqual({ exitCode: 1, output: expect.stringContaining("Dockerfile:2: ") });
  expect(readdirSync(made.project)).toContain(".bough-cache");
  expect(readdirSync(made.project)).toContain("gl-code-quality-report.json");
  expect(readdirSync(made.project)).not.toContain("bough.env");
});

test.each<[string, Inputs, string]>([
  [
    "an installer that is not the known one",
    { "installer-sha256": "0".repeat(64) },
    "is not the installer that this component knows",
  ],
  ["another version", { version: "9.9.9" }, "is not bough 9.9.9"],
  ["an invalid platform", { platforms: "no such/platform" }, "invalid platform"],
])("refuses %s", async (_, inputs, message) => {
  using release = serveRelease();
  const { exitCode, output } = await run(makeProject(), { ...release.inputs, ...inputs });
  expect(exitCode).not.toBe(0);
  expect(output).toContain(message);
  expect(output).not.toContain("spawned");
});
