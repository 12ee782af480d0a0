import { BoughError } from "../errors.ts";

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
