import { expect } from "bun:test";

/** Matches a message, in the words of the command line, that contains the text or matches the pattern. */
export function saying(text: string | RegExp): unknown {
  return expect.toSay(text);
}

declare module "bun:test" {
  interface AsymmetricMatchers {
    toSay(text: string | RegExp): unknown;
  }
}

expect.extend({
  toSay(received: unknown, text: string | RegExp) {
    const said = String(received);
    return {
      pass: typeof text === "string" ? said.includes(text) : text.test(said),
      message: () => `${said} does not say ${text}`,
    };
  },
});
