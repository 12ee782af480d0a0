/** The options of a bake as data. */
import { usageError } from "../../../errors.ts";
import { parsePlatformServices } from "../../builds/options/platform-services.ts";
import { parseProgressMode } from "../../builds/options/result-definitions.ts";
import type { Surroundings } from "../../command-line/command.ts";
import { positiveInteger } from "../../command-line/option-values.ts";
import type { OptionParsers, OptionsOf } from "../../command-line/options.ts";
import { parseTimeout } from "../../service/timeout.ts";
import { parseSign } from "../../signing/sign-option.ts";
import { parseList } from "../print-definition.ts";
import { parseShard } from "../sets/shard.ts";
import { parseBakeCall } from "../target-call.ts";
import type { bakeDefinitions } from "./definitions.ts";

export const bakeParsers = {
  call: parseBakeCall,
  list: parseList,
  var: parseVariables,
  shard: parseShard,
  sign: parseSign,
  progress: parseProgressMode,
  "platform-service": parsePlatformServices,
  timeout: (text: string) => parseTimeout(text, "It takes seconds, as in --timeout 1800."),
  jobs: (text: string) => positiveInteger(text, "--jobs", "It is a number of steps, as in --jobs 4."),
} satisfies OptionParsers<typeof bakeDefinitions>;

export type BakeOptions = OptionsOf<typeof bakeDefinitions, typeof bakeParsers>;

/** What is asked of a bake, with what it needs beside it. */
export type BakeInvocation = Surroundings & { options: BakeOptions };

function parseVariables(given: readonly string[]): ReadonlyMap<string, string> {
  return new Map(
    given.map((text): [string, string] => {
      const [, name, value] = /^([^=]+)=(.*)$/s.exec(text) ?? [];
      if (name === undefined || value === undefined)
        throw usageError(`--var takes NAME=VALUE, not ${JSON.stringify(text)}`);
      return [name, value];
    }),
  );
}
