/** What `bough bake` says of targets instead of building them: `--check`, `--call`, and the field `call`. */
import { beforeAll, expect, test } from "bun:test";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";

const directory = temporaryDirectory();
beforeAll(() =>
  writeFiles(directory, {
    "docker-bake.hcl": `
      group "default" { targets = ["web", "api"] }
      target "web" {
        description = "What people see"
        dockerfile-inline = "FROM scratch AS first\\nARG MODE=fast\\nCOPY file /\\n"
      }
      target "api" { dockerfile-inline = "FROM scratch AS Upper\\nCOPY file /\\n" }
      target "checked" {
        inherits = ["web"]
        call = "check"
      }`,
    file: "text",
  }),
);

const bake = (...words: string[]) =>
  runBough(["--local", "bake", ...words], {
    workingDirectory: directory,
    environment: { BOUGH_HOME: join(directory, "home") },
  });

test("checks stand under the names of their targets, by name", async () => {
  const { exitCode, stdout } = await bake("--check");
  const [api = "", web] = stdout.split("\nweb\n");
  expect(api).toStartWith("api\n\n");
  expect(api).toContain("StageNameCasing");
  expect(web).toBe("What people see\n\nCheck complete, no warnings found.\n");
  expect(exitCode).toBe(0);
  expect(await bake("--call", "check,ignorestatus=true")).toMatchObject({ exitCode: 0, stdout });
  expect(await bake("--call", "lint", "web")).toMatchObject({ exitCode: 0 });
});

test("what a Dockerfile has, in texts and in one JSON", async () => {
  const { exitCode, stdout } = await bake("--call=outline", "web");
  expect({ exitCode, stdout }).toEqual({
    exitCode: 0,
    stdout: expect.stringMatching(/^web\nWhat.*\n\n.*MODE/s),
  });
  const called = await bake("--call", "targets,format=json");
  const { group, target } = JSON.parse(called.stdout);
  expect(group).toEqual({ default: { targets: ["api", "web"] } });
  expect(target.web.build).toMatchObject({ description: "What people see", call: "targets" });
  expect(JSON.stringify(target.web.targets)).toContain("first");
  expect(JSON.stringify(target.api.targets)).toContain("upper");
});

test("a target of the file is checked behind the builds of the others", async () => {
  const { exitCode, stdout, stderr } = await bake("--metadata-file", "built.json", "web", "checked");
  expect({ exitCode, stderr: exitCode === 0 ? "" : stderr }).toEqual({ exitCode: 0, stderr: "" });
  expect(stdout).toMatch(/^TARGET.*\nweb .*\nchecked\nWhat people see\n\nCheck complete/s);
  const metadata = JSON.parse(readFileSync(join(directory, "built.json"), "utf8"));
  expect(Object.keys(metadata)).toEqual(["checked", "web"]);
  expect(metadata.checked).toEqual({});
});

test("--call=build leaves the files' word, as in docker buildx bake", async () => {
  const { exitCode, stdout } = await bake("--call=build", "--print", "checked");
  expect(exitCode).toBe(0);
  expect(JSON.parse(stdout).target.checked).toHaveProperty("call", "check");
});

test("--no-cache=false and --pull=false count for targets that have true", async () => {
  const set = ["--set", "web.no-cache=true", "--set", "web.pull=true", "--print", "web"];
  const { stdout } = await bake("--no-cache=false", "--pull=false", ...set);
  expect(JSON.parse(stdout).target.web).toMatchObject({ "no-cache": false, pull: false });
});

test("another call is refused", async () => {
  const { exitCode, stderr } = await bake("--call", "floppy");
  expect(exitCode).toBe(2);
  expect(stderr).toContain('--call takes check, outline, targets, build, not "floppy"');
});
