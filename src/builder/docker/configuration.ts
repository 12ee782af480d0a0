import { constants } from "node:os";
import type {
  Command,
  ConfigurationInstruction,
  HealthcheckInstruction,
  Instruction,
} from "../../dockerfile/instruction.ts";
import { nanosecondsOf } from "../../dockerfile/instructions/healthcheck.ts";
import type { EscapeCharacter } from "../../dockerfile/text/directives.ts";
import { expandWord, type Lookup } from "../../dockerfile/words/words.ts";
import { BoughError } from "../../errors.ts";
import type { ImageConfig } from "../../image/config.ts";
import type { IsKnown } from "../state/scope.ts";

interface Words {
  lookup: Lookup;
  isKnown: IsKnown;
  escape: EscapeCharacter;
}

/**
 * Returns an image's configuration after an instruction, by Docker's rules. Leaves out what depends on the image's own variables,
 * if these are unknown.
 *
 * @param ownsCmd true if the stage has a CMD: an ENTRYPOINT drops an inherited one
 */
export function configure(
  config: ImageConfig,
  instruction: ConfigurationInstruction,
  { lookup, isKnown, escape, ownsCmd }: Words & { ownsCmd: boolean },
): ImageConfig {
  const expand = (word: string) => (isKnown(word) ? [expandWord(word, lookup, escape)] : []);
  switch (instruction.name) {
    case "CMD":
      return { ...config, Cmd: commandWords(instruction.command, config), ArgsEscaped: true };
    case "ENTRYPOINT": {
      const { Cmd, ...others } = config;
      const Entrypoint = commandWords(instruction.command, config);
      return { ...others, Entrypoint, ...(ownsCmd && Cmd !== undefined ? { Cmd } : {}) };
    }
    case "LABEL": {
      const labels = instruction.pairs.flatMap(({ key, value }) =>
        expand(key).flatMap((name) => expand(value).map((text): [string, string] => [name, text])),
      );
      return { ...config, Labels: { ...config.Labels, ...Object.fromEntries(labels) } };
    }
    case "EXPOSE": {
      const ports = instruction.ports.flatMap(expand).flatMap(portsOf);
      if (ports.length === 0) return config;
      return { ...config, ExposedPorts: { ...config.ExposedPorts, ...setOf(ports) } };
    }
    case "VOLUME": {
      const paths = instruction.paths.flatMap(expand);
      if (paths.includes("")) refuse("VOLUME specified can not be an empty string", "Name a path.");
      return { ...config, Volumes: { ...config.Volumes, ...setOf(paths) } };
    }
    case "STOPSIGNAL": {
      const [signal] = expand(instruction.signal);
      return signal === undefined ? config : { ...config, StopSignal: requireSignal(signal) };
    }
    case "HEALTHCHECK":
      return { ...config, Healthcheck: healthcheckOf(instruction) };
    case "SHELL":
      return { ...config, Shell: instruction.shell };
    case "ONBUILD": {
      const { trigger } = instruction;
      const OnBuild = [...(config.OnBuild ?? []), ...(trigger === undefined ? [] : [wholeText(trigger)])];
      return { ...config, OnBuild };
    }
    case "MAINTAINER":
      return config;
  }
}

/** Returns an instruction with its here-documents. Docker keeps a trigger as text, which is parsed again by builds from the image. */
function wholeText({ original, heredocs }: Instruction): string {
  return [original, ...heredocs.map(({ name, content }) => `${content}${name}`)].join("\n");
}

/** Returns a command's words. The shell form runs in SHELL. */
export function commandWords(
  command: Command,
  { Shell = ["/bin/sh", "-c"] }: ImageConfig,
): readonly string[] {
  return command.form === "exec" ? command.words : [...Shell, command.line];
}

/** Parses `80`, `53/udp`, `8000-8010`. A part before a colon is the host's and not kept in an image. */
export function portsOf(word: string): string[] {
  return word
    .split(/\s+/)
    .filter((part) => part !== "")
    .flatMap((part) => {
      const [, first = "", last = first, protocol = "tcp"] =
        /^(?:.*:)?(\d+)(?:-(\d+))?(?:\/(tcp|udp|sctp)?)?$/i.exec(part) ?? [];
      const [from, to] = [Number(first), Number(last)];
      if (first === "" || to > 65_535 || from > to)
        refuse(
          `invalid containerPort: ${part}`,
          "A port is a number up to 65535, as 8080, 53/udp or 8000-8010.",
        );
      return Array.from({ length: to - from + 1 }, (_, index) => `${from + index}/${protocol.toLowerCase()}`);
    });
}

function setOf(names: readonly string[]): Record<string, unknown> {
  return Object.fromEntries(names.map((name) => [name, {}]));
}

function requireSignal(signal: string): string {
  const name = signal.toUpperCase().replace(/^SIG/, "");
  const isNumber = /^[1-9]\d*$/.test(signal);
  if (isNumber || `SIG${name}` in constants.signals || /^RTM(IN|AX)([+-]\d+)?$/.test(name)) return signal;
  return refuse(`Invalid signal: ${signal}`, "Write its name or number, as SIGTERM or 15.");
}

function refuse(message: string, hint: string): never {
  throw new BoughError(message, { kind: "usage", hint });
}

/** Returns the healthcheck as Docker writes it in an image's configuration: times in nanoseconds, zeros left out. */
export function healthcheckOf(
  instruction: HealthcheckInstruction,
): { Test: string[] } & Record<string, unknown> {
  const { command, interval, timeout, startPeriod, startInterval, retries = "0" } = instruction;
  if (command === undefined) return { Test: ["NONE"] };
  const Test = command.form === "exec" ? ["CMD", ...command.words] : ["CMD-SHELL", command.line];
  const numbers = {
    Interval: nanosecondsOf(interval ?? "0"),
    Timeout: nanosecondsOf(timeout ?? "0"),
    StartPeriod: nanosecondsOf(startPeriod ?? "0"),
    StartInterval: nanosecondsOf(startInterval ?? "0"),
    Retries: Number(retries),
  };
  return { Test, ...Object.fromEntries(Object.entries(numbers).filter(([, value]) => value !== 0)) };
}
