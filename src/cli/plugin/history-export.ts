import { writeFileSync } from "node:fs";
import { BoughError, usageError } from "../../errors.ts";
import { reasonOf } from "../../system-error.ts";
import { parseArguments } from "../command-line/arguments.ts";
import { findPlace } from "../command-line/result.ts";
import { requireRecord, withHistory } from "../history/find-build.ts";
import { createDockerbuildArchive } from "./dockerbuild.ts";
import { referenceArgument, requireReferencedBuild } from "./history-references.ts";
import { commandOptions, type SubcommandCall } from "./subcommand.ts";

/** Writes builds as an archive for Docker Desktop. `--finalize` has no effect, since bough's records are always complete. */
export async function exportRecords(
  words: readonly string[],
  { name, runtime }: SubcommandCall,
): Promise<number> {
  const values = parseArguments(
    words,
    {
      ...{ ...commandOptions, ...referenceArgument, output: { type: "string", alias: "o" } },
      ...{ all: { type: "boolean" }, finalize: { type: "boolean" } },
    },
    name,
  );
  const refs = values.positionals;
  const output = values.text("output");
  if (values.flag("all") && refs.length > 0) throw usageError("cannot specify refs when using --all");
  if (output === undefined && runtime.stdout.isTerminal)
    throw usageError("refusing to write to console, use --output to specify a file");
  const archive = await withHistory(runtime, (all, history) => {
    const ended = all.filter(({ status }) => status !== "running");
    const one =
      refs.length === 0
        ? [requireReferencedBuild(undefined, ended)]
        : refs.map((ref) => requireReferencedBuild(ref, ended));
    const chosen = values.flag("all") ? ended : one;
    return createDockerbuildArchive(
      chosen.map((build) => ({
        record: requireRecord(build, history),
        read: (step) => history.output(build.id, step),
      })),
    );
  });
  if (output === undefined) runtime.stdout.write(archive);
  else {
    const place = findPlace("--output", output, runtime.workingDirectory);
    try {
      writeFileSync(place.path, archive);
    } catch (error) {
      throw new BoughError(`failed to create output file ${JSON.stringify(output)}: ${reasonOf(error)}`, {
        cause: error,
      });
    }
  }
  return 0;
}
