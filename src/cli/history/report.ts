import { BoughError, messageOf } from "../../errors.ts";
import type { BuildRecord } from "../../history/build-record.ts";
import type { History } from "../../history/history-database.ts";
import { command, type Invocation } from "../command-line/command.ts";
import { findPlace, printResult, requireWritable, writeAllOrNone } from "../command-line/result.ts";
import { renderBuildPage } from "./build-page.ts";
import { buildArgument, requireBuild, requireRecord, withHistory } from "./find-build.ts";

export const report = command({
  name: "report",
  description: [
    "Write a page about a build, in one file of HTML: a time line with the critical path, why steps were not cached, what makes the",
    "image large, what has changed since the build before, and what each command has printed.",
  ].join("\n"),
  args: {
    build: buildArgument,
    output: {
      type: "string",
      alias: "o",
      completes: "file",
      valueHint: "FILE",
      description: "The file to write, which is replaced; - is standard output (default: bough-BUILD.html)",
    },
  },
  needs: "service",
  run: writeReport,
  examples: [
    ["history report", "of the last build"],
    ["history report 3kx9 -o build.html", "another one, to a file of that name"],
  ],
  agentNote: "The page is for people; `bough history show -f json` has the same for programs.",
});

async function writeReport(invocation: Invocation): Promise<void> {
  const { values, runtime } = invocation;
  const recorded = await withHistory(runtime, (builds, history) => {
    const build = requireBuild(values.positionals[0], builds);
    const record = requireRecord(build, history);
    return { record, outputs: outputsOf(record, history) };
  });
  const given = values.text("output") ?? `bough-${recorded.record.id}.html`;
  const place = given === "-" ? undefined : findPlace("--output", given, runtime.workingDirectory);
  if (place !== undefined) requireWritable(place);
  const text = await renderBuildPage(recorded, invocation);
  if (place === undefined) {
    runtime.stdout.write(text);
    return;
  }
  try {
    writeAllOrNone([{ ...place, text }]);
  } catch (error) {
    throw new BoughError(messageOf(error), {
      hint: "Free some space there, or name another file with -o.",
      cause: error,
    });
  }
  printResult(invocation, {
    id: given,
    json: { build: recorded.record.id, file: place.path, bytes: Buffer.byteLength(text) },
    table: () => `${given}\n`,
  });
}

function outputsOf({ id, steps }: BuildRecord, history: History): Map<number, string> {
  return new Map(
    steps.flatMap(({ step, output }): [number, string][] => {
      const text = output === null ? undefined : history.output(id, step);
      return text === undefined ? [] : [[step, text]];
    }),
  );
}
