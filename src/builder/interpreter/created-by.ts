import type { HealthcheckInstruction, Instruction, RunInstruction } from "../../dockerfile/instruction.ts";
import { nanosecondsOf } from "../../dockerfile/instructions/healthcheck.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { formatGoDuration } from "../../go/duration.ts";
import { goQuote, goQuoteCharacter } from "../../go/quote.ts";
import type { ImageConfig } from "../../image/config.ts";
import { commandWords, healthcheckOf, portsOf } from "../docker/configuration.ts";
import { pathInImage } from "../state/path-in-image.ts";
import { type Arguments, type StageScope, variableLookup } from "../state/scope.ts";
import { declare, expandPairs } from "./settings.ts";

interface Surroundings {
  stage: Pick<StageScope, "args" | "config" | "env" | "inherited">;
  lookup: Lookup;
  escape: EscapeCharacter;
  buildArgs: ReadonlyMap<string, string>;
  /** The ARGs before the first FROM, with the automatic ones: a stage's ARG without a value takes theirs. */
  globals: Arguments;
  /** True for Docker's precedence of ARG and ENV: the later one wins. */
  laterWins: boolean;
}

/**
 * Returns an instruction as BuildKit writes it into an image's history, with variables replaced and lists as Go prints them.
 * Returns `undefined` for an instruction that has no line there.
 */
export function createdBy(
  instruction: Instruction,
  { stage, lookup, escape, ...given }: Surroundings,
): string | undefined {
  const { name } = instruction;
  const expand = (word: string) => expandWord(word, lookup, escape);
  switch (instruction.name) {
    case "FROM":
    case "ONBUILD":
      return undefined;
    case "ARG": {
      let { args } = stage;
      const pairs = instruction.declarations.map((declaration) => {
        const declared = declare(declaration, { ...stage, args }, { ...given, escape });
        args = declared.args;
        return declared.value === undefined ? declaration.key : `${declaration.key}=${declared.value}`;
      });
      return `ARG ${pairs.join(" ")}`;
    }
    case "ENV":
      return `ENV ${joinPairs(expandPairs(instruction, lookup, escape))}`;
    case "LABEL":
      return `LABEL ${joinPairs(instruction.pairs.map(({ key, value }) => ({ key: expand(key), value: expand(value) })))}`;
    case "WORKDIR": {
      const path = expand(instruction.path);
      return `WORKDIR ${path.startsWith("/") ? path : pathInImage(stage.config.WorkingDir ?? "/", path)}`;
    }
    case "USER":
      return `USER ${expand(instruction.user)}`;
    case "COPY":
    case "ADD": {
      const sources = instruction.sources.map((source) =>
        source.kind === "path" ? expand(source.path) : `<<${source.document.name}`,
      );
      const { chown, chmod } = instruction;
      const flags = [
        ...(chown === undefined ? [] : [`--chown=${expand(chown)}`]),
        ...(chmod === undefined ? [] : [`--chmod=${expand(chmod)}`]),
      ];
      return `${[name, ...flags, ...sources, expand(instruction.destination)].join(" ")} # buildkit`;
    }
    case "RUN":
      return `${["RUN", ...argumentsOf(stage), ...processOf(instruction, stage.config)].join(" ")} # buildkit`;
    case "CMD":
      return `CMD ${quoteList(commandWords(instruction.command, stage.config))}`;
    case "ENTRYPOINT":
      return `ENTRYPOINT ${quoteList(commandWords(instruction.command, stage.config))}`;
    case "EXPOSE":
      // BuildKit sorts the words, not the ports.
      return `EXPOSE [${instruction.ports.toSorted().map(expand).flatMap(portsOf).join(" ")}]`;
    case "VOLUME":
      return `VOLUME [${instruction.paths.map(expand).join(" ")}]`;
    case "STOPSIGNAL":
      return `STOPSIGNAL ${expand(instruction.signal)}`;
    case "MAINTAINER":
      return `MAINTAINER ${instruction.maintainer}`;
    case "SHELL":
      return `SHELL [${instruction.shell.join(" ")}]`;
    case "HEALTHCHECK":
      return `HEALTHCHECK ${formatHealthcheck(instruction)}`;
  }
}

/** Returns the declared arguments as they precede a command: `|2 A=1 B=`. */
function argumentsOf({ args, env }: Pick<StageScope, "args" | "env">): string[] {
  if (args.size === 0) return [];
  const lookup = variableLookup({ args, env });
  return [`|${args.size}`, ...Array.from(args.keys(), (name) => `${name}=${lookup(name) ?? ""}`)];
}

function processOf({ command }: RunInstruction, config: ImageConfig): readonly string[] {
  return commandWords(command.form === "script" ? { form: "shell", line: command.content } : command, config);
}

function joinPairs(pairs: readonly { key: string; value: string }[]): string {
  return pairs.map(({ key, value }) => `${key}=${value}`).join(" ");
}

function formatHealthcheck(instruction: HealthcheckInstruction): string {
  const { interval, timeout, startPeriod, startInterval, retries = "0" } = instruction;
  const times = [interval, timeout, startPeriod, startInterval];
  const durations = times.map((time = "0") => goQuote(formatGoDuration(nanosecondsOf(time))));
  const { Test } = healthcheckOf(instruction);
  return `&{${[quoteList(Test), ...durations, goQuoteCharacter(Number(retries))].join(" ")}}`;
}

/** Quotes words as Go's %q does. */
function quoteList(words: readonly string[]): string {
  return `[${words.map(goQuote).join(" ")}]`;
}
