import { secretsAmong } from "../../dockerfile/secrets.ts";
import { BoughError } from "../../errors.ts";

/** `KEY=VALUE` as it is; `KEY` alone with the value that it has here, as in `docker run -e`. */
export function readEnvironment(
  given: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): Record<string, string> {
  return Object.fromEntries(
    given.map((text) => {
      const separator = text.indexOf("=");
      if (separator > 0) return [text.slice(0, separator), text.slice(separator + 1)];
      const value = separator < 0 ? environment[text] : undefined;
      if (value !== undefined) return [text, value];
      throw separator === 0
        ? new BoughError(`--env takes KEY=VALUE, not ${JSON.stringify(text)}`, {
            kind: "usage",
            hint: "The name is missing.",
          })
        : new BoughError(`--env ${text}: there is no such variable here`, {
            kind: "usage",
            hint: `Write --env ${text}=VALUE, or export it first.`,
          });
    }),
  );
}

/**
 * How a command line is run again without the secrets of its `--env KEY=VALUE`, since all users of the machine see it for as
 * long as it runs: by `--env KEY`, with the value in its environment. `given`: of this one's.
 */
export function secretsByEnvironment(
  given: readonly string[],
  env: Readonly<Record<string, string>>,
): { environment: Record<string, string>; rewrite: (words: readonly string[]) => string[] } {
  const secrets = secretsAmong(Object.entries(env));
  const names = new Map(
    given.flatMap((text): [string, string][] => {
      const name = text.slice(0, Math.max(0, text.indexOf("=")));
      return name !== "" && secrets.has(name) ? [[text, name]] : [];
    }),
  );
  return {
    environment: Object.fromEntries([...names.values()].map((name) => [name, env[name] ?? ""])),
    rewrite(words) {
      const end = words.indexOf("--");
      const own = end < 0 ? words : words.slice(0, end);
      // Behind its option, or in one word with it: `--env=KEY=VALUE`, `-eKEY=VALUE`.
      const rewritten = own.map((word) => {
        const text = [...names.keys()].find((text) => word.endsWith(text));
        return text === undefined ? word : `${word.slice(0, -text.length)}${names.get(text)}`;
      });
      return [...rewritten, ...words.slice(own.length)];
    },
  };
}
