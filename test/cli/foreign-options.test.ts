/** The options of other programs, each tried once: what bough answers is in `test/cases/foreign`. */
import { expect, test } from "bun:test";
import { join } from "node:path";
import type { ForeignOption } from "../../src/cli/command-line/foreign-options.ts";
import { readUsage } from "../../src/cli/command-line/foreign-options.ts";
import { dockerBuild, kaniko, podmanBuild } from "../../src/cli/foreign/build-options.ts";
import {
  dockerImages,
  dockerImport,
  dockerInspect,
  dockerPush,
  dockerRmi,
  dockerSave,
} from "../../src/cli/foreign/image-options.ts";
import { dockerRun, podmanRun } from "../../src/cli/foreign/run-options.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { expectGolden } from "../support/golden.ts";
import { describeBuildxFlags, workingFlags } from "./buildx-flags.ts";

const workingDirectory = temporaryDirectory();
await Bun.write(join(workingDirectory, "Dockerfile"), "FROM base:1\n");

test.each<[name: string, before: string[], after: string[], table: readonly ForeignOption[]]>([
  ["docker-build", ["build", "--docker", "--check"], ["."], dockerBuild],
  ["podman-build", ["build", "--docker", "--check"], ["."], podmanBuild],
  ["kaniko", ["build", "--docker", "--check"], ["."], kaniko],
  ["docker-run", ["run", "--docker", "--keep", "-D"], ["app", "-x"], dockerRun],
  ["docker-images", ["images", "--limit", "x"], [], dockerImages],
  ["docker-rmi", ["rmi", "--url", "nonsense"], ["app"], dockerRmi],
  ["docker-push", ["push", "--url", "nonsense"], ["app"], dockerPush],
  ["docker-inspect", ["inspect", "--limit", "x"], ["app"], dockerInspect],
  ["docker-import", ["images", "import", "--url", "nonsense"], ["app"], dockerImport],
  ["docker-save", ["images", "export"], ["app"], dockerSave],
  ["podman-run", ["run", "--docker", "--keep", "-D"], ["app", "-x"], podmanRun],
])("%s", async (name, before, after, table) => {
  const lines: string[] = [];
  for (const [usage, outcome] of table) {
    const { names, takesValue } = readUsage(usage);
    for (const option of names) {
      const words = [...before, option, ...(takesValue ? ["value"] : []), ...after];
      const { stderr } = await runBough(["--url", "http://127.0.0.1:1", "--token", "t", ...words], {
        workingDirectory,
      });
      const [first = "", second = ""] = stderr.split("\n");
      const answer = outcome === "ignored" ? first : `${first} / ${second}`;
      expect(answer).toContain(
        outcome === "ignored" ? `[WARN] ${option} is ignored: ` : `unknown option ${option} / `,
      );
      expect(answer).not.toContain("Did you mean");
      lines.push(`${[option, ...(takesValue ? ["value"] : [])].join(" ")}\n  ${answer}`);
    }
  }
  expectGolden(join(import.meta.dir, "../cases/foreign", `${name}.txt`), `${lines.join("\n")}\n`);
});

test.each([
  // The first unknown option is named as such, whatever its value is taken for.
  ["run --nonsense value --name web app", "bough run: unknown option --nonsense\n"],
  [
    "run --name web -P --restart always --gpus all app",
    "bough run: unknown options --name, -P, --restart, --gpus\n",
  ],
  ["build --squash --cap-add X --tga y .", "bough build: unknown options --squash, --cap-add, --tga\n"],
  ["build --rm --squash .", "bough build: unknown option --squash\n"],
])("bough %s", async (line, message) => {
  const { exitCode, stderr } = await runBough(line.split(" "), { workingDirectory });
  expect({ exitCode, stderr }).toEqual({
    exitCode: 2,
    stderr: expect.stringContaining(`[ERROR] ${message}`),
  });
});

test.each(workingFlags.map(([flag, , words]) => [flag, words] as const))(
  "%s of docker buildx works",
  async (_, words) => {
    const given = [
      "--docker",
      "build",
      ...words.split(" "),
      ...(["--call", "--check", "--print"].some((flag) => words.includes(flag)) ? [] : ["--check=1"]),
      ".",
    ];
    const { exitCode, stderr } = await runBough(given, { workingDirectory, environment: { A: "1" } });
    expect({ exitCode, stderr: stderr.replaceAll(/\[WARN\] --output: .* is ignored: .*\n/g, "") }).toEqual({
      exitCode: 0,
      stderr: "",
    });
  },
);

test("the table of the manual has every flag of buildx 0.13 and 0.29", () => {
  const flags =
    "add-host allow annotation attest build-arg build-context builder cache-from cache-to call cgroup-parent check compress cpu-period cpu-quota cpu-shares cpuset-cpus cpuset-mems debug file force-rm iidfile invoke isolation label load memory memory-swap metadata-file network no-cache no-cache-filter output platform print progress provenance pull push quiet rm root sbom secret security-opt server-config shm-size squash ssh tag target ulimit";
  const markdown = describeBuildxFlags();
  for (const flag of flags.split(" ")) expect(markdown).toMatch(new RegExp(`\\| \`[^\`]*--${flag}\\b`));
  expectGolden(join(import.meta.dir, "../../src/cli/help/topics/buildx.md"), markdown);
});
