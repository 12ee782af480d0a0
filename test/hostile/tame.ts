/** Characters that control a terminal, or that hide or reverse text. Line ends are allowed: bough prints them itself. */
const control = /(?!\n)[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}]/gu;

/** Returns such characters of a text, each with the text around it. */
export function controlCharacters(text: string): string[] {
  return [...text.matchAll(control)].map(
    ({ 0: character, index }) =>
      `U+${(character.codePointAt(0) ?? 0).toString(16).padStart(4, "0")} in ${JSON.stringify(text.slice(Math.max(0, index - 30), index + 30))}`,
  );
}

/** Names with which an attacker may try to control a terminal or forge a line of the log. */
export const hostileNames = {
  clears: "\u001b[2J\u001b[H",
  title: "\u001b]0;owned\u0007",
  newline: "first\n[INFO] tagged fake as app:latest",
  carriageReturn: "hidden\r[INFO] ok",
  turned: "txt.\u202eexe",
  c1: "\u009b31m",
};
