/**
 * Sessions at the command line, against the scripted service over HTTP. `test/cases/client/<case>.txt` has command lines
 * after `$`, each with its standard output, then its standard error, then the exit code if it is not 0.
 * `echo TEXT | bough ...` pipes text in. `UPDATE_GOLDEN=1 ./scripts/test` writes the output after each line.
 */
import { describe, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { type Clock, systemClock } from "../../src/clock.ts";
import { asRecord } from "../../src/service/http/json.ts";
import type { InstanceBody } from "../../src/service/wire/instance.ts";
import { startFakeService } from "../fake-service/fake-service.ts";
import type { RunOutcome } from "../fake-service/state.ts";
import { runBough, temporaryDirectory } from "../support/bough.ts";
import { writeFiles } from "../support/files.ts";
import { expectGolden } from "../support/golden.ts";
import { splitWords } from "../support/words.ts";

const cases = join(import.meta.dir, "../cases/client");

describe("a person at the command line:", () => {
  test.each(readdirSync(cases).sort())("%s", async (name) => {
    const path = join(cases, name);
    expectGolden(path, await play(readFileSync(path, "utf8")));
  });
});

/** Keeps comments and command lines, and replaces the output by that of the commands. */
async function play(transcript: string): Promise<string> {
  const importError = (url: string) =>
    /broken|nosuch|\/(ap|ls):/.test(url) ? "manifest unknown" : undefined;
  const service = await startFakeService({ run: perform, importError });
  for (const tag of ["base:1", "app:dev", "app:latest"]) service.state.addImage(tag);
  service.state.tree.set("/etc", { type: "directory" });
  service.state.tree.set("/etc/motd", { type: "file", content: "welcome\n" });
  service.state.tree.set("/etc/link", { type: "symlink" });
  const workingDirectory = temporaryDirectory();
  writeFiles(workingDirectory, {
    "src/a.txt": "a",
    "src/b.sh": { text: "a", mode: 0o755 },
    "src/.git/config": "",
    "src/app.log": "",
    "linked/a.txt": "a",
    "linked/latest": { link: "a.txt" },
    "linked/empty": "directory/",
  });
  const environment = {
    BOUGH_HOME: temporaryDirectory(),
    CONTREE_URL: service.url,
    CONTREE_TOKEN: "t0ken-t0ken",
    SET_HERE: "yes",
  };
  const clock = someHoursLater();
  const shown: string[] = [];
  try {
    for (const line of transcript.split("\n")) {
      if (line.startsWith("#")) shown.push(line);
      if (!line.startsWith("$ ")) continue;
      const [, input, command = ""] = /^\$ (?:echo (.*?) \| )?bough ?(.*)$/.exec(line) ?? [];
      service.clearRequests();
      const { exitCode, stdout, stderr } = await runBough(splitWords(command), {
        workingDirectory,
        environment,
        clock,
        ...(input === undefined ? {} : { stdin: `${input}\n` }),
      });
      const instances = service
        .requestsTo("POST /v1/instances")
        .map(({ json }) => `> ${JSON.stringify({ ...asRecord(json), truncate_output_at: "LIMIT" })}\n`)
        .join("");
      const output = `${stdout}${stderr}`
        .replaceAll(service.url, "https://service")
        .replaceAll(workingDirectory, "/work");
      const ending = exitCode === 0 ? "" : `exit code ${exitCode}\n`;
      shown.push(
        `${line}\n${line.includes(" # shows requests") ? instances : ""}${normalize(output)}${ending}`,
      );
    }
  } finally {
    await service.close();
  }
  return `${shown.join("\n")}`;
}

/** Starts three hours after the service's images were made, and advances by a millisecond with each call. */
function someHoursLater(): Clock {
  let now = Date.parse("2026-01-01T03:00:10Z");
  return { ...systemClock, now: () => now++ };
}

function normalize(text: string): string {
  return text.replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, "TIME");
}

/** The outcomes of a few commands. */
function perform({ command, args = [], env = {}, stdin, shell }: InstanceBody): RunOutcome {
  if (shell) return { stdout: `sh -c ${command}\n` };
  switch (command) {
    case "echo":
      return { stdout: `${args.join(" ")}\n`, image: "unchanged" };
    case "complain":
      return { stdout: "out\n", stderr: "err\n", exitCode: Number(args[0] ?? 1) };
    case "cat":
      return { stdout: stdin === undefined ? "" : Buffer.from(stdin.value, "base64"), image: "unchanged" };
    case "env":
      return {
        stdout: Object.entries(env)
          .map(([name, value]) => `${name}=${value}\n`)
          .join(""),
        image: "unchanged",
      };
    case "sleep":
      return { timedOut: true, exitCode: 137 };
    case "wait":
      return { chunks: [{ stream: "stdout", data: "so far\n" }], until: new Promise(() => {}) };
    case "missing":
      return { error: 'exec: "missing": not found' };
    default:
      return {};
  }
}
